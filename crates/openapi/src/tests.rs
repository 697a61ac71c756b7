mod golden;

use prost::Message;
use serde_json::{Value, json};

use super::*;

fn parsed(document: &Document) -> Value {
    serde_json::from_slice(&document.plain()).expect("documents are JSON")
}

/// Every `$ref` of a document leads somewhere.
fn assert_complete(document: &Value, prefix: &str, schemas: &Value) {
    match document {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let name = reference.strip_prefix(prefix).unwrap_or_else(|| panic!("{reference} is below {prefix}"));
                assert!(!schemas[name].is_null(), "{name} is defined");
            }
            fields.values().for_each(|it| assert_complete(it, prefix, schemas));
        }
        Value::Array(items) => items.iter().for_each(|it| assert_complete(it, prefix, schemas)),
        _ => {}
    }
}

#[test]
fn version_3_has_a_document_per_group_and_version() {
    let index = parsed(Documents::default().index());
    for (path, document) in &document::V3.documents {
        let url = index["paths"][path]["serverRelativeURL"].as_str().expect("an address");
        assert_eq!(url, format!("/openapi/v3/{path}?hash={}", document.hash));
        let document = parsed(document);
        assert_eq!(document["openapi"], "3.0.0");
        assert_complete(&document, "#/components/schemas/", &document["components"]["schemas"]);
    }
    let paths: Vec<&str> = document::V3.documents.keys().map(String::as_str).collect();
    assert!(paths.contains(&"api/v1") && paths.contains(&"apis/apps/v1"), "{paths:?}");
}

#[test]
fn kubectl_finds_server_side_validation() {
    let document = parsed(&document::V3.documents["apis/apps/v1"]);
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({ "group": "apps", "version": "v1", "kind": "Deployment" })
    );
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    let parameters = patch["parameters"].as_array().expect("a list");
    for wanted in ["fieldValidation", "dryRun"] {
        let found = parameters.iter().find(|it| it["name"] == wanted).unwrap_or_else(|| panic!("{wanted} is there"));
        assert_eq!(found["in"], "query");
    }
    let content = patch["requestBody"]["content"].as_object().expect("media types");
    assert!(content.contains_key("application/strategic-merge-patch+json"));
}

#[test]
fn operations_have_kubernetes_names() {
    for (document, path, method, id, tag) in [
        ("api/v1", "/api/v1/pods", "get", "listCoreV1PodForAllNamespaces", "core_v1"),
        ("api/v1", "/api/v1/nodes/{name}", "put", "replaceCoreV1Node", "core_v1"),
        ("api/v1", "/api/v1/namespaces/{namespace}/pods", "delete", "deleteCoreV1CollectionNamespacedPod", "core_v1"),
        (
            "apis/rbac.authorization.k8s.io/v1",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "post",
            "createRbacAuthorizationV1ClusterRole",
            "rbacAuthorization_v1",
        ),
    ] {
        let operation = &parsed(&document::V3.documents[document])["paths"][path][method];
        assert_eq!((&operation["operationId"], &operation["tags"][0]), (&json!(id), &json!(tag)));
    }
}

