//! Expressions, patterns and parameters that are made to take long: each is refused in words, and others are served meanwhile.

use std::{sync::Arc, time::Duration};

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_kinds::custom::has_condition;
use serde_json::{Value, json};

use super::{quota::call, server};
use crate::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Beyond all that a second of work takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
const OUT_OF_BUDGET: &str = "running out of cost budget";

fn definition(spec: &Value) -> Value {
    json!({
        "metadata": { "name": "bombs.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "bombs", "kind": "Bomb" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": spec } } } }] },
    })
}

async fn define(server: &Server, spec: &Value) {
    let (code, status) = call(server, "POST", DEFINITIONS, definition(spec)).await;
    assert_eq!(code, 201, "{status}");
    let caches = server.caches();
    let is_established = || {
        let stored = caches.get(&CUSTOM_RESOURCE_DEFINITIONS)?.get("", "bombs.example.com")?;
        has_condition(&stored.parse(), "Established").then_some(())
    };
    caches.until(is_established).await;
}

/// What many ask at the same time is refused, and who asks something else is answered.
async fn is_refused_and_others_served(server: &Arc<Server>, path: &'static str, body: &Value, words: &str) {
    let bombs: Vec<_> = (0..2)
        .map(|_| {
            let (server, body) = (server.clone(), body.clone());
            tokio::spawn(async move { call(&server, "POST", path, body).await })
        })
        .collect();
    let served = tokio::time::timeout(PATIENCE, call(server, "GET", "/api/v1/namespaces", Value::Null)).await;
    assert_eq!(served.expect("others are served").0, 200);
    for bomb in bombs {
        let (code, status) = tokio::time::timeout(PATIENCE, bomb).await.expect("it ends").expect("nothing panics");
        let message = status["message"].as_str().unwrap_or_default();
        assert!(
            matches!(code, 403 | 422) && message.contains(words),
            "{code}: {}",
            message.chars().take(600).collect::<String>()
        );
    }
}

/// The items of a list share what their object may take, whatever upstream charges for a pattern that an item holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn patterns_in_items() {
    let server = Arc::new(Server::start(server::config()).await.expect("an empty store is filled"));
    let text = |most: u64| json!({ "type": "string", "maxLength": most });
    let item = json!({ "type": "object", "properties": { "s": text(10), "r": text(16) },
        "x-kubernetes-validations": [{ "rule": "self.s.matches(self.r) || true" }] });
    define(
        &server,
        &json!({ "type": "object", "properties": { "l": { "type": "array", "maxItems": 10_000, "items": item } } }),
    )
    .await;
    let items: Vec<Value> =
        (0..10_000).map(|it| json!({ "s": "a", "r": format!("\\pL{{25}}a{{{}}}", it % 900) })).collect();
    let bomb =
        json!({ "apiVersion": "example.com/v1", "kind": "Bomb", "metadata": { "name": "b" }, "spec": { "l": items } });
    is_refused_and_others_served(&server, "/apis/example.com/v1/namespaces/default/bombs", &bomb, OUT_OF_BUDGET).await;
    let items: Vec<Value> = (0..1_000).map(|_| json!({ "s": "ab", "r": "^[a-z]+$" })).collect();
    let fine =
        json!({ "apiVersion": "example.com/v1", "kind": "Bomb", "metadata": { "name": "b" }, "spec": { "l": items } });
    let (code, status) = call(&server, "POST", "/apis/example.com/v1/namespaces/default/bombs", fine).await;
    assert_eq!(code, 201, "{status}");
    server.stop().await;
}

