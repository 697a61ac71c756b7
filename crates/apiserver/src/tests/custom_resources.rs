//! Definitions come and go, and leave nothing behind.

mod bodies;
mod defaults;
mod deletion;
mod not_structural;
mod ownership;
mod publication;
mod redefined;

use corten_access::Identity;
use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_cacher::body::{Body, whole};
use corten_kinds::custom::has_condition;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::server;
use crate::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Body) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = server.answer(request.body(whole(body)).expect("a request"), None, Some(who)).await;
    (response.status().as_u16(), response.into_body())
}

async fn read(body: Body) -> Value {
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object",
        "properties": { "size": { "type": "integer", "default": 1 } } } } } });
    json!({
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }] },
    })
}

async fn define(server: &Server, definition: &Value) -> String {
    let (code, body) = ask(server, "POST", DEFINITIONS, definition).await;
    assert_eq!(code, 201, "{}", read(body).await);
    let name = definition["metadata"]["name"].as_str().expect("a name").to_owned();
    let caches = server.caches();
    let is_established = || {
        let stored = caches.get(&CUSTOM_RESOURCE_DEFINITIONS)?.get("", &name)?;
        has_condition(&stored.parse(), "Established").then_some(())
    };
    caches.until(is_established).await;
    name
}

async fn gone(server: &Server, name: &str) {
    let caches = server.caches();
    let cache = caches.get(&CUSTOM_RESOURCE_DEFINITIONS).expect("definitions are stored");
    caches.until(|| cache.get("", name).is_none().then_some(())).await;
}

fn n_alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

async fn metrics(server: &Server) -> String {
    let (_, text) = ask(server, "GET", "/metrics", &Value::Null).await;
    String::from_utf8_lossy(&text.collect().await.expect("a whole body").to_bytes()).into_owned()
}

