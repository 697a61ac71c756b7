//! What webhooks answer, and what the author of the request hears of it.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    CONFIGMAPS, MUTATING, VALIDATING, ask, ask_as, configure, create,
    hook::{Hook, Reply, allowed, review},
    started, webhook,
};

#[tokio::test]
async fn a_refusal_is_told_in_the_webhooks_words() {
    let server = started().await;
    let hook = Hook::start(|it| {
        review(
            it,
            it["request"]["object"]["data"]["answer"]
                .as_str()
                .map_or(json!({}), |it| serde_json::from_str(it).expect("JSON")),
        )
    })
    .await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    let denied = "admission webhook \"v.example.com\" denied the request";
    for (answer, code, reason, message) in [
        (json!({}), 400, "", format!("{denied} without explanation")),
        (json!({ "status": { "message": "no" } }), 400, "", format!("{denied}: no")),
        (json!({ "status": { "reason": "Why" } }), 400, "Why", format!("{denied}: Why")),
        (json!({ "status": { "code": 200, "message": "no" } }), 400, "", format!("{denied}: no")),
        (
            json!({ "status": { "code": 403, "reason": "Forbidden", "message": "no" } }),
            403,
            "Forbidden",
            format!("{denied}: no"),
        ),
        (json!({ "status": { "code": 999, "message": "no" } }), 400, "", format!("{denied}: no")),
    ] {
        let object = json!({ "metadata": { "name": "a" }, "data": { "answer": answer.to_string() } });
        let answered = ask(&server, "POST", CONFIGMAPS, &object).await;
        let told = (answered.code, answered.body["reason"].as_str().unwrap_or_default(), answered.message());
        assert_eq!(told, (code, reason, &*message), "{answer}");
    }
    let metrics = ask(&server, "GET", "/metrics", &Value::Null).await.body;
    let metrics = metrics.as_str().expect("text");
    for line in [
        r#"apiserver_admission_webhook_rejection_count{error_type="no_error",name="v.example.com",operation="CREATE",rejection_code="403",type="validating"} 1"#,
        r#"apiserver_admission_webhook_request_total{code="403",name="v.example.com",operation="CREATE",rejected="true",type="validating"} 1"#,
        r#"apiserver_admission_webhook_admission_duration_seconds_count{name="v.example.com",operation="CREATE",rejected="true",type="validating"} 6"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    server.stop().await;
}

type BadAnswer = (&'static str, fn(&Value) -> Reply, &'static str);

/// A bad answer, and what is said of it where the webhook's failure is one.
fn bad_answers() -> Vec<BadAnswer> {
    vec![
        ("another uid", |it| review(it, json!({ "allowed": true, "uid": "other" })), "expected response.uid="),
        (
            "no response",
            |it| Reply::Json(json!({ "kind": "AdmissionReview", "apiVersion": it["apiVersion"] })),
            "received invalid webhook response: webhook response was absent",
        ),
        (
            "another kind",
            |_| Reply::Json(json!({ "kind": "Pod", "apiVersion": "v1", "response": {} })),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Pod",
        ),
        (
            "a version that was not asked",
            |_| {
                Reply::Json(
                    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "response": { "allowed": true } }),
                )
            },
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1",
        ),
        (
            "a page",
            |_| Reply::Raw(200, b"<html>".to_vec()),
            "failed to call webhook: couldn't get version/kind; json parse error",
        ),
        (
            "a failure",
            |_| Reply::Raw(500, b"boom".to_vec()),
            r#"failed to call webhook: an error on the server ("boom") has prevented the request from succeeding"#,
        ),
        ("nothing there", |_| Reply::Raw(404, Vec::new()), "the server could not find the requested resource"),
        ("a redirect", |_| Reply::To("https://127.0.0.1:1/"), "the server responded with the status code 307"),
        ("megabytes", |_| Reply::Raw(200, vec![b' '; 7 << 20]), "the answer is larger than 6291456 bytes"),
        ("depth", |_| Reply::Raw(200, vec![b'['; 1 << 20]), "json parse error"),
        ("nothing in time", |_| Reply::Hang, "context deadline exceeded"),
        (
            "a patch without its type",
            |it| review(it, json!({ "allowed": true, "patch": BASE64_STANDARD.encode("[]") })),
            "webhook returned response.patch but not response.patchType",
        ),
        (
            "a type without a patch",
            |it| review(it, json!({ "allowed": true, "patchType": "JSONPatch" })),
            "webhook returned response.patchType but not response.patch",
        ),
        (
            "another type of patch",
            |it| review(it, json!({ "allowed": true, "patchType": "Merge", "patch": BASE64_STANDARD.encode("{}") })),
            "unsupported patch type \"Merge\"",
        ),
    ]
}

