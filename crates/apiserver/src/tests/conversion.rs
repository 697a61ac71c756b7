//! Custom resources of two versions and the webhook between them: what it is asked, and what a bad one cannot do.

mod attacks;
mod stored;

use corten_access::Identity;
use corten_cacher::body::{Body, whole};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::webhooks::{
    Answered, VALIDATING, ask, ask_as, configure,
    hook::{self, Hook, Reply},
    started, started_with,
};
use crate::{Config, Limits, Server, tests::server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "sockets.example.com";
const V1: &str = "/apis/example.com/v1/namespaces/default/sockets";
const V2: &str = "/apis/example.com/v2/namespaces/default/sockets";
const MERGE: &str = "application/merge-patch+json";

/// v1 has `spec.hostPort: a:1`, v2 `spec.host: a` and `spec.port: "1"`.
fn definition(conversion: &Value, storage: &str) -> Value {
    let version = |name: &str, spec: Value| {
        let schema = json!({ "type": "object", "properties": {
            "spec": { "type": "object", "properties": spec },
            "status": { "type": "object", "properties": { "open": { "type": "boolean" } } },
        } });
        json!({ "name": name, "served": true, "storage": name == storage, "schema": { "openAPIV3Schema": schema },
            "subresources": { "status": {} } })
    };
    let text = json!({ "type": "string" });
    let mut v2 = version("v2", json!({ "host": text, "port": text }));
    v2["selectableFields"] = json!([{ "jsonPath": ".spec.host" }]);
    v2["additionalPrinterColumns"] = json!([{ "name": "Host", "type": "string", "jsonPath": ".spec.host" }]);
    json!({
        "metadata": { "name": NAME },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "sockets", "kind": "Socket" },
            "conversion": conversion, "versions": [version("v1", json!({ "hostPort": text })), v2] },
    })
}

fn by_webhook(hook: &Hook) -> Value {
    json!({ "strategy": "Webhook", "webhook": {
        "clientConfig": hook.client_config(), "conversionReviewVersions": ["v7", "v1"] } })
}

/// What an honest webhook makes of an object.
fn converted(object: &Value, to: &str) -> Value {
    let mut new = object.clone();
    new["apiVersion"] = to.into();
    if to.ends_with("/v2") {
        let (host, port) = object["spec"]["hostPort"].as_str().and_then(|it| it.split_once(':')).unwrap_or_default();
        new["spec"] = json!({ "host": host, "port": port });
    } else {
        let text = |name: &str| object["spec"][name].as_str().unwrap_or_default();
        new["spec"] = json!({ "hostPort": format!("{}:{}", text("host"), text("port")) });
    }
    new
}

fn review(of: &Value, objects: &Value) -> Value {
    json!({ "kind": "ConversionReview", "apiVersion": of["apiVersion"], "response": {
        "uid": of["request"]["uid"], "result": { "status": "Success" }, "convertedObjects": objects } })
}

fn honest(of: &Value) -> Value {
    let to = of["request"]["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = of["request"]["objects"].as_array().into_iter().flatten();
    review(of, &objects.map(|it| converted(it, to)).collect())
}

async fn honest_hook() -> Hook {
    Hook::start(|it| Reply::Json(honest(it))).await
}

/// Asks until the answer is what it is to be: definitions are served a moment after they are stored.
async fn until(server: &Server, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let answered = ask(server, "GET", path, &Value::Null).await;
        if is_so(&answered.body) {
            return answered.body;
        }
        tokio::task::yield_now().await;
    }
}

async fn define(server: &Server, definition: &Value) {
    let answered = ask(server, "POST", DEFINITIONS, definition).await;
    assert_eq!(answered.code, 201, "{}", answered.body);
    let is_established = |it: &Value| corten_kinds::custom::has_condition(it, "Established");
    until(server, &format!("{DEFINITIONS}/{NAME}"), is_established).await;
}

/// Changes the definition, and waits until that is what is served.
async fn redefine(server: &Server, change: impl Fn(&mut Value)) -> Answered {
    let hash = |list: &Value| list["resources"][0]["storageVersionHash"].clone();
    let before = ask(server, "GET", "/apis/example.com/v1", &Value::Null).await.body;
    let path = format!("{DEFINITIONS}/{NAME}");
    let mut definition = ask(server, "GET", &path, &Value::Null).await.body;
    change(&mut definition);
    let answered = ask(server, "PUT", &path, &definition).await;
    if answered.code == 200 {
        until(server, "/apis/example.com/v1", |it| hash(it) != hash(&before)).await;
    }
    answered
}

async fn create(server: &Server, name: &str, host_port: &str) -> Value {
    let object = json!({ "apiVersion": "example.com/v1", "kind": "Socket", "metadata": { "name": name }, "spec": { "hostPort": host_port } });
    let answered = ask(server, "POST", V1, &object).await;
    assert_eq!(answered.code, 201, "{}", answered.body);
    answered.body
}

