//! Requests as wide as a body allows: each is answered, with a Status that a client can read where it goes too far. Whoever
//! goes through all of an object for each of its parts does not come to the end of these.

use corten_access::Identity;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

async fn ask(server: &Server, method: &str, path: &str, media_type: &str, body: &Value) -> (u16, String) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = http::Request::builder().method(method).uri(path).header("content-type", media_type);
    let response = server.call(who, request.body(body.to_string().into()).expect("a request")).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, String::from_utf8_lossy(&bytes).into_owned())
}

fn owners(n: usize) -> Vec<Value> {
    let owner =
        |it: usize| json!({ "apiVersion": "v1", "kind": "a", "name": "b", "uid": it.to_string(), "controller": true });
    (0..n).map(owner).collect()
}

#[tokio::test]
async fn wide_objects_are_refused_in_few_words() {
    let server = server::started().await;
    let labels: Value = (0..100_000).map(|it| (format!("-{it}"), json!("a"))).collect();
    let manager = json!({ "manager": "\u{1}".repeat(1 << 18), "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:a": {} } } });
    for (what, metadata, expected) in [
        ("owners", json!({ "ownerReferences": owners(20_000) }), "metadata.ownerReferences: Too many: 20000"),
        ("controllers", json!({ "ownerReferences": owners(5_000) }), "Only one reference can have Controller"),
        ("labels", json!({ "labels": labels }), "metadata.labels: Invalid value"),
        ("finalizers", json!({ "finalizers": vec!["a"; 200_000] }), "metadata.finalizers: Invalid value"),
        ("manager", json!({ "managedFields": [manager] }), "metadata.managedFields[0].manager"),
    ] {
        let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        object["metadata"]["name"] = "a".into();
        let (code, text) = ask(&server, "POST", MAPS, JSON, &object).await;
        assert!(code == 422 && text.contains(expected), "{what}: {code} {:.300}", text);
        assert!(text.len() < 4 << 20, "{what}: {}", text.len());
    }
    let containers: Vec<Value> = (0..1_001).map(|it| json!({ "name": format!("c{it}"), "image": "i" })).collect();
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": containers } });
    let spec = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template });
    let set = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "a" }, "spec": spec });
    let (code, text) = ask(&server, "POST", "/apis/apps/v1/namespaces/default/replicasets", JSON, &set).await;
    let said = "spec.template.spec.containers: Too many: 1001: must have at most 1000 items";
    assert!(code == 422 && text.contains(said), "{code} {text:.300}");
    server.stop().await;
}

#[tokio::test]
async fn wide_patches_end() {
    let server = server::started().await;
    let data: Value = (0..60_000).map(|it| (format!("k{it}"), json!("a"))).collect();
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
    assert_eq!(ask(&server, "POST", MAPS, JSON, &map).await.0, 201);
    let path = &*format!("{MAPS}/a?dryRun=All&fieldManager=me");
    let moves: Vec<Value> = (0..10_000)
        .map(|it| if it % 2 == 0 { ("/data", "/more") } else { ("/more", "/data") })
        .map(|(from, to)| json!({ "op": "move", "from": from, "path": to }))
        .collect();
    let (code, text) = ask(&server, "PATCH", path, "application/json-patch+json", &json!(moves)).await;
    assert!(code == 422 && text.contains("Unable to complete the patch"), "{code} {text:.300}");
    let nulls: Value = (0..60_000).map(|it| (format!("k{it}"), Value::Null)).collect();
    for way in ["merge-patch", "strategic-merge-patch"] {
        let (code, text) =
            ask(&server, "PATCH", path, &format!("application/{way}+json"), &json!({ "data": nulls })).await;
        assert!(code == 200 && !text.contains("k1"), "{way}: {code} {text:.300}");
    }
    let mut other = map.clone();
    other["data"].as_object_mut().expect("an object").values_mut().for_each(|it| *it = "b".into());
    let path = format!("{MAPS}/a?dryRun=All&fieldManager=other");
    let (code, text) = ask(&server, "PATCH", &path, "application/apply-patch+yaml", &other).await;
    assert!(code == 409 && text.contains("Apply failed with 60000 conflicts"), "{code} {text:.300}");
    assert!(text.len() < 1 << 20, "{}", text.len());
    server.stop().await;
}
