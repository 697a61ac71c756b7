//! Many writers of one object: who names no revision is not refused because others were faster.

use std::sync::Arc;

use corten_store::backend::memory::Memory;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    quota::call,
    server,
    webhooks::{ask, ask_as},
};
use crate::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const N_WRITERS: usize = 50;

/// A server with a ConfigMap, and a store that lets every writer look before the first one commits.
async fn started() -> Server {
    let store = Arc::new(Memory::new());
    let server = Server::start(server::over(store.clone())).await.expect("an empty store is filled");
    assert_eq!(ask(&server, "POST", MAPS, &json!({ "metadata": { "name": "m" } })).await.code, 201);
    store.faults().delay(Arc::new(|| Box::pin(tokio::task::yield_now())));
    server
}

async fn data(server: &Server) -> usize {
    let (_, map) = call(server, "GET", &format!("{MAPS}/m"), Value::Null).await;
    map["data"].as_object().map_or(0, serde_json::Map::len)
}

#[tokio::test]
async fn all_patches_of_different_keys_are_written() {
    let server = started().await;
    let patches = (0..N_WRITERS).map(|it| {
        let patch = json!({ "data": { format!("k{it}"): "v" } });
        call(&server, "PATCH", "/api/v1/namespaces/default/configmaps/m", patch)
    });
    let codes: Vec<u16> = join_all(patches).await.into_iter().map(|it| it.0).collect();
    assert!(codes.iter().all(|it| *it == 200), "{codes:?}");
    assert_eq!(data(&server).await, N_WRITERS);
    server.stop().await;
}

#[tokio::test]
async fn all_applies_of_different_fields_are_written() {
    let server = started().await;
    let applies = (0..N_WRITERS).map(|it| {
        let configuration = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" },
            "data": { format!("k{it}"): "v" } });
        let (server, path) = (&server, format!("{MAPS}/m?fieldManager=m{it}"));
        async move { ask_as(server, "PATCH", &path, "application/apply-patch+yaml", &configuration).await.code }
    });
    let codes = join_all(applies).await;
    assert!(codes.iter().all(|it| *it == 200), "{codes:?}");
    assert_eq!(data(&server).await, N_WRITERS);
    server.stop().await;
}

/// Who names a revision is told that it is no longer the newest.
#[tokio::test]
async fn of_patches_that_name_a_revision_one_is_written() {
    let server = started().await;
    let (_, map) = call(&server, "GET", &format!("{MAPS}/m"), Value::Null).await;
    let revision = &map["metadata"]["resourceVersion"];
    let patches = (0..N_WRITERS).map(|it| {
        let patch = json!({ "metadata": { "resourceVersion": revision }, "data": { format!("k{it}"): "v" } });
        call(&server, "PATCH", "/api/v1/namespaces/default/configmaps/m", patch)
    });
    let codes: Vec<u16> = join_all(patches).await.into_iter().map(|it| it.0).collect();
    let count = |code| codes.iter().filter(|it| **it == code).count();
    assert_eq!((count(200), count(409)), (1, N_WRITERS - 1), "{codes:?}");
    server.stop().await;
}
