//! What goes side by side, what waits for what came before, and where it stops.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_api::resources::{CONFIG_MAPS, PODS};
use corten_client::{Body, BoxFuture, Transport, TransportError};
use corten_meta::ObjectReference;
use corten_reconcile::{EventType, Propagation};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::json;

use super::*;

const TAKES: Duration = Duration::from_millis(10);

/// Takes its time for each request, and refuses what is named `bad`, or `late`: into a namespace that is being deleted.
#[derive(Default)]
struct Slow(Mutex<RequestLog>);

#[derive(Default)]
struct RequestLog {
    begun: Vec<String>,
    n_under_way: usize,
    n_under_way_max: usize,
}

impl Transport for Slow {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(async move {
            let sent: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            let name = sent["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let version = {
                let mut seen = self.0.lock();
                seen.begun.push(format!("{} {name}", request.method()));
                seen.n_under_way += 1;
                seen.n_under_way_max = seen.n_under_way_max.max(seen.n_under_way);
                seen.begun.len()
            };
            tokio::time::sleep(TAKES).await;
            self.0.lock().n_under_way -= 1;
            let (code, body) = if name.starts_with("bad") {
                (403, json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": name}))
            } else if name.starts_with("late") {
                let causes = json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]);
                (403, json!({"kind": "Status", "code": 403, "reason": "Forbidden", "details": {"causes": causes}}))
            } else {
                (201, json!({"metadata": {"name": name, "resourceVersion": version.to_string()}}))
            };
            let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
            Ok(Response::builder().status(code).body(body).expect("a valid response"))
        })
    }
}

fn create(resource: &Resource, name: &str) -> [Effect; 2] {
    let object = json!({"metadata": {"name": name, "namespace": "default"}});
    let (about, message) = (ObjectReference::default(), format!("created {name}"));
    let event = Effect::Event { about, event_type: EventType::Normal, reason: "Created", message };
    [Effect::Create { resource: resource.clone(), object }, event]
}