async fn watch(server: &Server, path: &str) -> Body {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::get(path).body(whole("")).expect("a request");
    server.answer(request, None, Some(who)).await.into_body()
}

async fn event(watch: &mut Body) -> Value {
    let frame = watch.frame().await.expect("an event").expect("no error");
    let data = frame.into_data().expect("data");
    let first = data.split(|it| *it == b'\n').next().expect("a line");
    serde_json::from_slice(first).expect("JSON")
}

#[tokio::test]
async fn every_verb_speaks_the_version_that_is_asked_for() {
    let (server, hook) = (started().await, honest_hook().await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    create(&server, "a", "h:1").await;
    assert!(hook.take_seen().is_empty(), "what is stored as it is asked for needs nobody");

    let got = ask(&server, "GET", &format!("{V2}/a"), &Value::Null).await;
    assert_eq!(
        (&got.body["apiVersion"], &got.body["spec"]),
        (&json!("example.com/v2"), &json!({ "host": "h", "port": "1" }))
    );
    let seen = hook.take_seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (&seen[0]["kind"], &seen[0]["apiVersion"]),
        (&json!("ConversionReview"), &json!("apiextensions.k8s.io/v1"))
    );
    assert!(seen[0]["request"]["objects"][0]["metadata"]["managedFields"].is_array());

    let new = json!({ "apiVersion": "example.com/v2", "kind": "Socket", "metadata": { "name": "b" }, "spec": { "host": "i", "port": "2" } });
    let made = ask(&server, "POST", V2, &new).await;
    assert_eq!((made.code, &made.body["spec"]["host"]), (201, &json!("i")), "{}", made.body);
    assert_eq!(ask(&server, "GET", &format!("{V1}/b"), &Value::Null).await.body["spec"], json!({ "hostPort": "i:2" }));

    let patch = json!({ "spec": { "port": "3" } });
    let patched = ask_as(&server, "PATCH", &format!("{V2}/b"), MERGE, &patch).await;
    assert_eq!((patched.code, &patched.body["spec"]), (200, &json!({ "host": "i", "port": "3" })), "{}", patched.body);
    assert_eq!(patched.body["metadata"]["generation"], 2);
    let status = json!({ "status": { "open": true } });
    let told = ask_as(&server, "PATCH", &format!("{V2}/b/status"), MERGE, &status).await;
    assert_eq!(
        (told.code, &told.body["status"], &told.body["apiVersion"]),
        (200, &json!({ "open": true }), &json!("example.com/v2"))
    );
    assert_eq!(ask(&server, "GET", &format!("{V1}/b"), &Value::Null).await.body["spec"], json!({ "hostPort": "i:3" }));

    // Selectors look at what the webhook made.
    let selected = ask(&server, "GET", &format!("{V2}?fieldSelector=spec.host%3Di"), &Value::Null).await;
    assert_eq!(selected.body["items"].as_array().map(Vec::len), Some(1), "{}", selected.body);
    let refused = ask(&server, "GET", &format!("{V1}?fieldSelector=spec.host%3Di"), &Value::Null).await;
    assert_eq!(refused.code, 400);
    let page = ask(&server, "GET", &format!("{V2}?limit=1"), &Value::Null).await.body;
    assert_eq!(
        (page["items"][0]["spec"]["host"].clone(), page["metadata"]["remainingItemCount"].clone()),
        (json!("h"), json!(1))
    );
    let gone = ask(&server, "DELETE", &format!("{V2}/b"), &Value::Null).await;
    assert_eq!(gone.code, 200, "{}", gone.body);
    server.stop().await;
}

