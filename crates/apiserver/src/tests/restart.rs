//! A second start over the same store.

use std::time::Duration;

use corten_api::resources::CLUSTER_ROLES;
use corten_store::Store;
use serde_json::{Value, json};

use super::{server, webhooks};
use crate::Server;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_restart_of_an_unchanged_cluster_writes_nothing() {
    let config = server::config();
    let (store, pki) = (config.store.clone(), config.pki.clone());
    Server::start(config).await.expect("an empty store is filled").stop().await;
    let revision = store.revision();
    assert!(revision > 30, "the first start writes the first objects, but the store is at {revision}");

    let again = crate::Config { store: store.clone(), pki, ..server::config() };
    Server::start(again).await.expect("a filled store is read").stop().await;
    assert_eq!(Store::revision(&*store), revision);
}

/// Only at a server that runs can a webhook be taken away that refuses all, as when the Pod that answers it is down, too.
#[tokio::test]
async fn what_refuses_the_clusters_own_objects_does_not_keep_the_server_from_starting() {
    const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit";
    let config = server::config();
    let (store, pki) = (config.store.clone(), config.pki.clone());
    let first = Server::start(config).await.expect("an empty store is filled");
    let deleted = webhooks::ask(&first, "DELETE", ROLE, &Value::Null).await;
    assert_eq!(deleted.code, 200, "{}", deleted.message());
    let hook = json!({
        "name": "all.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "url": "https://127.0.0.1:1/" },
        "rules": [{ "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"] }],
    });
    webhooks::configure(&first, webhooks::VALIDATING, "all", &[hook]).await;
    first.stop().await;

    let again = crate::Config { store, pki, ..server::config() };
    let server = Server::start(again).await.expect("a cluster that is not new");
    assert_eq!(webhooks::ask(&server, "GET", ROLE, &Value::Null).await.code, 404, "its webhook is still there");
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}/all", webhooks::VALIDATING);
    let roles = server.caches().get(&CLUSTER_ROLES).expect("a row of the table").events();
    let n_events = roles.count();
    assert_eq!(webhooks::ask(&server, "DELETE", &path, &Value::Null).await.code, 200);
    tokio::time::timeout(PATIENCE, roles.after(n_events)).await.expect("it is tried again");
    assert_eq!(webhooks::ask(&server, "GET", ROLE, &Value::Null).await.code, 200);
    server.stop().await;
}
