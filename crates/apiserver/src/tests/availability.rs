//! How long Pods stay on a silent node: what their annotation says, or their namespace's.

use serde_json::{Value, json};

use super::{quota::call, server};
use crate::Server;

const ANNOTATION: &str = "corten.dev/availability";

async fn make(server: &Server, namespace: &str, annotations: Value, tolerations: Value) -> (u16, Value) {
    let pod = json!({
        "metadata": { "generateName": "p-", "annotations": annotations },
        "spec": { "containers": [{ "name": "c", "image": "i" }], "tolerations": tolerations },
    });
    call(server, "POST", &format!("/api/v1/namespaces/{namespace}/pods"), pod).await
}

/// Of the taints of a node that is not ready and of one that is not heard of.
fn stays(pod: &Value) -> Vec<String> {
    let tolerations = pod["spec"]["tolerations"].as_array().expect("a list");
    let said = |it: &Value| {
        let key = it["key"].as_str().expect("a key").trim_start_matches("node.kubernetes.io/");
        assert_eq!((it["operator"].as_str(), it["effect"].as_str()), (Some("Exists"), Some("NoExecute")), "{it}");
        format!("{key} {}", it["tolerationSeconds"])
    };
    tolerations.iter().map(said).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_and_namespaces_say_how_long() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let namespace = json!({ "metadata": { "name": "batch", "annotations": { ANNOTATION: "best-effort" } } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces", namespace).await.0, 201);
    for namespace in ["default", "batch"] {
        let account = json!({ "metadata": { "name": "default" } });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        assert_eq!(call(&server, "POST", &path, account).await.0, 201);
    }
    let unreachable = json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 7 }]);
    for (namespace, said, tolerations, expected) in [
        ("default", json!({}), json!([]), ["not-ready 300", "unreachable 300"]),
        ("default", json!({ ANNOTATION: "high" }), json!([]), ["not-ready 10", "unreachable 10"]),
        ("default", json!({ ANNOTATION: "best-effort" }), json!([]), ["not-ready null", "unreachable null"]),
        ("batch", json!({}), json!([]), ["not-ready null", "unreachable null"]),
        ("batch", json!({ ANNOTATION: "high" }), json!([]), ["not-ready 10", "unreachable 10"]),
        // What a Pod tolerates by itself stands.
        ("batch", json!({}), unreachable, ["unreachable 7", "not-ready null"]),
    ] {
        let (code, pod) = make(&server, namespace, said, tolerations).await;
        assert_eq!((code, stays(&pod)), (201, expected.map(str::to_owned).to_vec()), "{pod}");
    }

    let path = format!("metadata.annotations[{ANNOTATION}]");
    let (code, refused) = make(&server, "default", json!({ ANNOTATION: "hihg" }), json!([])).await;
    assert_eq!((code, &refused["details"]["causes"][0]["field"]), (422, &json!(path)), "{refused}");
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains(r#"Unsupported value: "hihg": supported values: "best-effort", "high""#), "{message}");
    let namespace = json!({ "metadata": { "name": "wrong", "annotations": { ANNOTATION: "low" } } });
    let (code, refused) = call(&server, "POST", "/api/v1/namespaces", namespace).await;
    assert_eq!((code, &refused["details"]["causes"][0]["field"]), (422, &json!(path)), "{refused}");
}
