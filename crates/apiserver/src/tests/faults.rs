//! What clients see when writes race, the store fails, its watch is lost, or the server starts again.

use std::sync::Arc;

use corten_access::Identity;
use corten_cacher::body::Response;
use corten_store::backend::memory::Memory;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn call(server: &Server, method: &str, path: &str, body: Value) -> Response {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder().method(method).uri(path).body(body.into()).expect("a request");
    server.call(who, request).await
}

async fn json(response: Response) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, serde_json::from_slice(&bytes).expect("JSON"))
}

async fn ask(server: &Server, method: &str, path: &str, body: Value) -> (u16, Value) {
    json(call(server, method, path, body).await).await
}

async fn next_line(watch: &mut Response) -> Value {
    let frame = watch.body_mut().frame().await.expect("the watch goes on").expect("no error");
    serde_json::from_slice(&frame.into_data().expect("data")).expect("one event")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_writers_lose_no_update_and_read_what_they_wrote() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 20;
    let server = server::started().await;
    ask(&server, "POST", PATH, json!({ "metadata": { "name": "count" }, "data": { "n": "0" } })).await;
    let path = format!("{PATH}/count");
    let writers = (0..WRITERS).map(|_| {
        let (server, path) = (server.clone(), path.clone());
        tokio::spawn(async move {
            let mut done = 0;
            while done < EACH {
                let (_, mut object) = ask(&server, "GET", &path, Value::Null).await;
                let n: u64 = object["data"]["n"].as_str().expect("a number").parse().expect("a number");
                object["data"]["n"] = (n + 1).to_string().into();
                let (code, written) = ask(&server, "PUT", &path, object).await;
                assert!(code == 200 || code == 409, "{code} {written}");
                if code == 200 {
                    done += 1;
                    let (_, read) = ask(&server, "GET", &path, Value::Null).await;
                    let version = |it: &Value| -> u64 {
                        it["metadata"]["resourceVersion"].as_str().expect("text").parse().expect("a number")
                    };
                    assert!(version(&read) >= version(&written));
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    let (_, object) = ask(&server, "GET", &path, Value::Null).await;
    assert_eq!(object["data"]["n"], (WRITERS * EACH).to_string());
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_the_store_refuses_is_an_error_and_leaves_nothing() {
    let store = Arc::new(Memory::new());
    let server = Server::start(server::over(store.clone())).await.expect("starts");
    store.faults().refuse(1);
    let (code, status) = ask(&server, "POST", PATH, json!({ "metadata": { "name": "a" } })).await;
    assert_eq!((code, &status["reason"]), (500, &json!("InternalError")));
    assert_eq!(ask(&server, "GET", &format!("{PATH}/a"), Value::Null).await.0, 404);
    assert_eq!(ask(&server, "POST", PATH, json!({ "metadata": { "name": "a" } })).await.0, 201);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watchers_of_what_changed_while_the_stores_watch_was_lost_list_again() {
    let store = Arc::new(Memory::new());
    let server = Server::start(server::over(store.clone())).await.expect("starts");
    for name in ["kept", "gone"] {
        ask(&server, "POST", PATH, json!({ "metadata": { "name": name } })).await;
    }
    let (_, list) = ask(&server, "GET", PATH, Value::Null).await;
    let version = list["metadata"]["resourceVersion"].as_str().expect("text");
    let path = format!("{PATH}?watch=true&resourceVersion={version}");
    let mut watch = call(&server, "GET", &path, Value::Null).await;
    let of_others = format!("/api/v1/namespaces/default/secrets?watch=true&resourceVersion={version}");
    let mut of_others = call(&server, "GET", &of_others, Value::Null).await;
    store.drop_watches();
    assert_eq!(ask(&server, "POST", PATH, json!({ "metadata": { "name": "new" } })).await.0, 201);
    assert_eq!(ask(&server, "DELETE", &format!("{PATH}/gone"), Value::Null).await.0, 200);
    let event = next_line(&mut watch).await;
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    assert!(watch.body_mut().frame().await.is_none());
    let (_, list) = ask(&server, "GET", PATH, Value::Null).await;
    let names: Vec<_> = list["items"].as_array().expect("items").iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["kept", "new"]);
    // What did not change is watched on.
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(ask(&server, "POST", secrets, json!({ "metadata": { "name": "s" } })).await.0, 201);
    assert_eq!(next_line(&mut of_others).await["type"], "ADDED");
    drop(of_others);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_next_server_has_everything_but_the_old_events() {
    let store = Arc::new(Memory::new());
    let first = Server::start(server::over(store.clone())).await.expect("starts");
    let (_, created) = ask(&first, "POST", PATH, json!({ "metadata": { "name": "a" } })).await;
    ask(&first, "POST", PATH, json!({ "metadata": { "name": "b" } })).await;
    first.stop().await;

    let second = Server::start(server::over(store)).await.expect("starts again");
    let (code, read) = ask(&second, "GET", &format!("{PATH}/a"), Value::Null).await;
    assert_eq!((code, &read), (200, &created));
    let version = created["metadata"]["resourceVersion"].as_str().expect("text");
    let mut watch = call(&second, "GET", &format!("{PATH}?watch=true&resourceVersion={version}"), Value::Null).await;
    assert_eq!(watch.status(), 200);
    let event = next_line(&mut watch).await;
    assert_eq!(
        (&event["type"], &event["object"]["code"], &event["object"]["reason"]),
        (&json!("ERROR"), &json!(410), &json!("Expired"))
    );
    assert!(watch.body_mut().frame().await.is_none());
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_about_every_minute() {
    let server = server::started().await;
    let path = format!("{PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds=150");
    let start = tokio::time::Instant::now();
    let mut watch = call(&server, "GET", &path, Value::Null).await;
    let mut at = Vec::new();
    while let Some(frame) = watch.body_mut().frame().await {
        let frame = frame.expect("no error").into_data().expect("data");
        assert!(frame.starts_with(br#"{"type":"BOOKMARK""#), "{frame:?}");
        at.push(start.elapsed().as_secs());
    }
    assert_eq!(at, [60, 120, 150]);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_when_they_are_old() {
    let server = server::started().await;
    let (_, first) = ask(&server, "POST", PATH, json!({ "metadata": { "name": "first" } })).await;
    for n in 0..10 {
        tokio::time::advance(std::time::Duration::from_secs(40)).await;
        ask(&server, "POST", PATH, json!({ "metadata": { "name": format!("later-{n}") } })).await;
    }
    let (_, last) = ask(&server, "GET", &format!("{PATH}/later-8"), Value::Null).await;
    for (object, expected) in [(first, "ERROR"), (last, "ADDED")] {
        let version = object["metadata"]["resourceVersion"].as_str().expect("text");
        let path = format!("{PATH}?watch=true&resourceVersion={version}");
        let mut watch = call(&server, "GET", &path, Value::Null).await;
        assert_eq!(next_line(&mut watch).await["type"], expected);
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_request() {
    let mut config = server::config();
    config.journals = Arc::new(Panicking);
    let server = Server::start(config).await.expect("starts");
    let path = "/apis/corten.dev/v1/namespaces/default/journals/pods.a";
    assert_eq!(ask(&server, "GET", path, Value::Null).await.0, 500);
    assert_eq!(ask(&server, "GET", PATH, Value::Null).await.0, 200);
    server.stop().await;
}

struct Panicking;

impl crate::JournalSource for Panicking {
    fn decisions(&self, _: &corten_meta::Resource, _: &corten_meta::Key) -> Vec<corten_reconcile::Decision> {
        panic!("a journal that breaks");
    }
}

#[tokio::test]
async fn a_store_that_refuses_writes_makes_the_server_not_ready() {
    let store = Arc::new(Memory::new());
    let server = Server::start(server::over(store.clone())).await.expect("a server over an empty store starts");
    let text = async |path: &str| {
        let response = call(&server, "GET", path, Value::Null).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
        (code, String::from_utf8(bytes.to_vec()).expect("text"))
    };
    assert_eq!(text("/readyz").await, (200, "ok".into()));

    store.faults().refuse(1);
    let (code, _) = ask(&server, "POST", PATH, json!({ "metadata": { "name": "lost" } })).await;
    assert_eq!(code, 500);
    let (code, answer) = text("/readyz").await;
    assert_eq!(code, 500);
    assert!(answer.contains("[-]etcd-readiness failed: the store cannot write"), "{answer}");
    assert!(answer.ends_with("readyz check failed\n"), "{answer}");
    assert_eq!(text("/readyz?exclude=etcd-readiness").await.0, 200);
    assert_eq!(text("/readyz/etcd-readiness").await.0, 500);
    assert_eq!(text("/livez").await.0, 200, "reads are served");

    let (code, _) = ask(&server, "POST", PATH, json!({ "metadata": { "name": "kept" } })).await;
    assert_eq!(code, 201);
    assert_eq!(text("/readyz").await, (200, "ok".into()));
    server.stop().await;
}
