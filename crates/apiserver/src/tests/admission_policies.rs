//! Admission policies: what they say beside the answer, what they cost, and what a hostile author can do with them.

use std::sync::Arc;

use corten_access::Identity;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{
    audit::RecordingSink,
    quota::call,
    server::{self},
};
use crate::Server;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn policy(name: &str, resource: &str, expression: &str) -> Value {
    let rule = json!({ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource] });
    json!({ "metadata": { "name": name }, "spec": {
        "matchConstraints": { "resourceRules": [rule] },
        "validations": [{ "expression": expression }],
    } })
}

async fn bound(server: &Server, policy: Value, actions: &[&str]) {
    let name = policy["metadata"]["name"].clone();
    let binding = json!({ "metadata": { "name": name }, "spec": { "policyName": name, "validationActions": actions } });
    for (path, object) in [(POLICIES, policy), (BINDINGS, binding)] {
        let (code, answer) = call(server, "POST", path, object).await;
        assert_eq!(code, 201, "{answer}");
    }
}

async fn patched(server: &Server, path: &str, media_type: &str, patch: &Value) -> (u16, Value) {
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = http::Request::patch(path).header("content-type", media_type).body(patch.to_string().into());
    let answer = server.call(admin, request.expect("a request of constants")).await;
    let code = answer.status().as_u16();
    let text = answer.into_body().collect().await.expect("a body in memory").to_bytes();
    (code, serde_json::from_slice(&text).unwrap_or_default())
}

#[tokio::test]
async fn a_warning_is_sent_and_the_object_stored() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    bound(&server, policy("w", "configmaps", "size(object.data) < 1"), &["Warn"]).await;
    let body = json!({ "metadata": { "name": "a" }, "data": { "k": "v" } }).to_string();
    let request = http::Request::post(MAPS).header("content-type", "application/json").body(body.into());
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let answer = server.call(admin.clone(), request.expect("a request of constants")).await;
    assert_eq!(answer.status(), 201);
    assert_eq!(
        answer.headers()["warning"],
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'w' with binding 'w': failed expression: size(object.data) < 1\""
    );
    let request = http::Request::get("/metrics").body(Vec::new().into()).expect("a request of constants");
    let text = server.call(admin, request).await.into_body().collect().await.expect("a body in memory").to_bytes();
    let line = "apiserver_validating_admission_policy_check_total{enforcement_action=\"warn\",error_type=\"no_error\",policy=\"w\",policy_binding=\"w\"} 1";
    assert!(String::from_utf8_lossy(&text).contains(line));
}

