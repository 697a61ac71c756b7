//! Webhooks that decide what somebody may do, asked by all that asks.

use std::sync::{Arc, OnceLock};

use corten_access::{AuthorizationSettings, Identity};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::{
    CONFIGMAPS, ask,
    hook::{Hook, Reply},
    server,
};
use crate::{Config, Guard, Server};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A server whose webhook is asked first, and RBAC after it.
async fn decided_by(hook: &Hook, timeout: &str) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("hook.kubeconfig");
    let (port, ca) = (hook.address.port(), &hook.bundle);
    let cluster = json!({ "server": format!("https://localhost:{port}/access"), "certificate-authority-data": ca });
    let config = json!({
        "clusters": [{ "name": "c", "cluster": cluster }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "" } }],
        "current-context": "x",
    });
    std::fs::write(&kubeconfig, config.to_string()).expect("a file");
    let webhook = json!({
        "timeout": timeout, "subjectAccessReviewVersion": "v1", "failurePolicy": "NoOpinion",
        "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": kubeconfig },
        "matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [{ "expression": "!('system:nodes' in request.groups)" }],
    });
    let authorizers = json!([
        { "type": "Webhook", "name": "decider", "webhook": webhook },
        { "type": "Node", "name": "node" },
        { "type": "RBAC", "name": "rbac" },
    ]);
    let text = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers,
    });
    let authorization = AuthorizationSettings::parse(text.to_string()).expect("a good configuration");
    let plain = server::config();
    let guard = Guard { authorization, ..plain.guard };
    Server::start(Config { guard, ..plain }).await.expect("a server")
}