/// Those that go on, of all kinds.
async fn n_watches(server: &Server) -> u64 {
    let text = metrics(server).await;
    let counts = text.lines().filter(|it| it.starts_with("apiserver_longrunning_requests{"));
    counts.filter_map(|it| it.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn what_comes_and_goes_a_hundred_times_leaves_nothing() {
    let server = server::started().await;
    let n_caches = server.caches().iter().count();
    let n_watches_before = n_watches(&server).await;
    let mut n_tasks = 0;
    for round in 0..100 {
        let name = define(&server, &definition("example.com", "cars", "Car")).await;
        let cars = "/apis/example.com/v1/namespaces/default/cars";
        let (code, watch) = ask(&server, "GET", &format!("{cars}?watch=true"), &Value::Null).await;
        assert_eq!(code, 200);
        let (code, created) = ask(
            &server,
            "POST",
            cars,
            &json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" } }),
        )
        .await;
        assert_eq!(code, 201, "{round}: {}", read(created).await);
        assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
        gone(&server, &name).await;
        // The watch tells of the end of its object, and ends itself.
        let told = watch.collect().await.expect("it ends").to_bytes();
        let types: Vec<Value> = told
            .split(|it| *it == b'\n')
            .filter(|it| !it.is_empty())
            .map(|it| serde_json::from_slice::<Value>(it).expect("an event")["type"].clone())
            .collect();
        assert_eq!(types, ["ADDED", "DELETED"], "{round}");
        assert_eq!(ask(&server, "GET", cars, &Value::Null).await.0, 404);
        assert_eq!(server.caches().iter().count(), n_caches);
        if round == 0 {
            n_tasks = n_alive_tasks();
        }
    }
    assert_eq!(n_watches(&server).await, n_watches_before);
    // A task that has just ended may still be counted; one that each round leaves would be a hundred.
    assert!(n_alive_tasks() <= n_tasks + 10, "{} tasks, and {n_tasks} after the first round", n_alive_tasks());
    // Nor does what is counted grow with the names there once were. What was asked last may still be counted.
    for round in 0..10 {
        let group = format!("g{round}.example.com");
        let name = define(&server, &definition(&group, "cars", "Car")).await;
        let cars = format!("/apis/{group}/v1/namespaces/default/cars");
        let car = json!({ "apiVersion": format!("{group}/v1"), "kind": "Car", "metadata": { "name": "a" } });
        assert_eq!(ask(&server, "POST", &cars, &car).await.0, 201);
        assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
        gone(&server, &name).await;
        assert_eq!(ask(&server, "GET", &cars, &Value::Null).await.0, 404);
    }
    let name = define(&server, &definition("last.example.com", "cars", "Car")).await;
    assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
    gone(&server, &name).await;
    let metrics = metrics(&server).await;
    let n_left = (0..9).filter(|it| metrics.contains(&format!("g{it}.example.com"))).count();
    assert_eq!(n_left, 0);
    server.stop().await;
}

/// Nothing outlives its definition, which another of the same name may take the place of at once.
#[tokio::test]
async fn nothing_is_made_of_a_definition_that_has_gone_however_soon() {
    let server = server::started().await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" } });
    let definition = definition("example.com", "cars", "Car");
    for round in 0..50 {
        let name = define(&server, &definition).await;
        let (_, body) = ask(&server, "GET", cars, &Value::Null).await;
        assert_eq!(read(body).await["items"], json!([]), "{round}");
        // Whoever serves it has only just said that it is established.
        assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
        gone(&server, &name).await;
        let (code, body) = ask(&server, "POST", cars, &car).await;
        assert!(matches!(code, 404 | 405), "{round}: {code} {}", read(body).await);
        // Whether the next one is served by then or not.
        assert_eq!(ask(&server, "POST", DEFINITIONS, &definition).await.0, 201);
        ask(&server, "POST", cars, &car).await;
        assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
        gone(&server, &name).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_start_finds_all_that_was_defined() {
    let config = server::config();
    let (store, pki) = (config.store.clone(), config.pki.clone());
    let server = Server::start(config).await.expect("a server");
    define(&server, &definition("example.com", "cars", "Car")).await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    assert_eq!(
        ask(
            &server,
            "POST",
            cars,
            &json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "spec": {} })
        )
        .await
        .0,
        201
    );
    server.stop().await;
    let revision = corten_store::Store::revision(&*store);

    let again = crate::Config { store: store.clone(), pki, ..server::config() };
    let server = Server::start(again).await.expect("a second start");
    let (code, body) = ask(&server, "GET", &format!("{cars}/a"), &Value::Null).await;
    assert_eq!((code, read(body).await["spec"].clone()), (200, json!({ "size": 1 })));
    server.stop().await;
    assert_eq!(corten_store::Store::revision(&*store), revision, "nothing is written that was written before");
}

#[tokio::test]
async fn no_definition_takes_the_place_of_what_is_built_in() {
    let server = server::started().await;
    for (group, plural, kind) in [
        ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"),
        ("networking.k8s.io", "ingresses", "Ingress"),
    ] {
        let mut shadow = definition(group, plural, kind);
        shadow["metadata"]["annotations"]["api-approved.kubernetes.io"] =
            "https://github.com/kubernetes/kubernetes/pull/1".into();
        define(&server, &shadow).await;
        let collection = format!("/apis/{group}/v1/{plural}");
        let (code, list) = ask(&server, "GET", &collection, &Value::Null).await;
        assert_eq!(code, 200);
        // What is listed is what was there before, and not what the definition describes.
        let list = read(list).await;
        assert_eq!(list["kind"], format!("{kind}List"));
        let one = json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": { "name": "a" }, "spec": { "size": 7 } });
        let (code, _) = ask(&server, "POST", &format!("/apis/{group}/v1/namespaces/default/{plural}"), &one).await;
        assert!(code >= 400, "{group}: {code}");
    }
    server.stop().await;
}

/// What is stored stands under keys that scope and plural are part of.
#[tokio::test]
async fn what_is_served_keeps_its_scope_and_its_kind() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    let path = format!("{DEFINITIONS}/{name}");
    for (pointer, value) in [("/spec/scope", "Cluster"), ("/spec/names/kind", "Auto")] {
        let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
        *changed.pointer_mut(pointer).expect("a field") = value.into();
        let (code, body) = ask(&server, "PUT", &path, &changed).await;
        let status = read(body).await;
        let message = status["message"].as_str().unwrap_or_default();
        assert!(code == 422 && message.contains(&format!("{value:?}: field is immutable")), "{code} {message}");
    }
    server.stop().await;
}

/// As lists of Unstructured objects do.
#[tokio::test]
async fn items_of_lists_say_what_they_are() {
    let server = server::started().await;
    define(&server, &definition("example.com", "cars", "Car")).await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    assert_eq!(
        ask(
            &server,
            "POST",
            cars,
            &json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" } })
        )
        .await
        .0,
        201
    );
    let list = read(ask(&server, "GET", cars, &Value::Null).await.1).await;
    let item = &list["items"][0];
    assert_eq!((&item["kind"], &item["apiVersion"]), (&json!("Car"), &json!("example.com/v1")), "{list}");
    assert_eq!(item["metadata"]["name"], "a");
    server.stop().await;
}

#[tokio::test]
async fn who_asks_for_a_deprecated_version_is_warned() {
    let server = server::started().await;
    let mut two = definition("example.com", "cars", "Car");
    let versions = two["spec"]["versions"].as_array_mut().expect("versions");
    let mut old = versions[0].clone();
    for (field, value) in [("name", json!("v1beta1")), ("storage", json!(false)), ("deprecated", json!(true))] {
        old[field] = value;
    }
    let mut older = old.clone();
    (older["name"], older["deprecationWarning"]) = (json!("v1alpha1"), json!("cars of old are no longer built"));
    versions.extend([old, older]);
    define(&server, &two).await;
    for (version, expected) in [
        ("v1", None),
        ("v1beta1", Some("299 - \"example.com/v1beta1 Car is deprecated\"")),
        ("v1alpha1", Some("299 - \"cars of old are no longer built\"")),
    ] {
        let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
        let path = format!("/apis/example.com/{version}/namespaces/default/cars");
        let request = Request::builder().uri(path).body(whole("")).expect("a request");
        let answer = server.answer(request, None, Some(who)).await;
        let warning = answer.headers().get("warning").map(|it| it.to_str().expect("text"));
        assert_eq!(warning, expected, "{version}");
    }
    server.stop().await;
}

/// Of a definition whose schema has `properties`.
fn shaped(properties: &Value) -> Value {
    let mut made = definition("example.com", "cars", "Car");
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = properties.clone();
    made
}

#[tokio::test]
async fn resources_within_are_resources() {
    let server = server::started().await;
    let template = json!({ "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true });
    let spec = json!({ "type": "object", "properties": { "templates": { "type": "array", "items": template } } });
    define(&server, &shaped(&json!({ "spec": spec }))).await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let of = |name: &str, template: &Value| json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": name }, "spec": { "templates": [template] } });
    for (template, expected) in [
        (json!({}), "spec.templates[0].apiVersion: Required value: must not be empty"),
        (json!({ "apiVersion": "a/b/c", "kind": "A" }), "unexpected GroupVersion string: a/b/c"),
        (
            json!({ "apiVersion": "v1", "kind": "a b" }),
            "spec.templates[0].kind: Invalid value: \"a b\": may have mixed case",
        ),
        (json!({ "apiVersion": 1, "kind": "A" }), "spec.templates[0].apiVersion: Invalid value: 1: must be a string"),
        (
            json!({ "apiVersion": "v1", "kind": "A", "metadata": { "labels": { "a b": "c" } } }),
            "spec.templates[0].metadata.labels: Invalid value: \"a b\"",
        ),
    ] {
        let (code, refused) = ask(&server, "POST", cars, &of("a", &template)).await;
        let refused = read(refused).await["message"].to_string().replace("\\\"", "\"");
        assert!(code == 422 && refused.contains(expected), "{code} {refused}");
    }
    let whole = json!({ "apiVersion": "v1", "kind": "A", "metadata": { "name": "x", "odd": 1 }, "more": { "odd": 1 } });
    let (code, made) = ask(&server, "POST", cars, &of("a", &whole)).await;
    let made = read(made).await;
    assert_eq!((code, &made["spec"]["templates"][0]["metadata"]), (201, &json!({ "name": "x" })), "{made}");
    assert_eq!(made["spec"]["templates"][0]["more"], json!({ "odd": 1 }));
    let mut odd = of("b", &whole);
    odd["metadata"]["odd"] = json!(2);
    let (code, refused) = ask(&server, "POST", &format!("{cars}?fieldValidation=Strict"), &odd).await;
    let told =
        "strict decoding error: unknown field \"metadata.odd\", unknown field \"spec.templates[0].metadata.odd\"";
    let refused = read(refused).await["message"].as_str().expect("text").to_owned();
    assert!(code == 400 && refused.ends_with(told), "{code} {refused}");
    server.stop().await;
}

#[tokio::test]
async fn rules_that_were_not_asked_are_spoken_of() {
    let server = server::started().await;
    let size = json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 0" }] });
    define(&server, &shaped(&json!({ "size": size }))).await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let (code, refused) = ask(
        &server,
        "POST",
        cars,
        &json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "size": "x" }),
    )
    .await;
    let refused = read(refused).await["message"].to_string();
    let note = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    assert!(code == 422 && refused.contains(note), "{code} {refused}");
    let strict = format!("{cars}?fieldValidation=Strict");
    let (code, refused) = ask(
        &server,
        "POST",
        &strict,
        &json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "odd": 1 }),
    )
    .await;
    assert_eq!(
        (code, &read(refused).await["message"]),
        (400, &json!("Car in version \"v1\" cannot be handled as a Car: strict decoding error: unknown field \"odd\""))
    );
    server.stop().await;
}

