use serde_json::{Value, json};

use super::*;

fn get(path: &str, media_type: &'static str) -> Value {
    let found = DOCUMENTS.get(&(path.to_owned(), media_type)).unwrap_or_else(|| panic!("{path} is served"));
    serde_json::from_slice(&found.bytes).expect("documents are JSON")
}

fn entry(list: &Value, field: &str, name: &str) -> Value {
    let found = list.as_array().expect("a list").iter().find(|it| it[field] == name);
    found.unwrap_or_else(|| panic!("{name} is listed")).clone()
}

#[test]
fn resources_are_listed_as_kubernetes_lists_them() {
    let core = get("/api/v1", JSON);
    assert_eq!(core["groupVersion"], "v1");
    for (name, expected) in [
        (
            "namespaces/finalize",
            json!({ "name": "namespaces/finalize", "singularName": "", "namespaced": false, "kind": "Namespace", "verbs": ["update"] }),
        ),
        (
            "pods/eviction",
            json!({ "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"] }),
        ),
        (
            "pods/log",
            json!({ "name": "pods/log", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"] }),
        ),
    ] {
        assert_eq!(entry(&core["resources"], "name", name), expected);
    }
    let pods = entry(&core["resources"], "name", "pods");
    assert_eq!((&pods["shortNames"], &pods["categories"]), (&json!(["po"]), &json!(["all"])));
    let scale = entry(&get("/apis/apps/v1", JSON)["resources"], "name", "deployments/scale");
    assert_eq!((&scale["group"], &scale["kind"]), (&json!("autoscaling"), &json!("Scale")));
}

#[test]
fn groups_are_listed() {
    let groups = get("/apis", JSON);
    let version = json!({ "groupVersion": "apps/v1", "version": "v1" });
    assert_eq!(
        entry(&groups["groups"], "name", "apps"),
        json!({ "name": "apps", "versions": [version], "preferredVersion": version })
    );
    assert_eq!(get("/apis/apps", JSON)["kind"], "APIGroup");
    assert_eq!(get("/api", JSON)["versions"], json!(["v1"]));
}

#[test]
fn aggregated_discovery_says_all_at_once() {
    for (version, media_type) in AGGREGATED {
        let core = get("/api", media_type);
        assert_eq!(core["apiVersion"], format!("apidiscovery.k8s.io/{version}"));
        let pods = entry(&core["items"][0]["versions"][0]["resources"], "resource", "pods");
        assert_eq!(pods["scope"], "Namespaced");
        let eviction = entry(&pods["subresources"], "subresource", "eviction");
        assert_eq!(eviction["responseKind"], json!({ "group": "policy", "version": "v1", "kind": "Eviction" }));
        let names: Vec<_> = get("/apis", media_type)["items"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["metadata"]["name"].clone())
            .collect();
        assert!(names.contains(&json!("apps")) && !names.contains(&json!("")));
    }
}

#[test]
fn the_client_chooses_the_form() {
    let [(_, v2), (_, v2beta1)] = AGGREGATED;
    let client_go = format!("{v2},{v2beta1},application/json");
    for (accept, path, expected) in [
        ("", "/apis", Some(JSON)),
        ("*/*", "/apis", Some(JSON)),
        (&*client_go, "/apis", Some(v2)),
        (&*client_go, "/apis/apps/v1", Some(JSON)),
        ("application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io", "/api", Some(v2beta1)),
        ("application/json;charset=utf-8", "/api", Some(JSON)),
        ("application/vnd.kubernetes.protobuf", "/api", None),
        ("application/vnd.kubernetes.protobuf,application/json;q=0.5", "/api", Some(JSON)),
    ] {
        let answered = document(path, accept, "").map(|it| it.headers()[header::CONTENT_TYPE].clone());
        match expected {
            Some(expected) => assert_eq!(answered.expect("acceptable"), expected, "{accept} for {path}"),
            None => assert_eq!(answered.expect_err("not acceptable").code, 406, "{accept} for {path}"),
        }
    }
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let first = document("/apis", AGGREGATED[0].1, "").expect("acceptable");
    let tag = first.headers()[header::ETAG].to_str().expect("plain text").to_owned();
    assert_eq!(document("/apis", AGGREGATED[0].1, &tag).expect("acceptable").status(), 304);
    assert_eq!(document("/apis", AGGREGATED[0].1, "\"other\"").expect("acceptable").status(), 200);
}
