//! Webhooks of custom resources and of connections, of the older version of the question, and what they leave in the audit record.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_kinds::custom::has_condition;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    MUTATING, VALIDATING, ask, configure, create,
    hook::{Hook, Reply, allowed, patched, review},
    started, started_with, webhook,
};
use crate::{Sink, tests::server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LAMPS: &str = "/apis/example.com/v1/namespaces/default/lamps";

fn lamps() -> Value {
    let spec = json!({ "type": "object", "properties": {
        "watts": { "type": "integer", "maximum": 100 }, "colour": { "type": "string", "default": "white" },
    } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    json!({ "metadata": { "name": "lamps.example.com" }, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": { "plural": "lamps", "singular": "lamp", "kind": "Lamp" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
    } })
}

#[tokio::test]
async fn a_custom_resource_is_shown_and_changed() {
    let server = started().await;
    assert_eq!(ask(&server, "POST", DEFINITIONS, &lamps()).await.code, 201);
    let caches = server.caches();
    let definitions = caches.get(&CUSTOM_RESOURCE_DEFINITIONS).expect("definitions are stored");
    let is_established = || {
        let stored = definitions.get("", "lamps.example.com")?;
        has_condition(&stored.parse(), "Established").then_some(())
    };
    caches.until(is_established).await;
    let hook = Hook::start(|it| {
        let watts = &it["request"]["object"]["metadata"]["annotations"]["watts"];
        let watts: i64 = watts.as_str().and_then(|it| it.parse().ok()).unwrap_or_default();
        patched(it, &json!([{ "op": "add", "path": "/spec/watts", "value": watts }, { "op": "add", "path": "/spec/unknown", "value": 1 }]))
    })
    .await;
    let last = Hook::start(allowed).await;
    let rules = json!({ "rules": [{ "operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["lamps"] }] });
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &rules)]).await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &last.client_config(), &rules)]).await;
    let lamp = |watts: &str| json!({ "apiVersion": "example.com/v1", "kind": "Lamp", "metadata": { "name": "a", "annotations": { "watts": watts } }, "spec": {} });

    // What the patch makes is held to the schema, after it is pruned.
    let refused = ask(&server, "POST", LAMPS, &lamp("200")).await;
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert!(refused.message().contains("spec.watts"), "{}", refused.body);
    let made = ask(&server, "POST", LAMPS, &lamp("40")).await;
    assert_eq!((made.code, &made.body["spec"]), (201, &json!({ "colour": "white", "watts": 40 })), "{}", made.body);
    let seen = last.take_seen().pop().expect("a question");
    assert_eq!(
        (&seen["request"]["kind"]["kind"], &seen["request"]["object"]["spec"]["watts"]),
        (&json!("Lamp"), &json!(40))
    );
    server.stop().await;
}

/// Each way into a Pod, or through the server, is a question of its own.
#[tokio::test]
async fn every_connection_is_asked_about() {
    let server = started().await;
    let hook = Hook::start(|it| review(it, json!({ "allowed": false, "status": { "message": "not in here" } }))).await;
    let all = ["pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy"];
    let rules =
        json!({ "rules": [{ "operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": all }] });
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &rules)]).await;
    for (method, path, kind) in [
        ("POST", "/api/v1/namespaces/default/pods/p/attach?container=c&stdin=true", "PodAttachOptions"),
        ("POST", "/api/v1/namespaces/default/pods/p/portforward?ports=80", "PodPortForwardOptions"),
        ("GET", "/api/v1/namespaces/default/pods/p/proxy/x", "PodProxyOptions"),
        ("GET", "/api/v1/namespaces/default/services/s/proxy/x", "ServiceProxyOptions"),
        ("GET", "/api/v1/nodes/n/proxy/metrics", "NodeProxyOptions"),
    ] {
        let answered = ask(&server, method, path, &Value::Null).await;
        let said = "admission webhook \"v.example.com\" denied the request: not in here";
        assert_eq!((answered.code, answered.message()), (400, said), "{path}: {}", answered.body);
        let seen = hook.take_seen().pop().unwrap_or_default();
        let request = &seen["request"];
        assert_eq!((&request["operation"], &request["kind"]["kind"]), (&json!("CONNECT"), &json!(kind)), "{path}");
        assert_eq!(request["object"]["kind"], kind, "{path}");
        assert_eq!(request["oldObject"], Value::Null, "{path}");
    }
    server.stop().await;
}