#[tokio::test]
async fn who_owned_a_field_in_one_version_owns_it_in_the_other() {
    let (server, hook) = (started().await, honest_hook().await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    let apply = |version: &str, spec: Value| json!({ "apiVersion": format!("example.com/{version}"), "kind": "Socket", "metadata": { "name": "a" }, "spec": spec });
    let of = |path: &str, manager: &str| format!("{path}/a?fieldManager={manager}");
    let yaml = "application/apply-patch+yaml";
    let first = ask_as(&server, "PATCH", &of(V1, "one"), yaml, &apply("v1", json!({ "hostPort": "h:1" }))).await;
    assert_eq!(first.code, 201, "{}", first.body);
    // The same value: shared. Another one: in the way of who applied in v1, though only a webhook knows that.
    let same = ask_as(&server, "PATCH", &of(V2, "two"), yaml, &apply("v2", json!({ "host": "h" }))).await;
    assert_eq!(same.code, 200, "{}", same.body);
    let versions: Vec<&Value> =
        same.body["metadata"]["managedFields"].as_array().into_iter().flatten().map(|it| &it["apiVersion"]).collect();
    // Who changed nothing has no time, and comes first.
    assert_eq!(versions, ["example.com/v2", "example.com/v1"]);
    let other = ask_as(&server, "PATCH", &of(V2, "two"), yaml, &apply("v2", json!({ "host": "i" }))).await;
    assert_eq!(other.code, 409, "{}", other.body);
    assert!(other.message().contains("conflict with \"one\": .spec.hostPort"), "{}", other.message());
    let forced =
        ask_as(&server, "PATCH", &format!("{}&force=true", of(V2, "two")), yaml, &apply("v2", json!({ "host": "i" })))
            .await;
    assert_eq!((forced.code, &forced.body["spec"]), (200, &json!({ "host": "i", "port": "1" })), "{}", forced.body);
    server.stop().await;
}

#[tokio::test]
async fn an_event_is_converted_once_however_many_watch_and_a_list_in_few_questions() {
    let (server, hook) = (started().await, honest_hook().await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    let path = format!("{V2}?watch=true");
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(watch(&server, &path).await);
    }
    create(&server, "a", "h:1").await;
    let events = futures_util::future::join_all(watches.iter_mut().map(event)).await;
    assert!(events.iter().all(|it| *it == events[0] && it["type"] == "ADDED" && it["object"]["spec"]["host"] == "h"));
    assert_eq!(hook.take_seen().len(), 1);
    drop(watches);

    for n in 0..1200 {
        create(&server, &format!("n{n}"), "h:1").await;
    }
    let list = ask(&server, "GET", V2, &Value::Null).await.body;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1201));
    assert!(list["items"].as_array().into_iter().flatten().all(|it| it["spec"]["host"] == "h"));
    let seen = hook.take_seen();
    assert!(seen.len() <= 5, "{} questions", seen.len());
    assert_eq!(ask(&server, "GET", V2, &Value::Null).await.body["items"], list["items"]);
    assert!(hook.take_seen().is_empty(), "what was converted is kept");
    server.stop().await;
}

/// A list that is converted is in memory until it is sent. What is too large is given in pages.
#[tokio::test]
async fn a_list_that_is_too_large_in_another_version_is_refused_and_its_pages_are_given() {
    let limits = Limits { converted_list_bytes: 6_000, ..Limits::default() };
    let server = started_with(Config { limits, ..server::config() }).await;
    let hook = honest_hook().await;
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    for n in 0..40 {
        create(&server, &format!("n{n:02}"), "h:1").await;
    }
    for path in [V2.to_owned(), format!("{V2}?resourceVersion=0"), format!("{V2}?fieldSelector=spec.host%3Dh")] {
        let refused = ask(&server, "GET", &path, &Value::Null).await;
        assert_eq!((refused.code, &refused.body["reason"]), (413, &json!("RequestEntityTooLarge")), "{path}");
        assert!(
            refused.message().contains("6000 bytes") && refused.message().contains("limit"),
            "{}",
            refused.message()
        );
    }
    let all = ask(&server, "GET", V1, &Value::Null).await;
    assert_eq!(all.body["items"].as_array().map(Vec::len), Some(40), "as it is stored it is sent as it is");
    let (mut n, mut path) = (0, format!("{V2}?limit=5"));
    loop {
        let page = ask(&server, "GET", &path, &Value::Null).await;
        assert_eq!(page.code, 200, "{}", page.body);
        n += page.body["items"].as_array().map_or(0, Vec::len);
        let Some(token) = page.body["metadata"]["continue"].as_str().filter(|it| !it.is_empty()) else { break };
        path = format!("{V2}?limit=5&continue={token}");
    }
    assert_eq!(n, 40);
    server.stop().await;
}

#[tokio::test]
async fn webhooks_and_policies_see_their_version() {
    let (server, hook) = (started().await, honest_hook().await);
    define(&server, &definition(&by_webhook(&hook), "v1")).await;
    let admission = Hook::start(hook::allowed).await;
    let rules =
        json!([{ "operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["sockets"] }]);
    let webhook = json!({ "name": "w.example.com", "clientConfig": admission.client_config(), "rules": rules,
        "admissionReviewVersions": ["v1"], "sideEffects": "None" });
    let another = json!({ "name": "x.example.com", "clientConfig": admission.client_config(), "rules": rules,
        "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "matchConditions": [{ "name": "all", "expression": "object == null || object.spec.host != 'x'" }] });
    configure(&server, VALIDATING, "w", &[webhook, another]).await;
    hook.take_seen();
    create(&server, "a", "h:1").await;
    assert_eq!(hook.take_seen().len(), 1, "what one of them had converted, the other one is shown");
    let seen = admission.take_seen();
    assert_eq!(seen.len(), 2);
    let request = &seen[0]["request"];
    assert_eq!(
        (&request["object"]["apiVersion"], &request["object"]["spec"]["host"]),
        (&json!("example.com/v2"), &json!("h"))
    );
    assert_eq!(request["requestKind"]["version"], "v1");
    assert_eq!(ask(&server, "DELETE", &format!("{V1}/a"), &Value::Null).await.code, 200);
    assert_eq!(admission.take_seen()[0]["request"]["oldObject"]["spec"]["port"], "1");
    server.stop().await;
}