/// A Pod is bound by either path, and each is shown as what it is.
#[tokio::test]
async fn each_path_of_a_binding_is_another_resource() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let account = json!({ "metadata": { "name": "default" } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", account).await.0, 201);
    let said = "request.resource.resource + ' ' + request.name + ' to ' + object.target.name";
    for (name, resource) in [("older", "bindings"), ("newer", "pods/binding")] {
        let mut refusing = policy(name, resource, "false");
        refusing["spec"]["validations"][0]["messageExpression"] = json!(said);
        bound(&server, refusing, &["Deny"]).await;
    }
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let (code, answer) = call(&server, "POST", PODS, pod).await;
    assert_eq!(code, 201, "{answer}");
    let binding =
        json!({ "kind": "Binding", "apiVersion": "v1", "metadata": { "name": "p" }, "target": { "name": "n" } });
    for (path, message) in [
        ("/api/v1/namespaces/default/bindings".to_owned(), "'older' denied request: bindings p to n"),
        (format!("{PODS}/p/binding"), "'newer' denied request: pods p to n"),
    ] {
        let (code, refused) = call(&server, "POST", &path, binding.clone()).await;
        assert_eq!(code, 422, "{refused}");
        let found = refused["message"].as_str().unwrap_or_default();
        assert!(found.ends_with(message) && found.contains("\"p\""), "{found}");
    }
    for name in ["older", "newer"] {
        assert_eq!(call(&server, "DELETE", &format!("{BINDINGS}/{name}"), Value::Null).await.0, 200);
    }
    let marked = json!({ "metadata": { "name": "p", "annotations": { "corten.dev/host-ports": "[]" } }, "target": { "name": "n" } });
    let (code, refused) = call(&server, "POST", "/api/v1/namespaces/default/bindings", marked).await;
    assert!(code == 422 && refused.to_string().contains("is written by the API server alone"), "{refused}");
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/bindings", binding).await.0, 201);
    let (_, pod) = call(&server, "GET", &format!("{PODS}/p"), Value::Null).await;
    assert_eq!(pod["spec"]["nodeName"], "n");
}

/// What a policy notes stands in the record of the request, whether that was let through or refused.
#[tokio::test]
async fn what_a_policy_notes_stands_in_the_audit_record() {
    const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
    let kept = Arc::new(RecordingSink::default());
    let config = crate::Config { audit: Some(kept.clone()), ..server::config() };
    let server = Server::start(config).await.expect("an empty store is filled");
    let mut noting = policy("a", "configmaps", "size(object.data) < 2");
    let many = "x".repeat(20_000);
    noting["spec"]["auditAnnotations"] = json!([
        { "key": "size", "valueExpression": "'has ' + string(size(object.data))" },
        { "key": "none", "valueExpression": "null" },
        { "key": "long", "valueExpression": "has(object.data.long) ? string(object.data.long) : ''" },
    ]);
    bound(&server, noting, &["Audit"]).await;
    // What another binding says as well is said once.
    let again = json!({ "metadata": { "name": "b" }, "spec": { "policyName": "a", "validationActions": ["Audit"] } });
    assert_eq!(call(&server, "POST", BINDINGS, again).await.0, 201);
    let record = async |name: &str, data: Value, code: u16| {
        kept.take();
        let map = json!({ "metadata": { "name": name }, "data": data });
        assert_eq!(call(&server, "POST", MAPS, map).await.0, code);
        kept.take().pop().expect("a record")["annotations"].clone()
    };

    let noted = record("one", json!({ "k": "v" }), 201).await;
    assert_eq!((&noted["a/size"], &noted[FAILURE]), (&json!("has 1"), &Value::Null), "{noted}");
    assert!(noted.get("a/none").is_none() && noted.get("a/long").is_none(), "{noted}");

    let failure = |noted: &Value| -> Value {
        serde_json::from_str(noted[FAILURE].as_str().unwrap_or_default()).unwrap_or_else(|_| panic!("{noted}"))
    };
    let noted = record("two", json!({ "k": "v", "long": many }), 201).await;
    let expected = json!([{ "message": "failed expression: size(object.data) < 2", "policy": "a", "binding": "a",
        "expressionIndex": 0, "validationActions": ["Audit"] }]);
    assert_eq!((&noted["a/size"], failure(&noted)), (&json!("has 2"), expected), "{noted}");
    assert_eq!(noted["a/long"].as_str().map(str::len), Some(10 * 1024));

    let (mut denying, mut counted) = (policy("c", "secrets", "true"), policy("d", "secrets", "true"));
    denying["spec"]["validations"] = json!([{ "expression": "true" }, { "expression": "false", "message": "no" }]);
    counted["spec"]["validations"] = json!([{ "expression": "false", "message": "later" }]);
    bound(&server, denying, &["Deny", "Audit"]).await;
    bound(&server, counted, &["Audit"]).await;
    kept.take();
    let secret = json!({ "metadata": { "name": "s" } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/secrets", secret).await.0, 422);
    let refused = kept.take().pop().expect("a record");
    let expected = json!([{ "message": "no", "policy": "c", "binding": "c", "expressionIndex": 1,
        "validationActions": ["Deny", "Audit"] }]);
    assert_eq!(refused["responseStatus"]["code"], 422);
    assert_eq!(failure(&refused["annotations"]), expected, "the first that failed is noted");
    server.stop().await;
}

/// Whoever asks why is told of a mutating policy that fails each time, though requests pass without it.
#[tokio::test]
async fn the_journal_says_which_mutating_policy_fails() {
    const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let patch = |path: &str| {
        let rule =
            json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
        let expression = format!("[JSONPatch{{op: 'remove', path: '{path}'}}]");
        json!({ "metadata": { "name": "m" }, "spec": {
            "failurePolicy": "Ignore", "reinvocationPolicy": "Never", "matchConstraints": { "resourceRules": [rule] },
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
        } })
    };
    assert_eq!(call(&server, "POST", MUTATING, patch("/data/none")).await.0, 201);
    let binding = json!({ "metadata": { "name": "m" }, "spec": { "policyName": "m" } });
    let (code, status) = call(&server, "POST", &MUTATING.replace("policies", "policybindings"), binding).await;
    assert_eq!(code, 201, "{status}");
    let journal =
        "/apis/corten.dev/v1/namespaces/default/journals/mutatingadmissionpolicies.admissionregistration.k8s.io.m";
    let waits = async || call(&server, "GET", journal, Value::Null).await.1["decisions"][0]["waits"].clone();
    assert_eq!(waits().await, Value::Null, "it was not asked yet");
    let map = |name: &str| json!({ "metadata": { "name": name }, "data": { "k": "v" } });
    for name in ["a", "b"] {
        assert_eq!(call(&server, "POST", MAPS, map(name)).await.0, 201);
    }
    let failing = waits().await;
    assert_eq!((&failing[0]["reason"], &failing[0]["actor"]), (&json!("PolicyFailing"), &json!("Author")), "{failing}");
    let says = "it failed 2 times in a row, and what it is about passes without it: error applying JSON Patch: ";
    assert!(failing[0]["message"].as_str().is_some_and(|it| it.starts_with(says)), "{failing}");
    let mut mended = call(&server, "GET", &format!("{MUTATING}/m"), Value::Null).await.1;
    mended["spec"]["mutations"] = patch("/data/k")["spec"]["mutations"].clone();
    assert_eq!(call(&server, "PUT", &format!("{MUTATING}/m"), mended).await.0, 200);
    assert_eq!(waits().await, Value::Null, "what it was before says nothing of it");
    assert_eq!(call(&server, "POST", MAPS, map("c")).await.1["data"], Value::Null);
    assert_eq!(waits().await, Value::Null);
    server.stop().await;
}

/// The refusal is in upstream's words, which name nobody.
#[tokio::test]
async fn a_mutating_policy_that_moves_objects_elsewhere_is_named_in_its_journal() {
    const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    const JOURNAL: &str =
        "/apis/corten.dev/v1/namespaces/default/journals/mutatingadmissionpolicies.admissionregistration.k8s.io.m";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
    let expression = "[JSONPatch{op: 'add', path: '/metadata/namespace', value: 'elsewhere'}]";
    let policy = json!({ "metadata": { "name": "m" }, "spec": {
        "failurePolicy": "Ignore", "reinvocationPolicy": "Never", "matchConstraints": { "resourceRules": [rule] },
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
    } });
    assert_eq!(call(&server, "POST", MUTATING, policy).await.0, 201);
    let binding = json!({ "metadata": { "name": "m" }, "spec": { "policyName": "m" } });
    assert_eq!(call(&server, "POST", &MUTATING.replace("policies", "policybindings"), binding).await.0, 201);
    let (code, status) = call(&server, "POST", MAPS, json!({ "metadata": { "name": "a" } })).await;
    assert_eq!(code, 400, "{status}");
    let told = call(&server, "GET", JOURNAL, Value::Null).await.1["decisions"][0]["waits"][0].clone();
    assert_eq!((&told["reason"], &told["actor"]), (&json!("PolicyFailing"), &json!("Author")), "{told}");
    let says = "it failed, and what it is about is refused: it changes metadata.namespace from ";
    assert!(told["message"].as_str().is_some_and(|it| it.starts_with(says)), "{told}");
    server.stop().await;
}

/// What a deletion and the server set is nothing that admission sets of a new object.
#[tokio::test]
async fn a_mutating_policy_marks_no_new_object_as_deleted() {
    const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
    let add = |name: &str, value: &str| format!("JSONPatch{{op: 'add', path: '/metadata/{name}', value: {value}}}");
    let time = "'2020-01-01T00:00:00Z'";
    let patches = [
        add("deletionTimestamp", time),
        add("deletionGracePeriodSeconds", "0"),
        add("creationTimestamp", time),
        add("uid", "'mine'"),
        add("generation", "7"),
        add("selfLink", "'/mine'"),
        add("finalizers", "['example.com/kept']"),
    ];
    let expression = format!("[{}]", patches.join(", "));
    let policy = json!({ "metadata": { "name": "m" }, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": { "resourceRules": [rule] },
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
    } });
    assert_eq!(call(&server, "POST", MUTATING, policy).await.0, 201);
    let binding = json!({ "metadata": { "name": "m" }, "spec": { "policyName": "m" } });
    assert_eq!(call(&server, "POST", &MUTATING.replace("policies", "policybindings"), binding).await.0, 201);
    let (code, map) = call(&server, "POST", MAPS, json!({ "metadata": { "name": "a" } })).await;
    assert_eq!(code, 201, "{map}");
    let metadata = &map["metadata"];
    assert_eq!(metadata["finalizers"], json!(["example.com/kept"]), "the policy was asked");
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"] {
        assert_eq!(metadata[name], Value::Null, "{name}");
    }
    assert!(metadata["uid"] != "mine" && metadata["creationTimestamp"] != "2020-01-01T00:00:00Z", "{metadata}");
    server.stop().await;
}

/// A request for a token is looked at as a policy has made it (`TokenREST.Create`).
#[tokio::test]
async fn a_policy_makes_no_token_that_nobody_may_ask_for() {
    const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let rule = json!({ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["serviceaccounts/token"] });
    let policy = json!({ "metadata": { "name": "m" }, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": { "resourceRules": [rule] },
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": "[JSONPatch{op: 'test', path: '/kind', value: 'TokenRequest'}]" } }],
    } });
    assert_eq!(call(&server, "POST", MUTATING, policy).await.0, 201);
    let binding = json!({ "metadata": { "name": "m" }, "spec": { "policyName": "m" } });
    assert_eq!(call(&server, "POST", &MUTATING.replace("policies", "policybindings"), binding).await.0, 201);
    assert_eq!(call(&server, "POST", ACCOUNTS, json!({ "metadata": { "name": "bot" } })).await.0, 201);
    for (expression, code, says) in [
        (
            "[JSONPatch{op: 'replace', path: '/spec/expirationSeconds', value: 9223372036854775807}]",
            422,
            "larger than 2^32",
        ),
        ("[JSONPatch{op: 'replace', path: '/spec/expirationSeconds', value: 5}]", 422, "less than 10 minutes"),
        ("[JSONPatch{op: 'add', path: '/metadata/name', value: 'other'}]", 422, "must match the service account name"),
        ("[JSONPatch{op: 'remove', path: '/spec/audiences'}]", 201, "\"audiences\":[\"https://"),
        ("[JSONPatch{op: 'remove', path: '/spec'}]", 201, "\"expirationSeconds\":3600"),
    ] {
        let change = json!({ "spec": { "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }] } });
        assert_eq!(patched(&server, &format!("{MUTATING}/m"), "application/merge-patch+json", &change).await.0, 200);
        let asked = json!({ "metadata": { "name": "bot" }, "spec": { "audiences": ["https://vault"] } });
        let answer = call(&server, "POST", &format!("{ACCOUNTS}/bot/token"), asked).await;
        assert!(answer.0 == code && answer.1.to_string().contains(says), "{expression}: {answer:?}");
    }
    server.stop().await;
}

/// One that denies every deletion is told of, though it allows all else: loops that delete wait for it.
#[tokio::test]
async fn the_journal_says_which_validating_policy_denies_all_or_fails() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let mut nodelete = policy("nodelete", "configmaps", "request.operation != 'DELETE'");
    nodelete["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = json!(["*"]);
    bound(&server, nodelete, &["Deny"]).await;
    let journal = |policy: &str| {
        let of = "validatingadmissionpolicies.admissionregistration.k8s.io";
        format!("/apis/corten.dev/v1/namespaces/default/journals/{of}.{policy}")
    };
    let waits = async |policy: &str| {
        call(&server, "GET", &journal(policy), Value::Null).await.1["decisions"][0]["waits"].clone()
    };
    let map = |name: &str| json!({ "metadata": { "name": name }, "data": { "k": "v" } });
    for n in 0..5 {
        assert_eq!(waits("nodelete").await, Value::Null, "it may mean that one");
        let name = format!("m{n}");
        assert_eq!(call(&server, "POST", MAPS, map(&name)).await.0, 201);
        assert_eq!(call(&server, "DELETE", &format!("{MAPS}/{name}"), Value::Null).await.0, 422);
    }
    let denying = waits("nodelete").await;
    assert_eq!((&denying[0]["reason"], &denying[0]["actor"]), (&json!("PolicyDenying"), &json!("Author")), "{denying}");
    let says = "it denied the last 5 requests to DELETE that it was asked about, by spec.validations[0]";
    assert_eq!(denying[0]["message"], says);
    bound(&server, policy("broken", "configmaps", "object.data.none == 'x'"), &["Deny"]).await;
    assert_eq!(call(&server, "POST", MAPS, map("other")).await.0, 422);
    let failing = waits("broken").await;
    assert_eq!(failing[0]["reason"], "PolicyFailing", "{failing}");
    assert!(failing[0]["message"].as_str().is_some_and(|it| it.ends_with("no such key: none")), "{failing}");
    let audits = json!({ "spec": { "validationActions": ["Audit"] } });
    let merge = "application/merge-patch+json";
    assert_eq!(patched(&server, &format!("{BINDINGS}/broken"), merge, &audits).await.0, 200);
    assert_eq!(waits("broken").await, Value::Null, "as it is bound now it has refused nothing");
    let mended = json!({ "spec": { "validations": [{ "expression": "true" }] } });
    let (code, status) = patched(&server, &format!("{POLICIES}/nodelete"), merge, &mended).await;
    assert_eq!(code, 200, "{status}");
    assert_eq!(waits("nodelete").await, Value::Null, "what it was before says nothing of it");
    server.stop().await;
}

/// A bomb costs its budget and no more, and refuses what it was asked about.
#[tokio::test]
async fn a_bomb_refuses_and_ends() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let bomb = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, object.data[a] + object.data[b] != object.data[c] + object.data[d] || true))))";
    bound(&server, policy("bomb", "configmaps", bomb), &["Deny"]).await;
    let data: serde_json::Map<String, Value> = (0..500).map(|it| (format!("k{it}"), json!("v"))).collect();
    let (code, status) = call(&server, "POST", MAPS, json!({ "metadata": { "name": "a" }, "data": data })).await;
    assert_eq!(code, 422);
    let message = status["message"].as_str().expect("a message");
    assert!(message.ends_with("resulted in error: operation cancelled: actual cost limit exceeded"), "{message}");
}