#[tokio::test]
async fn a_bad_answer_fails_the_request_or_is_passed_over() {
    let server = started().await;
    for (what, answer, reason) in bad_answers() {
        let hook = Hook::start(answer).await;
        for (policy, expected) in [("Fail", 500), ("Ignore", 201)] {
            let fields = json!({ "failurePolicy": policy, "timeoutSeconds": 1 });
            configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &fields)]).await;
            let answered = create(&server, "a").await;
            assert_eq!(answered.code, expected, "{what}: {}", answered.body);
            if expected == 500 {
                let message = answered.message();
                let begins = "Internal error occurred: failed calling webhook \"m.example.com\": ";
                assert!(message.starts_with(begins) && message.contains(reason), "{what}: {message}");
                assert!(message.len() < 1000, "{what}: {message}");
                assert_eq!(answered.body["reason"], "InternalError");
            } else {
                ask(&server, "DELETE", &format!("{CONFIGMAPS}/a"), &Value::Null).await;
            }
        }
    }
    let metrics = ask(&server, "GET", "/metrics", &Value::Null).await.body;
    let counted = format!(
        r#"apiserver_admission_webhook_fail_open_count{{name="m.example.com",type="admit"}} {}"#,
        bad_answers().len() * 2
    );
    assert!(metrics.as_str().expect("text").contains(&counted), "{counted}\n{metrics}");
    server.stop().await;
}

#[tokio::test]
async fn a_validating_webhook_may_not_patch() {
    let server = started().await;
    let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/data","value":{}}]"#);
    let hook =
        Hook::start(move |it| review(it, json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))).await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    let answered = create(&server, "a").await;
    assert!(answered.message().ends_with("validating webhook may not return response.patch"), "{}", answered.body);
    server.stop().await;
}