/// One part of the schema is compiled; asked are the object as a whole, the list, and each of its items.
#[tokio::test]
async fn the_rules_of_each_part_of_a_schema_are_measured() {
    let server = server::started().await;
    let size = json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 0" }] });
    define(&server, &shaped(&json!({ "sizes": { "type": "array", "maxItems": 5, "items": size } }))).await;
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a" }, "sizes": [1, 2] });
    let (code, said) = ask(&server, "POST", "/apis/example.com/v1/namespaces/default/cars", &car).await;
    assert_eq!(code, 201, "{}", read(said).await);
    let measured = server.metrics().text(Vec::new());
    for line in
        ["apiserver_cel_compilation_duration_seconds_count 1", "apiserver_cel_evaluation_duration_seconds_count 4"]
    {
        assert!(measured.lines().any(|it| it == line), "{line} is missing:\n{measured}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_protected_group_says_by_what_leave() {
    let server = server::started().await;
    let mut made = definition("cars.k8s.io", "cars", "Car");
    let (code, refused) = ask(&server, "POST", DEFINITIONS, &made).await;
    let refused = read(refused).await["message"].to_string();
    assert!(
        code == 422 && refused.contains("metadata.annotations[api-approved.kubernetes.io]: Required value"),
        "{refused}"
    );
    made["metadata"]["annotations"]["api-approved.kubernetes.io"] = "unapproved, a trial".into();
    let name = define(&server, &made).await;
    let told = |it: &Value| {
        let conditions = it["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["type"] == "KubernetesAPIApprovalPolicyConformant").unwrap_or_default()
    };
    let stored =
        server.caches().get(&CUSTOM_RESOURCE_DEFINITIONS).and_then(|it| it.get("", &name)).expect("it is stored");
    let condition = told(&stored.parse());
    assert_eq!(
        (&condition["status"], &condition["reason"], &condition["message"]),
        (&json!("False"), &json!("UnapprovedAnnotation"), &json!("not approved: \"unapproved, a trial\""))
    );
    // What it says is told when it changes, though nothing else does.
    let link = "https://github.com/kubernetes/kubernetes/pull/1";
    let path = format!("{DEFINITIONS}/{name}");
    let (_, current) = ask(&server, "GET", &path, &Value::Null).await;
    let mut current = read(current).await;
    current["metadata"]["annotations"]["api-approved.kubernetes.io"] = link.into();
    assert_eq!(ask(&server, "PUT", &path, &current).await.0, 200);
    let caches = server.caches();
    let is_approved = || {
        let stored = caches.get(&CUSTOM_RESOURCE_DEFINITIONS)?.get("", &name)?;
        (told(&stored.parse())["status"] == "True").then_some(())
    };
    caches.until(is_approved).await;
    server.stop().await;
}

#[tokio::test]
async fn what_nobody_can_read_goes_with_its_definition() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a", "finalizers": ["example.com/held"] } });
    assert_eq!(ask(&server, "POST", cars, &car).await.0, 201);
    // Its version goes, though somebody said that nothing is stored in it.
    let path = format!("{DEFINITIONS}/{name}");
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    let mut next = changed["spec"]["versions"][0].clone();
    next["name"] = "v2".into();
    changed["spec"]["versions"][0]["storage"] = false.into();
    changed["spec"]["versions"].as_array_mut().expect("a list").push(next);
    assert_eq!(ask(&server, "PUT", &path, &changed).await.0, 200);
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    changed["status"]["storedVersions"] = json!(["v2"]);
    assert_eq!(ask(&server, "PUT", &format!("{path}/status"), &changed).await.0, 200);
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    changed["spec"]["versions"].as_array_mut().expect("a list").remove(0);
    assert_eq!(ask(&server, "PUT", &path, &changed).await.0, 200);
    let caches = server.caches();
    let is_unreadable = || caches.iter().any(|it| it.kind().is_custom() && it.snapshot().unreadables().is_some());
    caches.until(|| is_unreadable().then_some(())).await;
    assert_eq!(ask(&server, "GET", "/apis/example.com/v2/cars", &Value::Null).await.0, 500);
    assert_eq!(ask(&server, "GET", "/readyz", &Value::Null).await.0, 200, "others are served");
    assert_eq!(ask(&server, "GET", "/readyz/custom-resources", &Value::Null).await.0, 500);
    assert_eq!(ask(&server, "DELETE", &path, &Value::Null).await.0, 200);
    gone(&server, &name).await;
    assert_eq!(ask(&server, "GET", "/readyz/custom-resources", &Value::Null).await.0, 200);
    server.stop().await;
}

#[tokio::test]
async fn nothing_is_made_of_a_definition_that_goes() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let car = json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "a", "finalizers": ["example.com/held"] } });
    assert_eq!(ask(&server, "POST", cars, &car).await.0, 201);
    assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
    let caches = server.caches();
    let cache = caches.get(&CUSTOM_RESOURCE_DEFINITIONS).expect("definitions are stored");
    let is_terminating = || has_condition(&cache.get("", &name)?.parse(), "Terminating").then_some(());
    caches.until(is_terminating).await;
    let (code, refused) = ask(
        &server,
        "POST",
        cars,
        &json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": "b" } }),
    )
    .await;
    let refused = read(refused).await;
    assert_eq!(
        (code, &refused["message"]),
        (405, &json!("create not allowed while custom resource definition is terminating"))
    );
    let found = read(ask(&server, "GET", "/apis/example.com/v1", &Value::Null).await.1).await;
    assert_eq!(found["resources"][0]["verbs"], json!(["delete", "deletecollection", "get", "list", "watch"]));
    // What is there can still be changed: so it is let go.
    let mut held = read(ask(&server, "GET", &format!("{cars}/a"), &Value::Null).await.1).await;
    held["metadata"]["finalizers"] = json!([]);
    assert_eq!(ask(&server, "PUT", &format!("{cars}/a"), &held).await.0, 200);
    gone(&server, &name).await;
    server.stop().await;
}

