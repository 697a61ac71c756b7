//! A definition goes with its objects, whoever else would have a say about each of them.

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use serde_json::{Value, json};

use super::{DEFINITIONS, ask, define, definition, gone, read, server};

const CARS: &str = "/apis/example.com/v1/namespaces/default/cars";

fn car(name: &str) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Car", "metadata": { "name": name } })
}

/// Whoever installed the webhook has gone before the definition: nobody answers, and the objects go all the same.
#[tokio::test]
async fn a_webhook_that_is_dead_holds_no_definition() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let webhook = json!({ "metadata": { "name": "dead" }, "webhooks": [{
        "name": "dead.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": { "url": "https://127.0.0.1:1/" }, "timeoutSeconds": 1,
        "rules": [{ "apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*"] }],
    }] });
    for namespace in ["default", "kube-system"] {
        let (code, _) = ask(&server, "POST", &CARS.replace("default", namespace), &car("a")).await;
        assert_eq!(code, 201);
    }
    let (code, answer) = ask(&server, "POST", webhooks, &webhook).await;
    assert_eq!(code, 201, "{}", read(answer).await);
    assert_eq!(ask(&server, "DELETE", &format!("{CARS}/a"), &Value::Null).await.0, 500, "clients are held to it");
    assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
    gone(&server, &name).await;
    server.stop().await;
}

/// From when on nobody finds the definition, nobody finds its kind either, however soon they ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_kind_is_gone_as_soon_as_its_definition_is() {
    let server = server::started().await;
    let definitions = server.caches().get(&CUSTOM_RESOURCE_DEFINITIONS).expect("definitions are stored");
    for round in 0..100 {
        let name = define(&server, &definition("example.com", "cars", "Car")).await;
        assert_eq!(ask(&server, "POST", CARS, &car("a")).await.0, 201, "{round}");
        assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
        while definitions.get("", &name).is_some() {
            tokio::task::yield_now().await;
        }
        let (all, one, watch) = ("/apis/example.com/v1/cars", format!("{CARS}/a"), format!("{CARS}?watch=true"));
        for (method, path) in [("GET", all), ("GET", &*one), ("GET", &*watch), ("POST", CARS), ("DELETE", CARS)] {
            let body = if method == "POST" { car("b") } else { Value::Null };
            assert_eq!(ask(&server, method, path, &body).await.0, 404, "{round}: {method} {path}");
        }
    }
    server.stop().await;
}

/// The same of a rule that forbids every deletion, and of a definition none of whose versions is served.
#[tokio::test]
async fn a_policy_against_deletions_holds_no_definition() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    assert_eq!(ask(&server, "POST", CARS, &car("a")).await.0, 201);
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({ "metadata": { "name": "nodelete" }, "spec": {
        "matchConstraints": { "resourceRules": [{ "apiGroups": ["example.com"], "apiVersions": ["*"],
            "operations": ["DELETE"], "resources": ["*"] }] },
        "validations": [{ "expression": "false" }] } });
    let binding = json!({ "metadata": { "name": "nodelete" },
        "spec": { "policyName": "nodelete", "validationActions": ["Deny"] } });
    for (plural, object) in [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)] {
        let (code, answer) = ask(&server, "POST", &format!("{admission}/{plural}"), &object).await;
        assert_eq!(code, 201, "{}", read(answer).await);
    }
    assert_eq!(ask(&server, "DELETE", &format!("{CARS}/a"), &Value::Null).await.0, 422, "clients are held to it");
    let path = format!("{DEFINITIONS}/{name}");
    let mut unserved = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    unserved["spec"]["versions"][0]["served"] = false.into();
    assert_eq!(ask(&server, "PUT", &path, &unserved).await.0, 200);
    assert_eq!(ask(&server, "DELETE", &path, &Value::Null).await.0, 200);
    gone(&server, &name).await;
    server.stop().await;
}

/// Webhooks are asked about what the server itself writes of a definition, as upstream, whose apiextensions controllers write
/// through the API. Where that is refused, its journal says by whom.
#[tokio::test]
async fn who_refuses_what_is_written_about_a_definition_is_told() {
    let server = server::started().await;
    let name = define(&server, &definition("example.com", "cars", "Car")).await;
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({ "metadata": { "name": "frozen" }, "spec": {
        "matchConstraints": { "resourceRules": [{ "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"],
            "operations": ["UPDATE"], "resources": ["*/*"] }] },
        "validations": [{ "expression": "false" }] } });
    let binding = json!({ "metadata": { "name": "frozen" },
        "spec": { "policyName": "frozen", "validationActions": ["Deny"] } });
    for (plural, object) in [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)] {
        let (code, answer) = ask(&server, "POST", &format!("{admission}/{plural}"), &object).await;
        assert_eq!(code, 201, "{}", read(answer).await);
    }
    assert_eq!(ask(&server, "DELETE", &format!("{DEFINITIONS}/{name}"), &Value::Null).await.0, 200);
    let (code, answer) = ask(&server, "POST", DEFINITIONS, &definition("example.com", "boats", "Boat")).await;
    assert_eq!(code, 201, "{}", read(answer).await);
    for held in [&*name, "boats.example.com"] {
        let of = "customresourcedefinitions.apiextensions.k8s.io";
        let journal = format!("/apis/corten.dev/v1/namespaces/default/journals/{of}.{held}");
        let told = loop {
            let journal = read(ask(&server, "GET", &journal, &Value::Null).await.1).await;
            if journal["decisions"][0]["error"].is_string() {
                break journal["decisions"][0].clone();
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(told["by"], "definitions");
        let says = "ValidatingAdmissionPolicy 'frozen' with binding 'frozen' denied request: failed expression: false";
        assert!(told["error"].as_str().is_some_and(|it| it.ends_with(says)), "{told}");
    }
    for plural in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
        assert_eq!(ask(&server, "DELETE", &format!("{admission}/{plural}/frozen"), &Value::Null).await.0, 200);
    }
    // It is tried again after a while, and at once when it changes.
    let path = format!("{DEFINITIONS}/{name}");
    let mut changed = read(ask(&server, "GET", &path, &Value::Null).await.1).await;
    changed["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(ask(&server, "PUT", &path, &changed).await.0, 200);
    gone(&server, &name).await;
    server.stop().await;
}