async fn carried_out(effects: Vec<Effect>) -> (Outcome, RequestLog, Duration) {
    let slow = Arc::new(Slow::default());
    let start = tokio::time::Instant::now();
    let outcome = perform(&Client::new(slow.clone()), effects).await;
    (outcome, std::mem::take(&mut *slow.0.lock()), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn creates_of_one_resource_go_side_by_side_and_begin_slowly() {
    let names: Vec<String> = (0..500).map(|it| format!("p{it}")).collect();
    let (outcome, seen, took) = carried_out(names.iter().flat_map(|it| create(&PODS, it)).collect()).await;
    assert_eq!((outcome.needs.len(), outcome.failures.len()), (500, 0));
    assert_eq!(seen.n_under_way_max, CONCURRENT_ALIKE);
    assert_eq!(seen.begun, names.iter().map(|it| format!("POST {it}")).collect::<Vec<_>>(), "in the plan's order");
    // One, two, four, eight, sixteen, and from then on as many as may be.
    let rounds = 5 + (500 - 31_u32).div_ceil(32);
    assert!(took <= TAKES * (rounds + 1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn so_do_deletes_but_not_beside_creates() {
    let delete = |name: String| {
        let (key, uid) = (Key::new("default", name), "u".to_owned());
        Effect::Delete { resource: PODS, key, uid, propagation: Propagation::Background, grace_seconds: None }
    };
    let mut effects: Vec<Effect> = (0..100).map(|it| delete(format!("p{it}"))).collect();
    effects.extend(create(&PODS, "new"));
    let (outcome, seen, took) = carried_out(effects).await;
    assert_eq!((outcome.needs.len(), outcome.failures.len()), (101, 0));
    assert_eq!(seen.n_under_way_max, CONCURRENT_ALIKE);
    assert_eq!(seen.begun.last().map(|it| &**it), Some("POST new"));
    assert!(took < TAKES * 20, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn of_merge_patches_only_those_of_owners_do() {
    for (body, expected) in [
        (json!({"metadata": {"uid": "u", "resourceVersion": "1", "ownerReferences": null}}), CONCURRENT_ALIKE),
        (json!({"metadata": {"uid": "u", "finalizers": null}}), 1),
        (json!({"spec": {"replicas": 1}, "metadata": {"ownerReferences": null}}), 1),
    ] {
        let patch = |it: i32| {
            let (resource, key) = (PODS, Key::new("default", format!("p{it}")));
            Effect::Patch { resource, key, subresource: None, patch: body.clone() }
        };
        let (outcome, seen, _) = carried_out((0..100).map(patch).collect()).await;
        assert_eq!((outcome.needs.len(), seen.n_under_way_max), (100, expected), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_met_by_few_and_stops_what_has_not_begun() {
    for (n_good, n_met) in [(0, 1), (1, 2), (3, 4)] {
        let good = (0..n_good).map(|it| format!("good-{it}"));
        let bad = (0..100).map(|it| format!("bad-{it}"));
        let effects = good.chain(bad).flat_map(|it| create(&PODS, &it)).collect();
        let (outcome, seen, _) = carried_out(effects).await;
        assert_eq!(outcome.needs.len(), n_good);
        assert_eq!(outcome.failures.len(), n_met, "after {n_good} that went well");
        assert_eq!(seen.begun.len(), n_good + n_met);
        let Effect::Create { object, .. } = &outcome.failures[0].effect else { panic!("a create") };
        assert_eq!(object["metadata"]["name"], "bad-0", "the first of the plan is told");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_of_another_resource_waits() {
    let key = Key::new("default", "map");
    let patch =
        Effect::Patch { resource: CONFIG_MAPS, key, subresource: None, patch: json!({"metadata": {"name": "map"}}) };
    let mut effects: Vec<Effect> = ["a", "b"].iter().flat_map(|it| create(&CONFIG_MAPS, it)).collect();
    effects.extend(["bad", "d"].iter().flat_map(|it| create(&PODS, it)));
    effects.push(patch);
    let (outcome, seen, _) = carried_out(effects).await;
    assert_eq!(seen.begun, ["POST a", "POST b", "POST bad"]);
    assert_eq!((outcome.needs.len(), outcome.failures.len()), (2, 1));
}

fn sequence(names: &[(&Resource, &str)]) -> Effect {
    Effect::Sequence(names.iter().flat_map(|it| create(it.0, it.1)).collect())
}

/// What was refused ends its own sequence; those that had begun beside it come to their end, and no other begins.
#[tokio::test(start_paused = true)]
async fn sequences_go_side_by_side_each_in_its_own_order() {
    let good = |it: &str| sequence(&[(&CONFIG_MAPS, &format!("c{it}")), (&PODS, &format!("p{it}"))]);
    let (outcome, seen, took) = carried_out((0..100).map(|it| good(&it.to_string())).collect()).await;
    assert_eq!((outcome.needs.len(), outcome.told.len(), outcome.failures.len()), (200, 200, 0));
    assert_eq!(seen.n_under_way_max, CONCURRENT_ALIKE);
    assert!(took < TAKES * 25, "{took:?}");
    let at = |name: &str| seen.begun.iter().position(|it| *it == format!("POST {name}")).expect("it was begun");
    assert!((0..100).all(|it| at(&format!("c{it}")) < at(&format!("p{it}"))));

    let refused = sequence(&[(&CONFIG_MAPS, "bad"), (&PODS, "p-of-bad")]);
    let effects = vec![sequence(&[(&PODS, "p0")]), refused, good("2"), good("3"), good("4")];
    let (outcome, seen, _) = carried_out(effects).await;
    assert_eq!(seen.begun, ["POST p0", "POST bad", "POST c2", "POST p2"]);
    assert_eq!((outcome.needs.len(), outcome.failures.len()), (3, 1));
    let told: Vec<String> = outcome.told.iter().map(ToString::to_string).collect();
    assert!(told.len() == 3 && told[2].ends_with("created p2"), "{told:?}");
    assert!(
        matches!(&outcome.failures[0].effect, Effect::Create { object, .. } if object["metadata"]["name"] == "bad")
    );
}

/// Nobody is told of what was not done.
#[tokio::test(start_paused = true)]
async fn events_tell_of_what_was_done() {
    let client = Client::new(Arc::new(Slow::default()));
    let said = |message: &str| {
        let (about, message) = (ObjectReference::default(), message.to_owned());
        Effect::Event { about, event_type: EventType::Warning, reason: "Said", message }
    };
    let effects = std::iter::once(said("first")).chain(create(&PODS, "a")).chain(create(&PODS, "bad"));
    let outcome = perform(&client, effects.chain(create(&CONFIG_MAPS, "c")).collect()).await;
    let told: Vec<String> = outcome.told.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with("Said: first") && told[1].ends_with("Created: created a"), "{told:?}");
    assert_eq!(outcome.failures.len(), 1);
}

/// `HasStatusCause(NamespaceTerminatingCause)`: nothing is made in a namespace that goes, and nothing is missed. The rest of the plan is done.
#[tokio::test(start_paused = true)]
async fn what_comes_too_late_for_a_namespace_is_no_failure() {
    let mut effects: Vec<Effect> = ["late-0", "late-1", "late-2"].iter().flat_map(|it| create(&PODS, it)).collect();
    effects.extend(create(&CONFIG_MAPS, "c"));
    let (outcome, seen, _) = carried_out(effects).await;
    assert_eq!(seen.begun, ["POST late-0", "POST late-1", "POST late-2", "POST c"]);
    assert_eq!((outcome.failures.len(), outcome.moot.len(), outcome.needs.len()), (0, 3, 1));
    let told: Vec<String> = outcome.told.iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].ends_with("created c"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_fetched_comes_with_why_some_did_not_and_the_last_note_is_kept() {
    let path = |it: &str| ApiPath { path: it.into(), query: vec![("labelSelector", "a=b,c in (d)".into())] };
    let effects = vec![
        Effect::Remember { note: json!(1) },
        Effect::Fetch(path("/apis/one")),
        Effect::Fetch(path("/no path")),
        Effect::FetchForAll(path("/apis/two")),
        Effect::Remember { note: json!(2) },
    ];
    let (outcome, seen, _) = carried_out(effects).await;
    assert!(outcome.failures.is_empty(), "that nothing came is no failure");
    assert_eq!(outcome.note, Some(json!(2)));
    let came: Vec<(&str, bool)> = outcome.fetched.iter().map(|it| (&*it.0.path, it.1.is_ok())).collect();
    assert_eq!(came, [("/apis/one", true), ("/no path", false)]);
    let came: Vec<(&str, bool)> = outcome.fetched_for_all.iter().map(|it| (&*it.0.path, it.1.is_ok())).collect();
    assert_eq!(came, [("/apis/two", true)]);
    assert_eq!(seen.begun.len(), 2, "what is no path is not asked for");
}
