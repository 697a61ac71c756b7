//! `/progress`: each line says what has changed since the line before, and nothing can be seen later than it says.

use std::time::Duration;

use bytes::Bytes;
use corten_access::Identity;
use corten_cacher::body::{Body, whole};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server;
use crate::Server;

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

pub(super) fn admin() -> Identity {
    Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"])
}

pub(super) async fn ask(server: &Server, who: Identity, method: &str, path: &str, body: &Value) -> (u16, Body) {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = server.answer(request.body(whole(body)).expect("a request"), None, Some(who)).await;
    (response.status().as_u16(), response.into_body())
}

/// The revision that the answer, an object, is at.
pub(super) async fn written(server: &Server, method: &str, path: &str, body: Value) -> String {
    let (code, answer) = ask(server, admin(), method, path, &body).await;
    let answer = answer.collect().await.expect("a whole body").to_bytes();
    assert!((200..300).contains(&code), "{method} {path}: {code} {answer:?}");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    answer["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned()
}

async fn line(progress: &mut Body) -> Option<Value> {
    let frame = progress.frame().await?.expect("no error").into_data().expect("data");
    let line: Value = serde_json::from_slice(&frame).expect("one line of JSON");
    assert_eq!(line["type"], "BOOKMARK");
    Some(line["object"].clone())
}

#[tokio::test(start_paused = true)]
async fn each_line_says_what_changed_since_the_line_before() {
    let server = server::started().await;
    let before = written(&server, "POST", MAPS, json!({ "metadata": { "name": "before" } })).await;
    let (code, mut progress) = ask(&server, admin(), "GET", "/progress", &Value::Null).await;
    assert_eq!(code, 200);

    let first = line(&mut progress).await.expect("a first line");
    assert_eq!(first["revision"], before.as_str(), "{first}");
    assert_eq!(first["changed"]["configmaps"], before.as_str(), "{first}");
    for name in ["pods", "replicasets.apps", "leases.coordination.k8s.io", "events", "events.events.k8s.io"] {
        assert!(first["changed"][name].is_string(), "the first line names all: {name} in {first}");
    }

    let map = written(&server, "POST", MAPS, json!({ "metadata": { "name": "a" } })).await;
    let second = line(&mut progress).await.expect("a line for a change");
    assert_eq!(second, json!({ "revision": map, "changed": { "configmaps": map } }));

    // Two resources within one line, each at its own newest change.
    let template = json!({ "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let set = json!({ "metadata": { "name": "web" },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template } });
    let set = written(&server, "POST", REPLICA_SETS, set).await;
    written(&server, "DELETE", &format!("{MAPS}/a?propagationPolicy=Orphan"), Value::Null).await;
    let third = line(&mut progress).await.expect("a line for two changes");
    assert_eq!(third["changed"]["replicasets.apps"], set.as_str(), "{third}");
    assert_eq!(third["changed"]["configmaps"], third["revision"], "the deletion is the newest change: {third}");
    assert_eq!(third["changed"].as_object().map(serde_json::Map::len), Some(2), "{third}");
    server.stop().await;
}

/// A watch that has told the change which a line names has nothing more to tell up to the line's revision.
#[tokio::test(start_paused = true)]
async fn what_a_line_names_can_be_seen() {
    let server = server::started().await;
    let (_, mut progress) = ask(&server, admin(), "GET", "/progress", &Value::Null).await;
    line(&mut progress).await.expect("a first line");
    for n in 0..20 {
        let path = format!("{MAPS}?watch=true&timeoutSeconds=5");
        let (_, mut watch) = ask(&server, admin(), "GET", &path, &Value::Null).await;
        let made = written(&server, "POST", MAPS, json!({ "metadata": { "name": format!("m{n}") } })).await;
        let told = line(&mut progress).await.expect("a line for a change");
        assert_eq!(told["changed"]["configmaps"], made.as_str());
        let list = written(&server, "GET", MAPS, Value::Null).await;
        assert_eq!(list, made, "a list after the line is not older than it");
        let revision = format!("\"resourceVersion\":\"{made}\"");
        let mut is_told = false;
        while !is_told {
            let events = watch.frame().await.expect("the change is told").expect("no error").into_data().expect("data");
            is_told = String::from_utf8_lossy(&events).contains(&revision);
        }
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn it_is_a_right_of_its_own_and_ends_after_a_minute() {
    let server = server::started().await;
    let jane = Identity::new("jane", &["system:authenticated"]);
    assert_eq!(ask(&server, jane, "GET", "/progress", &Value::Null).await.0, 403);
    assert_eq!(ask(&server, admin(), "POST", "/progress", &Value::Null).await.0, 405);
    assert_eq!(ask(&server, admin(), "GET", "/progress/pods", &Value::Null).await.0, 404);

    let (_, mut progress) = ask(&server, admin(), "GET", "/progress", &Value::Null).await;
    let begun = Instant::now();
    line(&mut progress).await.expect("a first line");
    assert_eq!(line(&mut progress).await, None, "nothing changes, nothing is told");
    let lasted = begun.elapsed();
    assert!(lasted >= Duration::from_secs(59) && lasted <= Duration::from_secs(61), "{lasted:?}");
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_server() {
    let server = server::started().await;
    let (_, mut progress) = ask(&server, admin(), "GET", "/progress", &Value::Null).await;
    line(&mut progress).await.expect("a first line");
    let begun = Instant::now();
    server.stop().await;
    assert_eq!(line(&mut progress).await, None);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