/// Whatever is answered 201 is gone with the definition that it was made of.
#[tokio::test]
async fn what_is_made_while_a_definition_goes_does_not_outlive_it() {
    let server = server::started().await;
    let cars = "/apis/example.com/v1/namespaces/default/cars";
    for _ in 0..20 {
        let name = define(&server, &definition("example.com", "cars", "Car")).await;
        let path = format!("{DEFINITIONS}/{name}");
        let making = (0..40).map(|at| {
            let car =
                json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": format!("c{at}") } });
            let server = &server;
            async move { ask(server, "POST", cars, &car).await.0 }
        });
        let (codes, deleted) =
            tokio::join!(futures_util::future::join_all(making), ask(&server, "DELETE", &path, &Value::Null));
        assert_eq!(deleted.0, 200);
        assert!(codes.iter().all(|it| [201, 404, 405, 409].contains(it)), "{codes:?}");
        gone(&server, &name).await;
        define(&server, &definition("example.com", "cars", "Car")).await;
        let list = read(ask(&server, "GET", cars, &Value::Null).await.1).await;
        assert_eq!(list["items"], json!([]), "{codes:?}");
        assert_eq!(ask(&server, "DELETE", &path, &Value::Null).await.0, 200);
        gone(&server, &name).await;
    }
    server.stop().await;
}