async fn as_jane(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let jane = Identity::new("jane", &["dev", "system:authenticated"]);
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = server.call(jane, request.body(body.into()).expect("a request")).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn answer(status: &Value) -> Reply {
    Reply::Json(json!({ "status": status }))
}

/// Jane may do everything with ConfigMaps, is denied Leases, and has no opinion on the rest.
fn decide(review: &Value) -> Reply {
    let spec = &review["spec"];
    let resource = spec["resourceAttributes"]["resource"].as_str().unwrap_or_default();
    match (spec["user"].as_str().unwrap_or_default(), resource) {
        ("jane", "configmaps" | "selfsubjectrulesreviews" | "selfsubjectaccessreviews") => {
            answer(&json!({ "allowed": true, "reason": "hers" }))
        }
        (_, "leases") => answer(&json!({ "allowed": false, "denied": true, "reason": "not here" })),
        (_, "pods") => Reply::Raw(403, b"go away".to_vec()),
        _ => answer(&json!({ "allowed": false, "reason": "no opinion" })),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_reviews_are_decided_by_it() {
    let hook = Hook::start(decide).await;
    let server = decided_by(&hook, "3s").await;
    let map = json!({ "metadata": { "name": "a" } });
    assert_eq!(as_jane(&server, "POST", CONFIGMAPS, &map).await.0, 201);
    hook.take_seen();
    let list = format!("{CONFIGMAPS}?labelSelector=a+in+(b,c)&fieldSelector=metadata.name%3Da");
    assert_eq!(as_jane(&server, "GET", &list, &Value::Null).await.0, 200);
    let asked = &hook.take_seen()[0]["spec"]["resourceAttributes"];
    assert_eq!(asked["verb"], "list");
    assert_eq!(
        (&asked["fieldSelector"]["requirements"][0], &asked["labelSelector"]["requirements"][0]),
        (
            &json!({ "key": "metadata.name", "operator": "In", "values": ["a"] }),
            &json!({ "key": "a", "operator": "In", "values": ["b", "c"] }),
        )
    );
    for (path, code, message) in [
        (
            "/api/v1/namespaces/default/secrets",
            403,
            r#"secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default": no opinion"#,
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            403,
            r#"leases.coordination.k8s.io is forbidden: User "jane" cannot list resource "leases" in API group "coordination.k8s.io" in the namespace "default": not here"#,
        ),
        ("/api/v1/namespaces/default/pods", 500, "Internal error occurred: go away"),
    ] {
        let (found, status) = as_jane(&server, "GET", path, &Value::Null).await;
        assert_eq!((found, status["message"].as_str()), (code, Some(message)), "{path}: {status}");
    }
    for (resource, expected) in [
        ("configmaps", json!({ "allowed": true, "reason": "hers" })),
        ("secrets", json!({ "allowed": false, "reason": "no opinion" })),
        ("leases", json!({ "allowed": false, "denied": true, "reason": "not here" })),
        ("pods", json!({ "allowed": false, "evaluationError": "go away" })),
    ] {
        let about = json!({ "resource": resource, "verb": "get", "namespace": "default" });
        let spec = json!({ "user": "jane", "uid": "u", "extra": { "K": ["v"] }, "resourceAttributes": about });
        let review = ask(&server, "POST", REVIEWS, &json!({ "spec": spec })).await.body;
        assert_eq!(review["status"], expected, "{resource}");
        let sent = hook.take_seen().pop().expect("it was asked");
        assert_eq!((&sent["spec"]["uid"], &sent["spec"]["extra"]), (&json!("u"), &json!({ "k": ["v"] })));
    }
    let rules = json!({ "spec": { "namespace": "default" } });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let status = as_jane(&server, "POST", path, &rules).await.1["status"].clone();
    assert_eq!(
        (&status["incomplete"], &status["evaluationError"]),
        (&json!(true), &json!("webhook authorizer does not support user rule resolution"))
    );
    let metrics = ask(&server, "GET", "/metrics", &Value::Null).await.body;
    let metrics = metrics.as_str().expect("a text");
    assert!(
        metrics.contains(r#"apiserver_authorization_webhook_evaluations_total{name="decider",result="error"} "#),
        "{metrics}"
    );
    assert!(
        metrics
            .contains(r#"apiserver_authorization_decisions_total{decision="denied",name="decider",type="Webhook"} "#)
    );
    assert_eq!(
        ask(&server, "GET", "/readyz", &Value::Null).await.code,
        200,
        "a webhook that is down is nobody's health"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_that_ask_what_may_be_done_get_its_answer() {
    let hook = Hook::start(|review| {
        let of = &review["spec"]["resourceAttributes"];
        match (of["resource"].as_str(), of["name"].as_str()) {
            (Some("configmaps"), _) => answer(&json!({ "allowed": true })),
            (Some("gates"), Some("one" | "two")) => answer(&json!({ "allowed": true, "reason": "open" })),
            (Some("gates"), _) => answer(&json!({ "allowed": false, "reason": "shut" })),
            _ => answer(&json!({ "allowed": false })),
        }
    })
    .await;
    let server = decided_by(&hook, "3s").await;
    let gate = |name: &str| format!("authorizer.group('x').resource('gates').name('{name}').check('pass')");
    let expression = format!(
        "object.metadata.name == 'any' || ({}.allowed() && {}.reason() == 'open' && object.metadata.name == 'good')",
        gate("one"),
        gate("two")
    );
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
    let policy = json!({ "metadata": { "name": "p" }, "spec": {
        "matchConstraints": { "resourceRules": [rule] },
        "matchConditions": [{ "name": "c", "expression": format!("!{}.allowed()", gate("three")) }],
        "validations": [{ "expression": expression }],
    } });
    let of = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    assert_eq!(ask(&server, "POST", &format!("{of}ies"), &policy).await.code, 201);
    let binding = json!({ "metadata": { "name": "p" }, "spec": { "policyName": "p", "validationActions": ["Deny"] } });
    assert_eq!(ask(&server, "POST", &format!("{of}ybindings"), &binding).await.code, 201);
    hook.take_seen();
    for (name, code) in [("good", 201), ("bad", 422), ("any", 201)] {
        let map = json!({ "metadata": { "name": name } });
        assert_eq!(as_jane(&server, "POST", CONFIGMAPS, &map).await.0, code, "{name}");
    }
    let gates = hook.take_seen().iter().filter(|it| it["spec"]["resourceAttributes"]["resource"] == "gates").count();
    assert_eq!(gates, 3, "each gate is asked about once");
    server.stop().await;
}

/// The webhook asks the server that asks it: that ends, and others are not held up.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_asks_this_server_is_no_endless_loop() {
    let server: Arc<OnceLock<Server>> = Arc::default();
    let asked = server.clone();
    let hook = Hook::start_with(Arc::new(move |_| {
        let asked = asked.clone();
        Box::pin(async move {
            let server = asked.get().expect("it runs").clone();
            let who = Identity::new("decider", &["system:authenticated"]);
            let request = Request::get(CONFIGMAPS).body(Vec::new().into()).expect("a request");
            let _ = server.call(who, request).await;
            answer(&json!({ "allowed": true }))
        })
    }))
    .await;
    let running = decided_by(&hook, "1s").await;
    let running = server.get_or_init(|| running);
    let begun = Instant::now();
    let (code, _) = as_jane(running, "GET", CONFIGMAPS, &Value::Null).await;
    assert!(matches!(code, 200 | 500), "{code}");
    assert_eq!(ask(running, "GET", CONFIGMAPS, &Value::Null).await.code, 200, "others go on");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// What is asked for by name, as an administrator, of whom no webhook is asked.
async fn said_of_webhooks(server: &Server) -> (u16, String) {
    let admin = Identity::new("admin", &["system:masters", "system:authenticated"]);
    let request = Request::get("/readyz/access-webhooks").body(bytes::Bytes::new()).expect("a request");
    let response = server.call(admin, request).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_answer_is_named_and_makes_nothing_unready() {
    let hook = Hook::start(decide).await;
    let server = decided_by(&hook, "3s").await;
    assert_eq!(said_of_webhooks(&server).await, (200, "ok".to_owned()));
    as_jane(&server, "GET", "/api/v1/namespaces/default/pods", &Value::Null).await;
    let (code, said) = said_of_webhooks(&server).await;
    let begin = "internal server error: the authorization webhook \"decider\" has not answered since 20";
    assert!(code == 500 && said.starts_with(begin) && said.contains("go away"), "{code} {said}");
    let (_, health) = as_jane(&server, "GET", "/readyz", &Value::Null).await;
    assert!(!health.to_string().contains("access-webhooks"));
    as_jane(&server, "GET", CONFIGMAPS, &Value::Null).await;
    assert_eq!(said_of_webhooks(&server).await, (200, "ok".to_owned()), "it has answered");
}
