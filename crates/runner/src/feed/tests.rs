//! What is not needed yet is not watched, and nobody waits for it.

use std::{task::Waker, time::Duration};

use corten_api::resources::{CONFIG_MAPS, PODS};
use corten_meta::{Named, Time};
use corten_reconcile::{Plan, Write};
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::fake::FakeApi;

#[derive(Deserialize)]
struct Any {
    metadata: ObjectMeta,
}

impl Named for Any {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// Looks at pods once there is a ConfigMap.
struct Frugal;

impl Controller for Frugal {
    fn name(&self) -> &'static str {
        "frugal"
    }

    fn watches(&self) -> Vec<Watch> {
        let is_needed = |view: &View| view.list_in::<Any>(&CONFIG_MAPS).next().is_some();
        let pods = Watch::of::<Any>(PODS, Wake::Itself).once(is_needed);
        vec![Watch::of::<Any>(CONFIG_MAPS, Wake::Itself), pods]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn reconcile(&self, _view: &View, _key: &Key, _now: Time) -> Plan {
        Plan::default()
    }
}

async fn look(feeds: &mut Feeds) -> Vec<String> {
    let mut news = News::default();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _either = feeds.poll(&Context::from_waker(Waker::noop()), &mut news);
    }
    news.woken.into_iter().map(|it| it.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_watched_when_it_is_needed_first() {
    let api = FakeApi::new();
    let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
    api.put("/api/v1/namespaces/default/pods/p", object("p"));
    let sight = SharedInformers::new(api.client());
    let running = tokio::spawn(sight.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&sight, &Frugal);

    assert_eq!(look(&mut feeds).await, [""; 0]);
    assert!(feeds.is_synced(), "what is not needed is not waited for");
    assert_eq!(feeds.version(&PODS), None);

    api.put("/api/v1/namespaces/default/configmaps/c", object("c"));
    assert_eq!(look(&mut feeds).await, ["c", "p"]);
    assert!(feeds.is_synced() && feeds.version(&PODS).is_some());

    api.remove("/api/v1/namespaces/default/configmaps/c");
    api.put("/api/v1/namespaces/default/pods/q", object("q"));
    let woken = look(&mut feeds).await;
    assert!(woken.contains(&"q".to_owned()), "once begun it goes on: {woken:?}");
    running.abort();
}