/// A parameter of megabytes is read once, not for each request.
#[tokio::test]
async fn large_parameters_and_thousands_of_policies() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let data: serde_json::Map<String, Value> =
        (0..10_000).map(|it| (format!("k{it}"), json!("v".repeat(90)))).collect();
    let (code, _) = call(&server, "POST", MAPS, json!({ "metadata": { "name": "params" }, "data": data })).await;
    assert_eq!(code, 201);
    let mut large = policy("large", "configmaps", "params.data.k7.startsWith('v')");
    large["spec"]["paramKind"] = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let binding = json!({ "metadata": { "name": "large" }, "spec": {
        "policyName": "large", "validationActions": ["Deny"],
        "paramRef": { "name": "params", "namespace": "default", "parameterNotFoundAction": "Deny" },
    } });
    assert_eq!(call(&server, "POST", POLICIES, large).await.0, 201);
    assert_eq!(call(&server, "POST", BINDINGS, binding).await.0, 201);
    for at in 0..1000 {
        let other = policy(&format!("p{at}"), "secrets", "object.metadata.name != 'refused'");
        bound(&server, other, &["Deny"]).await;
    }
    for (path, name, expected) in [
        (MAPS, "a", 201),
        (MAPS, "b", 201),
        ("/api/v1/namespaces/default/secrets", "a", 201),
        ("/api/v1/namespaces/default/secrets", "refused", 422),
    ] {
        let (code, status) = call(&server, "POST", path, json!({ "metadata": { "name": name } })).await;
        assert_eq!(code, expected, "{status}");
    }
}

