use serde_json::json;

use super::*;
use crate::fake::FakeApi;

const EVENTS_OF_WEB: &str = "/api/v1/namespaces/shop/events";

fn web() -> ObjectReference {
    ObjectReference { kind: "ReplicaSet".into(), namespace: "shop".into(), name: "web".into(), ..<_>::default() }
}

/// Tells and waits until all is told.
async fn tell_all(recorder: &mut EventRecorder, messages: &[&str], at: Time) {
    for message in messages {
        recorder.record(&web(), EventType::Warning, "FailedCreate", message, at);
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), recorder.run()).await;
}

fn shown(api: &FakeApi) -> Vec<(String, u64)> {
    let one = |it: &Value| (it["message"].as_str().unwrap_or_default().to_owned(), it["count"].as_u64().unwrap_or(0));
    let mut all: Vec<_> = api.objects(EVENTS_OF_WEB).iter().map(one).collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn many_words_for_one_reason_are_combined() {
    let api = FakeApi::new();
    let mut recorder = EventRecorder::new(api.client(), "replicaset-controller");
    let start = Time::from_unix_seconds(1000);
    tell_all(&mut recorder, &["p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11"], start).await;
    let combined = ("(combined from similar events): p11".to_owned(), 2);
    assert_eq!(shown(&api).len(), 10);
    assert!(shown(&api).contains(&combined), "{:?}", shown(&api));
    // What has an event of its own is counted there still; another reason is another story.
    tell_all(&mut recorder, &["p1"], start).await;
    recorder.record(&web(), EventType::Warning, "FailedDelete", "p12", start);
    tell_all(&mut recorder, &[], start).await;
    assert!(shown(&api).contains(&("p1".into(), 2)) && shown(&api).contains(&("p12".into(), 1)), "{:?}", shown(&api));
    // After ten minutes of silence words count again.
    tell_all(&mut recorder, &["p13"], start.after(Duration::from_secs(601))).await;
    assert!(shown(&api).contains(&("p13".into(), 1)), "{:?}", shown(&api));
}

#[tokio::test(start_paused = true)]
async fn a_node_tells_where_it_is() {
    let api = FakeApi::new();
    let mut recorder = EventRecorder::on_node(api.client(), "kubelet", "n1");
    tell_all(&mut recorder, &["x"], Time::from_unix_seconds(1000)).await;
    let event = &api.objects(EVENTS_OF_WEB)[0];
    assert_eq!(event["source"], json!({"component": "kubelet", "host": "n1"}));
    assert_eq!((&event["reportingComponent"], &event["reportingInstance"]), (&json!("kubelet"), &json!("n1")));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_long_is_cut() {
    let api = FakeApi::new();
    let mut recorder = EventRecorder::new(api.client(), "replicaset-controller");
    tell_all(&mut recorder, &[&"ü".repeat(MESSAGE_CHARS_MAX + 1)], Time::from_unix_seconds(1000)).await;
    let lengths: Vec<_> = shown(&api).into_iter().map(|it| it.0.chars().count()).collect();
    assert_eq!(lengths, [MESSAGE_CHARS_MAX]);
}