/// v1beta1 knows neither the uid of an answer nor the type of a patch.
#[tokio::test]
async fn the_older_version_is_asked_where_the_webhook_knows_no_other() {
    let server = started().await;
    let hook = Hook::start(|it| {
        let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/data","value":{"k":"v"}}]"#);
        Reply::Json(json!({ "kind": "AdmissionReview", "apiVersion": it["apiVersion"], "response": { "allowed": true, "patch": patch } }))
    })
    .await;
    for (versions, code) in
        [(json!(["v1beta1"]), 201), (json!(["v2", "v1beta1", "v1"]), 201), (json!(["v1", "v1beta1"]), 500)]
    {
        let rules = json!([{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] }]);
        let fields = json!({ "admissionReviewVersions": versions, "rules": rules });
        configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &fields)]).await;
        let answered = create(&server, "a").await;
        assert_eq!(answered.code, code, "{versions}: {}", answered.body);
        let asked = hook.take_seen().pop().unwrap_or_default();
        let is_older = asked["apiVersion"] == "admission.k8s.io/v1beta1";
        assert_eq!(is_older, code == 201, "{versions}: {}", asked["apiVersion"]);
        if is_older {
            assert_eq!(answered.body["data"], json!({ "k": "v" }));
            ask(&server, "DELETE", &format!("{}/a", super::CONFIGMAPS), &Value::Null).await;
        }
    }
    server.stop().await;
}

#[derive(Default)]
struct RecordingSink(Mutex<Vec<Value>>);

impl Sink for RecordingSink {
    fn record(&self, line: Vec<u8>) {
        self.0.lock().push(serde_json::from_slice(&line).expect("a record is JSON"));
    }

    fn dropped(&self) -> u64 {
        0
    }
}

#[tokio::test]
async fn what_a_webhook_notes_stands_in_the_audit_record() {
    let kept = Arc::new(RecordingSink::default());
    let server = started_with(crate::Config { audit: Some(kept.clone()), ..server::config() }).await;
    let annotations = json!({ "why": "because", "not a name": "x", "large": "x".repeat(70_000) });
    let hook = Hook::start(move |it| review(it, json!({ "allowed": true, "auditAnnotations": annotations }))).await;
    let broken = Hook::start(|_| Reply::Raw(500, Vec::new())).await;
    let open = json!({ "failurePolicy": "Ignore" });
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({}))]).await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &broken.client_config(), &open)]).await;
    kept.0.lock().clear();
    assert_eq!(create(&server, "a").await.code, 201);
    let record = kept.0.lock().pop().expect("a record");
    let noted = &record["annotations"];
    assert_eq!(noted["m.example.com/why"], "because", "{noted}");
    assert_eq!(
        noted["mutation.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"mutated":false,"configuration":"m","webhook":"m.example.com"}"#
    );
    assert_eq!(noted["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"], "v.example.com");
    let names: Vec<&String> = noted.as_object().into_iter().flatten().map(|it| it.0).collect();
    assert!(!names.iter().any(|it| it.contains("large") || it.contains("not a name")), "{names:?}");
    server.stop().await;
}

/// A patch shows what is in the object: only a record that may show that has it.
#[tokio::test]
async fn a_patch_stands_in_records_of_requests() {
    let hook = Hook::start(|it| patched(it, &json!([{ "op": "add", "path": "/data", "value": { "k": "v" } }]))).await;
    for (level, has_patch) in [("Metadata", false), ("Request", true)] {
        let kept = Arc::new(RecordingSink::default());
        let policy = json!({ "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{ "level": level }] });
        let mut config = crate::Config { audit: Some(kept.clone()), ..server::config() };
        config.guard.audit_policy = crate::AuditPolicy::parse(&policy.to_string()).expect("a policy");
        let server = started_with(config).await;
        configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({}))]).await;
        kept.0.lock().clear();
        assert_eq!(create(&server, "a").await.code, 201);
        let record = kept.0.lock().pop().expect("a record");
        let noted = &record["annotations"];
        let about = r#""configuration":"m","webhook":"m.example.com"}"#;
        assert_eq!(noted["mutation.webhook.admission.k8s.io/round_0_index_0"], format!(r#"{{"mutated":true,{about}"#));
        let patch = r#"{"patch":[{"op":"add","path":"/data","value":{"k":"v"}}],"patchType":"JSONPatch","#;
        let expected = if has_patch { json!(format!("{patch}{about}")) } else { Value::Null };
        assert_eq!(noted["patch.webhook.admission.k8s.io/round_0_index_0"], expected, "{noted}");
        server.stop().await;
    }
}

/// v1 lets nobody configure a webhook whose side effects a dry run could not do without.
#[tokio::test]
async fn side_effects_are_said_or_refused() {
    let server = started().await;
    let hook = Hook::start(allowed).await;
    for side_effects in ["Some", "Unknown"] {
        let one = webhook("v.example.com", &hook.client_config(), &json!({ "sideEffects": side_effects }));
        let object = json!({ "metadata": { "name": "v" }, "webhooks": [one] });
        let refused =
            ask(&server, "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", &object)
                .await;
        assert_eq!(refused.code, 422);
        let said = format!(
            "webhooks[0].sideEffects: Unsupported value: \"{side_effects}\": supported values: \"None\", \"NoneOnDryRun\""
        );
        assert!(refused.message().contains(&said), "{}", refused.body);
    }
    server.stop().await;
}
