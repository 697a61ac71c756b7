//! What is not needed yet is not watched, and nobody waits for it.

use std::{task::Waker, time::Duration};

use corten_api::resources::{CONFIG_MAPS, PODS};
use corten_meta::{Named, Time};
use corten_reconcile::{Plan, Write};
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::fake::{FakeApi, Fault};

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
    let mut news = FeedChanges::default();
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
    let informers = SharedInformers::new(api.client());
    let running = tokio::spawn(informers.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&informers, &Frugal);

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

/// Looks at Pods where a ConfigMap leads to them, as definitions lead to what they describe.
struct Led;

impl Controller for Led {
    fn name(&self) -> &'static str {
        "led"
    }

    fn watches(&self) -> Vec<Watch> {
        let led_to = |view: &View| match view.list_in::<Any>(&CONFIG_MAPS).next() {
            Some(_) => vec![Watch::of::<Any>(PODS, Wake::Nobody)],
            None => Vec::new(),
        };
        vec![Watch::of::<Any>(CONFIG_MAPS, Wake::Itself).leading_to(led_to)]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn reconcile(&self, _view: &View, _key: &Key, _now: Time) -> Plan {
        Plan::default()
    }
}

/// Polled as often as a loop is: each view that anybody could decide by is looked at.
#[tokio::test(start_paused = true)]
async fn no_view_that_holds_what_leads_to_a_resource_is_shown_without_that_resource() {
    let controllers: [&dyn Controller; 2] = [&Led, &Frugal];
    for (controller, is_there_at_the_start) in controllers.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let api = FakeApi::new();
        let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
        let lead = || api.put("/api/v1/namespaces/default/configmaps/c", object("c"));
        api.put("/api/v1/namespaces/default/pods/p", object("p"));
        if is_there_at_the_start {
            lead();
        }
        let informers = SharedInformers::new(api.client());
        let running = tokio::spawn(informers.clone().run(std::future::pending()));
        let mut feeds = Feeds::new(&informers, controller);
        let (mut news, mut n_whole) = (FeedChanges::default(), 0);
        for round in 0..2000 {
            if round == 1000 && !is_there_at_the_start {
                lead();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            let _either = feeds.poll(&Context::from_waker(Waker::noop()), &mut news);
            let Some(view) = feeds.whole_view() else { continue };
            if view.list_in::<Any>(&CONFIG_MAPS).next().is_some() {
                n_whole += 1;
                let pods = view.list_in::<Any>(&PODS).count();
                assert_eq!(pods, 1, "{}: a Pod that is stored is not seen", controller.name());
            }
        }
        assert!(n_whole > 0, "{}: it is whole in the end", controller.name());
        running.abort();
    }
}

/// Is asked though ConfigMaps cannot be listed, or is not.
struct Content {
    bears_gaps: bool,
}

impl Controller for Content {
    fn name(&self) -> &'static str {
        "content"
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = Watch::of::<Any>(CONFIG_MAPS, Wake::Itself);
        vec![if self.bears_gaps { watch.bearing_gaps() } else { watch }]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn reconcile(&self, _view: &View, _key: &Key, _now: Time) -> Plan {
        Plan::default()
    }
}

#[tokio::test(start_paused = true)]
async fn who_bears_it_is_asked_though_a_resource_cannot_be_listed_and_told_so() {
    for bears_gaps in [true, false] {
        let api = FakeApi::new();
        api.put(
            "/api/v1/namespaces/default/configmaps/c",
            json!({ "metadata": { "name": "c", "namespace": "default" } }),
        );
        // The back-off after these is longer than a look.
        (0..8).for_each(|_| api.fault(Fault::Refused("GET", 500, "InternalError")));
        let sight = SharedInformers::new(api.client());
        let running = tokio::spawn(sight.clone().run(std::future::pending()));
        let mut feeds = Feeds::new(&sight, &Content { bears_gaps });
        look(&mut feeds).await;
        assert_eq!(feeds.is_synced(), bears_gaps);
        assert_eq!(feeds.view.cannot_be_listed().contains(&CONFIG_MAPS), bears_gaps);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(look(&mut feeds).await, ["c"]);
        assert!(feeds.is_synced() && feeds.view.cannot_be_listed().is_empty());
        running.abort();
    }
}

/// Looks at what another server holds.
struct Elsewhere;