/// A refusal for a parameter that is not there names neither that nor where it was looked for: the policy and the binding do.
#[tokio::test]
async fn the_journals_say_which_parameter_is_missing() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let mut asks = policy("p", "configmaps", "true");
    asks["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = json!(["DELETE"]);
    asks["spec"]["paramKind"] = json!({ "apiVersion": "v1", "kind": "Secret" });
    assert_eq!(call(&server, "POST", POLICIES, asks).await.0, 201);
    let binding = json!({ "metadata": { "name": "b" }, "spec": { "policyName": "p", "validationActions": ["Deny"],
        "paramRef": { "name": "limits", "parameterNotFoundAction": "Deny" } } });
    assert_eq!(call(&server, "POST", BINDINGS, binding).await.0, 201);
    assert_eq!(call(&server, "POST", MAPS, json!({ "metadata": { "name": "m" } })).await.0, 201);
    let of = |resource: &str, name: &str| {
        format!("/apis/corten.dev/v1/namespaces/default/journals/{resource}.admissionregistration.k8s.io.{name}")
    };
    let policy = of("validatingadmissionpolicies", "p");
    let bound = of("validatingadmissionpolicybindings", "b");
    let told =
        async |journal: &str| call(&server, "GET", journal, Value::Null).await.1["decisions"][0]["waits"].clone();
    assert_eq!(told(&policy).await, Value::Null, "it was not asked yet");
    let (code, status) = call(&server, "DELETE", &format!("{MAPS}/m"), Value::Null).await;
    assert_eq!(code, 422, "{status}");
    let says = "bound by b, the policy could not be asked, and what it is about is refused: its parameter, the secret \"limits\" in default, is not there";
    for journal in [&policy, &bound] {
        let told = told(journal).await;
        assert_eq!((&told[0]["reason"], &told[0]["message"]), (&json!("ParameterNotFound"), &json!(says)), "{told}");
    }
    assert_eq!(told(&policy).await[0]["on"], "validatingadmissionpolicybinding/b");
    let secret = json!({ "metadata": { "name": "limits" } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/secrets", secret).await.0, 201);
    assert_eq!(call(&server, "DELETE", &format!("{MAPS}/m"), Value::Null).await.0, 200);
    assert_eq!(told(&policy).await, Value::Null, "it is there");
    server.stop().await;
}

/// Of several parameters one does not fit: neither the policy nor the others are at fault.
#[tokio::test]
async fn the_journal_says_with_which_parameter_a_policy_fails() {
    const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let mut asks = policy("p", "configmaps", "params.data.max == '1'");
    asks["spec"]["paramKind"] = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    assert_eq!(call(&server, "POST", POLICIES, asks.clone()).await.0, 201);
    let mut changes = asks;
    changes["metadata"]["name"] = json!("m");
    changes["spec"]["failurePolicy"] = json!("Ignore");
    changes["spec"]["reinvocationPolicy"] = json!("Never");
    changes["spec"]["mutations"] = json!([{ "patchType": "JSONPatch", "jsonPatch": {
        "expression": "[JSONPatch{op: 'add', path: '/data/max', value: params.data.max}]" } }]);
    changes["spec"].as_object_mut().expect("a spec").remove("validations");
    let (code, status) = call(&server, "POST", MUTATING, changes).await;
    assert_eq!(code, 201, "{status}");
    let fits = json!({ "metadata": { "name": "a" }, "data": { "max": "1" } });
    for param in [fits, json!({ "metadata": { "name": "l5" }, "data": { "other": "1" } })] {
        assert_eq!(call(&server, "POST", MAPS, param).await.0, 201);
    }
    let reference = json!({ "selector": {}, "namespace": "default", "parameterNotFoundAction": "Deny" });
    let binding = json!({ "metadata": { "name": "b" }, "spec": { "policyName": "p", "validationActions": ["Warn"],
        "paramRef": reference } });
    assert_eq!(call(&server, "POST", BINDINGS, binding).await.0, 201);
    let binding = json!({ "metadata": { "name": "b" }, "spec": { "policyName": "m", "paramRef": reference } });
    assert_eq!(call(&server, "POST", &MUTATING.replace("policies", "policybindings"), binding).await.0, 201);
    let map = json!({ "metadata": { "name": "x" }, "data": { "k": "v" } });
    let (code, status) = call(&server, "POST", MAPS, map).await;
    assert_eq!(code, 201, "{status}");
    for (policies, name) in [("validatingadmissionpolicies", "p"), ("mutatingadmissionpolicies", "m")] {
        let journal =
            format!("/apis/corten.dev/v1/namespaces/default/journals/{policies}.admissionregistration.k8s.io.{name}");
        let told = call(&server, "GET", &journal, Value::Null).await.1["decisions"][0]["waits"][0]["message"].clone();
        let says = told.as_str().unwrap_or_default();
        assert!(says.contains(": with its parameter, the configmap \"l5\" in default: "), "{told}");
        assert!(says.ends_with("no such key: max"), "{told}");
    }
    server.stop().await;
}
