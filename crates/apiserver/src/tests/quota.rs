//! A quota is never exceeded: by many writers at once, nor by those of a server that was started again.

use corten_access::Identity;
use futures_util::future::join_all;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::{Config, Server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas";
const HARD: usize = 10;

pub(super) async fn call(server: &Server, method: &str, path: &str, body: Value) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", if method == "PATCH" { "application/merge-patch+json" } else { "application/json" })
        .body(if body.is_null() { Vec::new().into() } else { body.to_string().into() })
        .expect("a request of constants");
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let (parts, body) = server.call(admin, request).await.into_parts();
    let bytes = body.collect().await.expect("a body in memory").to_bytes();
    (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn with_quota(server: &Server) {
    let account = json!({ "metadata": { "name": "default" } });
    assert_eq!(call(server, "POST", "/api/v1/namespaces/default/serviceaccounts", account).await.0, 201);
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": HARD.to_string() } } });
    assert_eq!(call(server, "POST", QUOTA, quota).await.0, 201);
    let counted = json!({ "status": { "hard": { "pods": HARD.to_string() }, "used": { "pods": "0" } } });
    assert_eq!(call(server, "PATCH", &format!("{QUOTA}/q/status"), counted).await.0, 200);
}

/// The codes that so many creations at once are answered with.
async fn create(server: &Server, prefix: &str, count: usize) -> Vec<u16> {
    let creations = (0..count).map(|at| {
        let pod = json!({
            "metadata": { "name": format!("{prefix}-{at}") },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        });
        call(server, "POST", PODS, pod)
    });
    join_all(creations).await.into_iter().map(|it| it.0).collect()
}

async fn counted(server: &Server) -> (usize, Value) {
    let (_, pods) = call(server, "GET", PODS, Value::Null).await;
    let (_, quota) = call(server, "GET", &format!("{QUOTA}/q"), Value::Null).await;
    (pods["items"].as_array().map_or(0, Vec::len), quota["status"]["used"]["pods"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_never_exceed_it() {
    let config = server::config();
    let store = config.store.clone();
    let first = Server::start(config).await.expect("an empty store is filled");
    with_quota(&first).await;

    // Half of it, then a server that knows nothing but what is stored.
    assert!(create(&first, "a", 5).await.iter().all(|it| *it == 201));
    first.stop().await;
    let second = Server::start(Config { store, ..server::config() }).await.expect("a filled store is read");
    let codes = create(&second, "b", 64).await;
    let made = codes.iter().filter(|it| **it == 201).count();
    let refused = codes.iter().filter(|it| **it == 403).count();
    assert_eq!((made, refused), (HARD - 5, 64 - (HARD - 5)), "{codes:?}");
    assert_eq!(counted(&second).await, (HARD, json!(HARD.to_string())));

    // The loop counts anew, but from what it saw before: it is told so.
    let too_low = json!({ "status": { "used": { "pods": "3" } } });
    assert_eq!(call(&second, "PATCH", &format!("{QUOTA}/q/status"), too_low).await.0, 409);
    assert_eq!(call(&second, "DELETE", &format!("{PODS}/a-0"), Value::Null).await.0, 200);
    let right = json!({ "status": { "used": { "pods": (HARD - 1).to_string() } } });
    assert_eq!(call(&second, "PATCH", &format!("{QUOTA}/q/status"), right).await.0, 200);
    let made = create(&second, "c", 8).await.into_iter().filter(|it| *it == 201).count();
    assert_eq!(made, 1);
    second.stop().await;
}

/// Writers of two servers over one store share no turns: only the condition in the commit keeps them within the quota.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_servers_never_exceed_it() {
    let config = server::config();
    let store = config.store.clone();
    let one = Server::start(config).await.expect("an empty store is filled");
    with_quota(&one).await;
    let two = Server::start(Config { store, ..server::config() }).await.expect("a filled store is read");
    let (a, b) = tokio::join!(create(&one, "a", 32), create(&two, "b", 32));
    let made = a.iter().chain(&b).filter(|it| **it == 201).count();
    assert_eq!(made, HARD, "{a:?} {b:?}");
    assert_eq!(counted(&one).await, (HARD, json!(HARD.to_string())));
    one.stop().await;
    two.stop().await;
}