#[tokio::test]
async fn only_the_right_server_is_asked() {
    let server = started().await;
    let (hook, other) = (Hook::start(allowed).await, Hook::start(allowed).await);
    let port = hook.address.port();
    let url = |host: &str| format!("https://{host}:{port}/hook");
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nobody = closed.local_addr().expect("an address").port();
    drop(closed);
    let of_service = |name: &str, port: u16| json!({ "caBundle": hook.bundle, "service": { "namespace": "default", "name": name, "port": port, "path": "/hook" } });
    let meta = |name: &str| json!({ "name": name });
    let service = json!({ "metadata": meta("hook"), "spec": { "selector": { "app": "hook" }, "ports": [{ "port": 443, "name": "https" }] } });
    let empty =
        json!({ "metadata": meta("empty"), "spec": { "selector": { "app": "none" }, "ports": [{ "port": 443 }] } });
    let external = json!({ "metadata": meta("external"), "spec": { "type": "ExternalName", "externalName": "127.0.0.1", "ports": [{ "port": 443 }] } });
    for object in [service, empty, external] {
        let answered = ask(&server, "POST", "/api/v1/namespaces/default/services", &object).await;
        assert_eq!(answered.code, 201, "{}", answered.body);
    }
    let slice = json!({
        "metadata": { "name": "hook-1", "labels": { "kubernetes.io/service-name": "hook" } }, "addressType": "IPv4",
        "ports": [{ "name": "https", "port": port }],
        "endpoints": [{ "addresses": ["10.244.0.8"], "conditions": { "ready": false } }, { "addresses": ["10.244.0.9"] }],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(ask(&server, "POST", slices, &slice).await.code, 201);
    let failed = |url: &str, reason: &str| format!("failed to call webhook: Post \"{url}?timeout=10s\": {reason}");
    for (config, expected) in [
        (hook.client_config(), String::new()),
        (of_service("hook", 443), String::new()),
        (
            of_service("hook", 444),
            failed("https://hook.default.svc:444/hook", "no service port 444 found for service \"hook\""),
        ),
        (of_service("gone", 443), failed("https://gone.default.svc:443/hook", "service \"gone\" not found")),
        (
            of_service("empty", 443),
            failed("https://empty.default.svc:443/hook", "no endpoints available for service \"empty\""),
        ),
        (
            of_service("external", 443),
            failed("https://external.default.svc:443/hook", "dial tcp 127.0.0.1:443: address not allowed"),
        ),
        (
            json!({ "url": url("localhost"), "caBundle": other.bundle }),
            failed(
                &url("localhost"),
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            ),
        ),
        (
            json!({ "url": url("localhost") }),
            failed(
                &url("localhost"),
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            ),
        ),
        (json!({ "url": url("127.0.0.2"), "caBundle": hook.bundle }), "certificate is valid for".into()),
        (
            json!({ "url": url("169.254.169.254") }),
            failed(&url("169.254.169.254"), &format!("dial tcp 169.254.169.254:{port}: address not allowed")),
        ),
        (
            json!({ "url": format!("https://localhost:{nobody}/"), "caBundle": hook.bundle }),
            "connect: connection refused".into(),
        ),
    ] {
        configure(&server, VALIDATING, "v", &[webhook("v.example.com", &config, &json!({}))]).await;
        let answered =
            ask(&server, "POST", &format!("{CONFIGMAPS}?dryRun=All"), &json!({ "metadata": { "name": "a" } })).await;
        assert_eq!(answered.code == 201, expected.is_empty(), "{config}: {}", answered.body);
        assert!(answered.message().contains(&expected), "{config}: {}", answered.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn connections_are_kept_while_the_configuration_is() {
    let server = started().await;
    let hook = Hook::start(allowed).await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    let change = json!([{ "op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 3 }]);
    let path = format!("/apis/admissionregistration.k8s.io/v1/{VALIDATING}/v");
    for name in ["a", "b"] {
        assert_eq!(create(&server, name).await.code, 201);
        assert_eq!(ask_as(&server, "PATCH", &path, "application/json-patch+json", &change).await.code, 200);
        assert_eq!(create(&server, &format!("{name}2")).await.code, 201);
    }
    // Another timeout is no other server.
    assert_eq!(hook.connections(), 1);
    configure(&server, VALIDATING, "v", &[]).await;
    assert_eq!(create(&server, "c").await.code, 201);
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    assert_eq!(create(&server, "d").await.code, 201);
    assert_eq!(hook.connections(), 2);
    server.stop().await;
}

/// A webhook whose own writes come back to it.
#[tokio::test]
async fn a_loop_ends_with_the_time_of_its_first_request() {
    let server = started().await;
    let again = server.clone();
    let hook = Hook::start_with(std::sync::Arc::new(move |review: Value| {
        let server = again.clone();
        Box::pin(async move {
            let name = format!("{}-", review["request"]["name"].as_str().unwrap_or_default());
            create(&server, &name.replace('-', "x")).await;
            allowed(&review)
        })
    }))
    .await;
    let fields = json!({ "timeoutSeconds": 1 });
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &fields)]).await;
    let answered = tokio::time::timeout(Duration::from_secs(20), create(&server, "a")).await.expect("it ends");
    assert!(answered.code == 500 || answered.code == 201, "{}", answered.body);
    assert!(hook.connections() <= 129, "{}", hook.connections());
    configure(&server, VALIDATING, "v", &[]).await;
    assert_eq!(create(&server, "after").await.code, 201);
    server.stop().await;
}

/// Whoever asks why is told of a webhook that gives no answer, and of one that denies all, until it is otherwise.
#[tokio::test]
async fn the_journal_says_which_webhook_fails_and_since_when() {
    let server = started().await;
    let answer = Arc::new(Mutex::new("fail"));
    let shared = answer.clone();
    let hook = Hook::start(move |it| match *shared.lock() {
        "fail" => Reply::Raw(500, b"broken".to_vec()),
        "deny" => review(it, json!({ "allowed": false, "status": { "message": "never" } })),
        _ => allowed(it),
    })
    .await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    const JOURNALS: &str = "/apis/corten.dev/v1/namespaces/default/journals";
    let journal = format!("{JOURNALS}/validatingwebhookconfigurations.admissionregistration.k8s.io.v");
    let waits = async || ask(&server, "GET", &journal, &Value::Null).await.body["decisions"][0]["waits"].clone();
    assert_eq!(waits().await, Value::Null, "it was not asked yet");
    for (does, reason, n, says) in [
        (
            "fail",
            "WebhookFailing",
            2,
            "webhook v.example.com gives no valid answer, 2 times in a row, and what it is about is refused: ",
        ),
        ("deny", "WebhookDenying", 5, "webhook v.example.com denied all of the last 5 requests: admission webhook"),
    ] {
        *answer.lock() = does;
        for at in 0..n {
            assert_ne!(create(&server, &format!("{does}-{at}")).await.code, 201);
        }
        let waits = waits().await;
        assert_eq!((&waits[0]["reason"], &waits[0]["actor"]), (&json!(reason), &json!("External")), "{waits}");
        assert!(waits[0]["message"].as_str().is_some_and(|it| it.starts_with(says)), "{waits}");
        assert!(waits[0]["since"].is_string());
        let list = format!("/apis/corten.dev/v1/journals?fieldSelector=decisions.waits.reason%3D{reason}");
        let listed = ask(&server, "GET", &list, &Value::Null).await.body;
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    }
    *answer.lock() = "allow";
    assert_eq!(create(&server, "good").await.code, 201);
    assert_eq!(waits().await, Value::Null, "it answers");
    *answer.lock() = "fail";
    create(&server, "bad").await;
    assert_ne!(waits().await, Value::Null);
    configure(
        &server,
        VALIDATING,
        "v",
        &[webhook("v.example.com", &hook.client_config(), &json!({ "timeoutSeconds": 3 }))],
    )
    .await;
    assert_eq!(waits().await, Value::Null, "what it did under another configuration says nothing of this one");
    server.stop().await;
}

/// Large bodies are read on threads of their own: what these leave behind must not hold up who is served by others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_used_by_the_threads_that_drive_it() {
    let server = Arc::new(started().await);
    let hook = Hook::start(allowed).await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    let theirs = server.clone();
    let busy = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        assert_eq!(runtime.block_on(create(&theirs, "a")).code, 201);
        // It goes nowhere from here on, as one whose threads are at work.
        runtime
    });
    let busy = busy.await.expect("a create");
    assert_eq!(create(&server, "b").await.code, 201);
    assert_eq!((hook.take_seen().len(), hook.connections()), (2, 2));
    busy.shutdown_background();
}

#[tokio::test]
async fn what_is_deleted_while_it_is_applied_is_made_anew() {
    let server = Arc::new(started().await);
    let configuration =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "v" } });
    let apply = async |data: &str| {
        let mut configuration = configuration.clone();
        configuration["data"]["k"] = data.into();
        let path = format!("{CONFIGMAPS}/a?fieldManager=m");
        ask_as(&server, "PATCH", &path, "application/apply-patch+yaml", &configuration).await
    };
    assert_eq!(apply("1").await.code, 201);
    let again = server.clone();
    let hook = Hook::start_with(Arc::new(move |review: Value| {
        let server = again.clone();
        Box::pin(async move {
            if review["request"]["operation"] == "UPDATE" {
                assert_eq!(ask(&server, "DELETE", &format!("{CONFIGMAPS}/a"), &Value::Null).await.code, 200);
            }
            allowed(&review)
        })
    }))
    .await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    let answered = apply("2").await;
    assert_eq!((answered.code, &answered.body["data"]["k"]), (201, &json!("2")), "{}", answered.body);
}