impl Controller for Elsewhere {
    fn name(&self) -> &'static str {
        "elsewhere"
    }

    fn watches(&self) -> Vec<Watch> {
        let foreign = Watch::of::<Any>(PODS, Wake::Itself).from(Origin::Elsewhere { is_watched: true });
        vec![Watch::of::<Any>(CONFIG_MAPS, Wake::Itself), foreign]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn reconcile(&self, _view: &View, _key: &Key, _now: Time) -> Plan {
        Plan::default()
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_another_server_and_its_revisions_are_its_own() {
    let api = FakeApi::new();
    let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
    let sight = SharedInformers::new(api.client());
    let running = tokio::spawn(sight.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&sight, &Elsewhere);
    assert!(feeds.view.table(&CONFIG_MAPS).is_some() && feeds.view.table(&PODS).is_none(), "nobody knows yet");
    look(&mut feeds).await;
    assert!(feeds.view.table(&PODS).is_some(), "it has been listed");
    api.put("/api/v1/namespaces/default/pods/p", object("p"));
    assert_eq!(look(&mut feeds).await, ["p"]);
    assert!(feeds.is_synced());
    assert_eq!(feeds.version(&PODS), Some(u64::MAX), "no write there is waited for by its version");
    running.abort();
}

/// Looks at Pods, of another server where a ConfigMap says so.
struct TakenOver;

impl Controller for TakenOver {
    fn name(&self) -> &'static str {
        "taken-over"
    }

    fn watches(&self) -> Vec<Watch> {
        let led_to = |view: &View| {
            let is_elsewhere = view.list_in::<Any>(&CONFIG_MAPS).next().is_some();
            let origin = if is_elsewhere { Origin::Elsewhere { is_watched: true } } else { Origin::Here };
            vec![Watch::of::<Any>(PODS, Wake::Itself).from(origin)]
        };
        vec![Watch::of::<Any>(CONFIG_MAPS, Wake::Nobody).leading_to(led_to)]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn reconcile(&self, _view: &View, _key: &Key, _now: Time) -> Plan {
        Plan::default()
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_server_takes_over_is_waited_for_no_longer_and_is_again_when_it_goes() {
    let api = FakeApi::new();
    let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
    api.list_no_more(Some("/api/v1/pods"));
    api.put("/api/v1/namespaces/default/configmaps/c", object("c"));
    let sight = SharedInformers::new(api.client());
    let running = tokio::spawn(sight.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&sight, &TakenOver);
    look(&mut feeds).await;
    assert!(feeds.is_synced() && feeds.view.table(&PODS).is_none() && feeds.failing().is_empty());
    api.remove("/api/v1/namespaces/default/configmaps/c");
    look(&mut feeds).await;
    assert!(!feeds.is_synced());
    let [(resource, failing)] = &feeds.failing()[..] else { panic!("one is lacking") };
    assert!(*resource == PODS && failing.said.ends_with("(503)"), "{failing:?}");
    api.put("/api/v1/namespaces/default/configmaps/c", object("c"));
    look(&mut feeds).await;
    assert!(feeds.is_synced());
    api.remove("/api/v1/namespaces/default/configmaps/c");
    api.list_no_more(None);
    look(&mut feeds).await;
    assert!(feeds.is_synced() && feeds.view.table(&PODS).is_some());
    running.abort();
}

/// Looks at ConfigMaps and at Pods.
struct Both;

impl Controller for Both {
    fn name(&self) -> &'static str {
        "both"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::of::<Any>(CONFIG_MAPS, Wake::Itself), Watch::of::<Any>(PODS, Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn reconcile(&self, _view: &View, _key: &Key, _now: Time) -> Plan {
        Plan::default()
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_server_does_not_tell_its_progress_each_resource_is_seen_as_it_comes() {
    let api = FakeApi::new();
    api.become_foreign();
    let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
    let sight = SharedInformers::of_any_server(api.client(), vec![CONFIG_MAPS, PODS]);
    let running = tokio::spawn(sight.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&sight, &Both);
    look(&mut feeds).await;
    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
        api.put(&format!("/api/v1/namespaces/default/pods/{name}"), object(name));
        assert_eq!(look(&mut feeds).await, [name]);
        // One change each since the first, at which both were listed.
        let versions = [&PODS, &CONFIG_MAPS].map(|it| feeds.version(it));
        assert_eq!(versions, [Some(n as u64 + 2), Some(1)], "each is of its own version");
        assert!(feeds.is_synced(), "the quiet one is not waited for");
    }
    api.put("/api/v1/namespaces/default/configmaps/d", object("d"));
    assert_eq!(look(&mut feeds).await, ["d"]);
    assert_eq!(feeds.version(&CONFIG_MAPS), Some(5));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn of_a_kind_that_is_not_served_there_is_none_until_it_is() {
    for is_foreign in [false, true] {
        let api = FakeApi::new();
        if is_foreign {
            api.become_foreign();
        }
        api.serve("pods", false);
        let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
        let sight = SharedInformers::of_any_server(api.client(), vec![CONFIG_MAPS]);
        let running = tokio::spawn(sight.clone().run(std::future::pending()));
        let mut feeds = Feeds::new(&sight, &Both);
        look(&mut feeds).await;
        api.put("/api/v1/namespaces/default/configmaps/a", object("a"));
        assert_eq!(look(&mut feeds).await, ["a"]);
        assert!(feeds.is_synced() && feeds.failing().is_empty(), "nobody waits for it");
        api.serve("pods", true);
        api.put("/api/v1/namespaces/default/pods/p", object("p"));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(look(&mut feeds).await, ["p"]);
        assert!(feeds.is_synced());
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_watch_leads_to_is_waited_for_though_it_is_not_served_yet() {
    let api = FakeApi::new();
    api.become_foreign();
    api.serve("pods", false);
    let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
    api.put("/api/v1/namespaces/default/configmaps/c", object("c"));
    let sight = SharedInformers::of_any_server(api.client(), vec![CONFIG_MAPS]);
    let running = tokio::spawn(sight.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&sight, &Led);
    look(&mut feeds).await;
    assert!(!feeds.is_synced());
    api.serve("pods", true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    look(&mut feeds).await;
    assert!(feeds.is_synced());
    running.abort();
}

/// What stands before a server may answer 404 to everything for a moment.
#[tokio::test(start_paused = true)]
async fn of_what_the_server_has_said_that_it_serves_a_404_is_no_empty_list() {
    let api = FakeApi::new();
    api.become_foreign();
    api.serve("pods", false);
    let object = |name: &str| json!({ "metadata": { "name": name, "namespace": "default" } });
    api.put("/api/v1/namespaces/default/pods/p", object("p"));
    let sight = SharedInformers::of_any_server(api.client(), vec![CONFIG_MAPS, PODS]);
    let running = tokio::spawn(sight.clone().run(std::future::pending()));
    let mut feeds = Feeds::new(&sight, &Both);
    look(&mut feeds).await;
    assert!(!feeds.is_synced());
    api.serve("pods", true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(look(&mut feeds).await, ["p"]);
    assert!(feeds.is_synced());
    running.abort();
}