/// What a policy costs with one parameter it costs with each: all of a request have one budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn parameters_of_policies() {
    let server = Arc::new(Server::start(server::config()).await.expect("an empty store is filled"));
    for n in 0..40 {
        let map = json!({ "metadata": { "name": format!("p{n}"), "labels": { "param": "y" } }, "data": { "k": "v" } });
        assert_eq!(call(&server, "POST", MAPS, map).await.0, 201);
    }
    // What a question costs is much, and it is answered soon.
    let question = |it: &str| format!("authorizer.group('').resource('{it}').check('get').allowed()");
    let work = format!("{} && {}", question("pods"), question("secrets"));
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"] });
    let mut spec = json!({ "matchConstraints": { "resourceRules": [rule] },
        "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
        "validations": vec![json!({ "expression": work }); 10] });
    let binding = json!({ "metadata": { "name": "p" }, "spec": { "policyName": "p", "validationActions": ["Deny"],
        "paramRef": { "selector": { "matchLabels": { "param": "y" } }, "parameterNotFoundAction": "Deny" } } });
    let policy = json!({ "metadata": { "name": "p" }, "spec": spec });
    assert_eq!(call(&server, "POST", POLICIES, policy).await.0, 201);
    let bindings = POLICIES.replace("policies", "policybindings");
    let (code, status) = call(&server, "POST", &bindings, binding.clone()).await;
    assert_eq!(code, 201, "{status}");
    let secret = json!({ "metadata": { "generateName": "s" } });
    is_refused_and_others_served(&server, SECRETS, &secret, OUT_OF_BUDGET).await;
    assert_eq!(call(&server, "DELETE", &format!("{bindings}/p"), Value::Null).await.0, 200);
    assert_eq!(call(&server, "POST", SECRETS, secret.clone()).await.0, 201);

    spec.as_object_mut().expect("an object").remove("validations");
    spec["reinvocationPolicy"] = json!("Never");
    let patch = format!("{work} ? [] : [JSONPatch{{op: 'remove', path: '/data'}}]");
    spec["mutations"] = json!(vec![json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": patch } }); 10]);
    let policy = json!({ "metadata": { "name": "p" }, "spec": spec });
    let (code, status) = call(&server, "POST", MUTATING, policy).await;
    assert_eq!(code, 201, "{status}");
    let mut binding = binding;
    binding["spec"].as_object_mut().expect("an object").remove("validationActions");
    let (code, status) = call(&server, "POST", &MUTATING.replace("policies", "policybindings"), binding).await;
    assert_eq!(code, 201, "{status}");
    is_refused_and_others_served(&server, SECRETS, &secret, OUT_OF_BUDGET).await;
    server.stop().await;
}

/// The patterns of a document are bounded together, where it is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn patterns_of_documents() {
    const WORDS: &str = "regular expressions take more work to compile than those of one object may";
    let server = Arc::new(Server::start(server::config()).await.expect("an empty store is filled"));
    let pattern = |it: u32| format!("\\pL{{25}}a{{{it}}}");
    let validations: Vec<Value> =
        (0..600).map(|it| json!({ "expression": format!("\"a\".matches({:?})", pattern(it)) })).collect();
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"] });
    let policy = json!({ "metadata": { "name": "p" }, "spec": { "matchConstraints": { "resourceRules": [rule] }, "validations": validations } });
    is_refused_and_others_served(&server, POLICIES, &policy, WORDS).await;
    let properties: serde_json::Map<String, Value> = (0..200)
        .map(|it| (format!("p{it}"), json!({ "type": "string", "pattern": format!("^({})$", pattern(it)) })))
        .collect();
    let bomb = definition(&json!({ "type": "object", "properties": properties }));
    is_refused_and_others_served(&server, DEFINITIONS, &bomb, WORDS).await;
    server.stop().await;
}

/// The alternatives of items share what their object may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn alternatives_of_items() {
    let server = Arc::new(Server::start(server::config()).await.expect("an empty store is filled"));
    let alternatives: Vec<Value> = (0..200).map(|it| json!({ "enum": [format!("s{it}")] })).collect();
    let items = json!({ "type": "string", "anyOf": alternatives });
    define(
        &server,
        &json!({ "type": "object", "properties": { "l": { "type": "array", "items": items },
        "e": { "type": "array", "items": { "type": "string", "enum": (0..1000).map(|it| format!("s{it}")).collect::<Vec<_>>() } } } }),
    )
    .await;
    let object = |spec: Value| json!({ "apiVersion": "example.com/v1", "kind": "Bomb", "metadata": { "generateName": "b" }, "spec": spec });
    let bomb = object(json!({ "l": vec!["s199"; 50_000] }));
    is_refused_and_others_served(&server, "/apis/example.com/v1/namespaces/default/bombs", &bomb, OUT_OF_BUDGET).await;
    let wrong = object(json!({ "e": vec!["else"; 100_000] }));
    is_refused_and_others_served(&server, "/apis/example.com/v1/namespaces/default/bombs", &wrong, "Unsupported value")
        .await;
    for fine in [json!({ "l": vec!["s199"; 1_000] }), json!({ "e": vec!["s999"; 100_000] })] {
        let (code, status) = call(&server, "POST", "/apis/example.com/v1/namespaces/default/bombs", object(fine)).await;
        assert_eq!(code, 201, "{}", status["message"]);
    }
    server.stop().await;
}