#[test]
fn schemas_say_how_fields_merge() {
    let document = parsed(&document::V3.documents["api/v1"]);
    let schemas = &document["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.Pod"];
    assert_eq!(pod["x-kubernetes-group-version-kind"], json!([{ "group": "", "kind": "Pod", "version": "v1" }]));
    let spec = &schemas["io.k8s.api.core.v1.PodSpec"];
    assert_eq!(spec["required"], json!(["containers"]));
    let mut containers = spec["properties"]["containers"].clone();
    let description = containers.as_object_mut().expect("an object").remove("description").expect("a description");
    assert!(description.as_str().expect("text").starts_with("List of containers belonging to the pod."));
    assert_eq!(
        containers,
        json!({
            "type": "array",
            "items": { "$ref": "#/components/schemas/io.k8s.api.core.v1.Container" },
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-patch-merge-key": "name",
            "x-kubernetes-patch-strategy": "merge",
        })
    );
    assert_eq!(spec["properties"]["nodeSelector"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(spec["properties"]["terminationGracePeriodSeconds"]["format"], "int64");
    assert_eq!(
        pod["properties"]["spec"]["allOf"],
        json!([{ "$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec" }])
    );
    assert_eq!(pod["properties"]["spec"]["default"], json!({}));
    let list = &schemas["io.k8s.api.core.v1.PodList"];
    assert_eq!(list["x-kubernetes-group-version-kind"], json!([{ "group": "", "kind": "PodList", "version": "v1" }]));
    assert!(schemas["io.k8s.api.apps.v1.Deployment"].is_null(), "a document holds what its group needs");
}

#[test]
fn connections_are_operations_too() {
    let document = parsed(&document::V3.documents["api/v1"]);
    let exec = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/exec"];
    assert_eq!(exec["post"]["x-kubernetes-action"], "connect");
    assert_eq!(exec["post"]["operationId"], "connectCoreV1PostNamespacedPodExec");
    assert_eq!(exec["get"]["x-kubernetes-group-version-kind"]["kind"], "PodExecOptions");
    let names: Vec<&Value> = exec["parameters"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"]);
}

#[test]
fn version_2_is_the_same_in_both_forms() {
    let document = parsed(Documents::default().v2_json());
    assert_eq!(document["swagger"], "2.0");
    assert_complete(&document, "#/definitions/", &document["definitions"]);
    let message = gnostic::v2::Document::decode(&*Documents::default().v2_protobuf().plain()).expect("it is protobuf");

    let definitions = message.definitions.expect("definitions are there").additional_properties;
    assert_eq!(definitions.len(), document["definitions"].as_object().expect("an object").len());
    let find = |name: &str| {
        let found = definitions.iter().find(|it| it.name == name).and_then(|it| it.value.clone());
        found.unwrap_or_else(|| panic!("{name} is defined"))
    };
    let pod = find("io.k8s.api.core.v1.Pod");
    assert!(pod.description.starts_with("Pod is a collection of containers"), "{}", pod.description);
    let extension = &pod.vendor_extension[0];
    assert_eq!(extension.name, "x-kubernetes-group-version-kind");
    let yaml: Value = serde_json::from_str(&extension.value.as_ref().expect("a value").yaml).expect("JSON is YAML");
    assert_eq!(yaml, json!([{ "group": "", "kind": "Pod", "version": "v1" }]));
    let spec = find("io.k8s.api.core.v1.PodSpec");
    assert_eq!(spec.required, ["containers"]);
    let fields = spec.properties.expect("fields are there").additional_properties;
    let containers = fields.iter().find(|it| it.name == "containers").and_then(|it| it.value.as_ref());
    let containers = containers.expect("containers are there");
    assert_eq!(containers.r#type.as_ref().expect("a type").value, ["array"]);
    let items = containers.items.as_ref().expect("items are there");
    assert_eq!(items.schema[0].reference, "#/definitions/io.k8s.api.core.v1.Container");

    let paths = message.paths.expect("paths are there").path;
    assert_eq!(paths.len(), document["paths"].as_object().expect("an object").len());
    let path = "/api/v1/namespaces/{namespace}/pods/{name}";
    let item = paths.iter().find(|it| it.name == path).and_then(|it| it.value.clone()).expect("pods have a path");
    let patch = item.patch.expect("pods can be patched");
    let queries = patch.parameters.iter().filter_map(|it| it.parameter.as_ref()?.non_body.as_ref()?.query.as_ref());
    assert!(queries.into_iter().any(|it| it.name == "dryRun"));
}

#[test]
fn documents_are_small() {
    let kept: usize = document::V3.documents.values().map(|it| it.compressed.len()).sum();
    let kept =
        kept + Documents::default().v2_json().compressed.len() + Documents::default().v2_protobuf().compressed.len();
    assert!(kept < 2 << 20, "{kept} bytes are kept");
}

#[test]
fn who_is_sent_a_document_at_the_same_time_shares_its_text() {
    let documents = Documents::default();
    let document = documents.v2_protobuf();
    let (first, second) = (document.plain(), document.plain());
    assert_eq!(first.as_ptr(), second.as_ptr(), "one text for both");
    drop(first);
    assert!(document.is_read(), "one is sent it still");
    drop(second);
    assert!(!document.is_read(), "nobody is sent it any more");
}
