use corten_state_metrics::KINDS;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::*;
use crate::{
    Server,
    tests::{metrics::call, server},
};

async fn text(kinds: Vec<KindState>, kept_bytes_max: usize) -> String {
    let pieces: Vec<Vec<u8>> = pieces(kinds, kept_bytes_max).collect().await;
    String::from_utf8(pieces.concat()).expect("it is text")
}

/// However little is kept, the text is the same; and each family is whole.
#[tokio::test]
async fn families_stand_together_however_little_is_kept() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    for name in ["a", "b", "c"] {
        let quota = json!({ "metadata": { "name": name }, "spec": { "hard": { "pods": "3" } } });
        let (code, told) = call(&server, "POST", "/api/v1/namespaces/default/resourcequotas", &quota).await;
        assert_eq!(code, 201, "{told}");
    }
    let map = json!({ "metadata": { "name": "m" } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/configmaps", &map).await.0, 201);
    let caches = server.state().caches();
    let whole = text(snapshots(caches, KINDS), KEPT_BYTES_MAX).await;
    assert_eq!(text(snapshots(caches, KINDS), 100).await, whole);
    assert!(whole.contains(r#"kube_resourcequota_created{namespace="default",resourcequota="b"} "#), "{whole}");
    let version = r#"kube_configmap_metadata_resource_version{namespace="default",configmap="m"} "#;
    assert!(whole.contains(version), "an object's version is told: {whole}");
    let names = whole.lines().filter(|it| !it.starts_with('#')).filter_map(|it| it.split_once('{')).map(|it| it.0);
    let mut runs: Vec<&str> = names.collect();
    runs.dedup();
    let n_runs = runs.len();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), n_runs, "a family stands apart: {whole}");
    assert_eq!(call(&server, "GET", "/metrics/state", &Value::Null).await, (200, whole));
    assert_eq!(call(&server, "POST", "/metrics/state", &Value::Null).await.0, 405);
    server.stop().await;
}
