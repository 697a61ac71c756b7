//! A watch from a revision that is yet to come: it begins at once, and is told what comes after that revision, as a watch on
//! etcd is.

use corten_access::Identity;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{
    progress::{MAPS, admin, ask, written},
    server,
};
use crate::Server;

async fn watch(server: &Server, who: Identity, revision: u64) -> Vec<Value> {
    let path = format!("{MAPS}?watch=true&timeoutSeconds=5&allowWatchBookmarks=true&resourceVersion={revision}");
    let (code, body) = ask(server, who, "GET", &path, &Value::Null).await;
    assert_eq!(code, 200);
    let frames = body.collect().await.expect("a whole body").to_bytes();
    let lines = frames.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines.map(|it| serde_json::from_slice(it).expect("one line of JSON")).collect()
}

#[tokio::test(start_paused = true)]
async fn only_what_comes_after_the_revision_is_told() {
    let server = server::started().await;
    let map = |name: &str| json!({ "metadata": { "name": name } });
    let now: u64 = written(&server, "POST", MAPS, map("before")).await.parse().expect("a number");
    let writes = async {
        tokio::task::yield_now().await;
        let mut last = now;
        for name in ["a", "b", "c"] {
            last = written(&server, "POST", MAPS, map(name)).await.parse().expect("a number");
        }
        last
    };
    let (events, last) = tokio::join!(watch(&server, admin(), now + 2), writes);
    assert!(last > now + 2, "so many writes are there: {now} {last}");
    let told: Vec<(&str, u64)> = events
        .iter()
        .map(|it| {
            let revision = it["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            (it["type"].as_str().unwrap_or_default(), revision.parse().unwrap_or(0))
        })
        .collect();
    assert!(told.contains(&("ADDED", last)), "{told:?}");
    let is_later = |it: &(&str, u64)| it.1 > now + 2 || *it == ("BOOKMARK", now + 2);
    assert!(told.iter().all(is_later), "{told:?}");

    // One that never comes is waited for until the watch's own end, which no bookmark makes earlier or later.
    let told = watch(&server, admin(), 999_999_999).await;
    let is_bookmark =
        |it: &Value| it["type"] == "BOOKMARK" && it["object"]["metadata"]["resourceVersion"] == "999999999";
    assert!(told.iter().all(is_bookmark), "{told:?}");
    server.stop().await;
}