/// One good answer does not make up for those that fail between them; and a condition that fails is the webhook's, too, though the
/// answer, in upstream's words, does not name it.
#[tokio::test]
async fn the_journal_says_which_webhook_fails_now_and_then_or_cannot_be_asked() {
    let server = started().await;
    let n = Arc::new(Mutex::new(0));
    let asked = n.clone();
    let hook = Hook::start(move |it| {
        *asked.lock() += 1;
        if *asked.lock() % 2 == 1 { Reply::Raw(500, b"broken".to_vec()) } else { allowed(it) }
    })
    .await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    const JOURNALS: &str = "/apis/corten.dev/v1/namespaces/default/journals";
    let journal = format!("{JOURNALS}/validatingwebhookconfigurations.admissionregistration.k8s.io.v");
    let waits = async || ask(&server, "GET", &journal, &Value::Null).await.body["decisions"][0]["waits"].clone();
    for at in 0..6 {
        assert_eq!(create(&server, &format!("m-{at}")).await.code == 201, at % 2 == 1, "{at}");
    }
    let says = "webhook v.example.com gives no valid answer, 3 of the last 6 times, and what it is about is refused: ";
    let told = waits().await;
    let is_told =
        |it: &str| it.starts_with(says) && it.ends_with("has prevented the request from succeeding (HTTP 500)");
    assert!(told[0]["message"].as_str().is_some_and(is_told), "{told}");
    let condition = json!({ "matchConditions": [{ "name": "c", "expression": "object.data.nope == 'x'" }] });
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &condition)]).await;
    assert_eq!(waits().await, Value::Null);
    let refused = create(&server, "conditioned").await;
    assert!(refused.code == 403 && !refused.message().contains("v.example.com"), "{}", refused.body);
    let told = waits().await;
    let says = "webhook v.example.com cannot be asked, for one of its matchConditions fails, and what it is about is refused: expression 'object.data.nope";
    assert_eq!((&told[0]["reason"], &told[0]["actor"]), (&json!("WebhookConditionFailed"), &json!("Author")), "{told}");
    assert!(told[0]["message"].as_str().is_some_and(|it| it.starts_with(says)), "{told}");
    let ignored = json!({ "failurePolicy": "Ignore", "matchConditions": condition["matchConditions"] });
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &ignored)]).await;
    assert_eq!(create(&server, "passed").await.code, 201);
    let says = says.replace("is refused", "passes without it");
    let told = waits().await;
    assert!(told[0]["message"].as_str().is_some_and(|it| it.starts_with(&says)), "{told}");
    server.stop().await;
}

/// As Go's client takes it.
#[tokio::test]
async fn an_answer_may_end_with_its_connection() {
    let server = started().await;
    let hook = Hook::start_abrupt().await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    for name in ["a", "b"] {
        let created = create(&server, name).await;
        assert_eq!(created.code, 201, "{}", created.body);
    }
    server.stop().await;
}

/// An end that is in the kernel and that no task was told of yet.
#[tokio::test]
async fn a_connection_that_its_server_has_closed_is_not_used_again() {
    const MANY: usize = 200;
    let server = started().await;
    let hook = Hook::start_unreliable().await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({}))]).await;
    for nth in 0..MANY {
        let created = create(&server, &format!("m-{nth}")).await;
        assert_eq!(created.code, 201, "{nth}: {}", created.body);
    }
    assert_eq!(hook.connections(), MANY);
    server.stop().await;
}
