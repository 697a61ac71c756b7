//! What mutating webhooks see, and what becomes of what they change.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    CONFIGMAPS, MUTATING, VALIDATING, ask, ask_as, configure, create,
    hook::{Hook, allowed, patched, review},
    started, webhook,
};

fn label(name: &str) -> Value {
    json!([{ "op": "add", "path": "/metadata/labels", "value": { name: "yes" } }])
}

#[tokio::test]
async fn a_webhook_sees_the_request() {
    let server = started().await;
    let (first, last) = (Hook::start(|it| patched(it, &label("first"))).await, Hook::start(allowed).await);
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &first.client_config(), &json!({}))]).await;
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &last.client_config(), &json!({}))]).await;
    let object = json!({ "metadata": { "generateName": "a-" }, "data": { "k": "v" } });
    let created = ask(&server, "POST", &format!("{CONFIGMAPS}?fieldManager=me"), &object).await;
    assert_eq!((created.code, &created.body["metadata"]["labels"]), (201, &json!({ "first": "yes" })));
    // What webhooks change nobody owns.
    let owners = &created.body["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(owners["f:metadata"].get("f:labels"), None, "{owners}");

    let [mut seen] = <[Value; 1]>::try_from(first.take_seen()).expect("one question");
    assert!(seen["request"]["uid"].as_str().is_some_and(|it| !it.is_empty()));
    let owned = seen["request"]["object"]["metadata"]["managedFields"].take();
    assert_eq!(owned[0]["manager"], "me");
    seen["request"]["uid"] = "1".into();
    assert_eq!(
        seen,
        json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": "1",
            "kind": { "group": "", "version": "v1", "kind": "ConfigMap" },
            "resource": { "group": "", "version": "v1", "resource": "configmaps" },
            "requestKind": { "group": "", "version": "v1", "kind": "ConfigMap" },
            "requestResource": { "group": "", "version": "v1", "resource": "configmaps" },
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": { "username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"] },
            "dryRun": false,
            "options": { "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me" },
            "object": { "kind": "ConfigMap", "apiVersion": "v1", "data": { "k": "v" },
                "metadata": { "generateName": "a-", "namespace": "default", "managedFields": null } },
            "oldObject": null,
        } })
    );
    // The object as it is stored, but for its revision.
    let [seen] = <[Value; 1]>::try_from(last.take_seen()).expect("one question");
    let mut stored = created.body.clone();
    stored["metadata"].as_object_mut().expect("an object").remove("resourceVersion");
    assert_eq!(seen["request"]["object"], stored);

    let path = format!("{CONFIGMAPS}/{}", stored["metadata"]["name"].as_str().expect("a name"));
    let change = json!({ "data": { "k": "w" } });
    assert_eq!(ask_as(&server, "PATCH", &path, "application/merge-patch+json", &change).await.code, 200);
    let seen = &last.take_seen()[0]["request"];
    assert_eq!(
        (&seen["operation"], &seen["oldObject"]["data"]["k"], &seen["object"]["data"]["k"]),
        (&json!("UPDATE"), &json!("v"), &json!("w"))
    );
    assert_eq!(seen["options"]["kind"], "UpdateOptions");
    let options = json!({ "propagationPolicy": "Orphan", "gracePeriodSeconds": 0 });
    first.take_seen();
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &last.client_config(), &json!({}))]).await;
    assert_eq!(ask(&server, "DELETE", &path, &options).await.code, 200);
    let seen = &last.take_seen()[0]["request"];
    assert_eq!(
        (&seen["operation"], &seen["object"], &seen["oldObject"]["data"]["k"]),
        (&json!("DELETE"), &Value::Null, &json!("w"))
    );
    assert_eq!(
        seen["options"],
        json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Orphan", "gracePeriodSeconds": 0 })
    );
    server.stop().await;
}

/// The refusal is in upstream's words, which name nobody: the journal of the configuration says whose it is.
#[tokio::test]
async fn who_moves_an_object_elsewhere_is_named_in_its_journal() {
    let server = started().await;
    let hook = Hook::start(|it| {
        let field = it["request"]["object"]["data"]["moves"].as_str().unwrap_or("labels").to_owned();
        let value = if field == "labels" { json!({ "a": "b" }) } else { json!("elsewhere") };
        patched(it, &json!([{ "op": "add", "path": format!("/metadata/{field}"), "value": value }]))
    })
    .await;
    let rules = json!([{ "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] }]);
    let more = json!({ "rules": rules, "failurePolicy": "Ignore" });
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &more)]).await;
    let journal =
        "/apis/corten.dev/v1/namespaces/default/journals/mutatingwebhookconfigurations.admissionregistration.k8s.io.m";
    let waits = async || ask(&server, "GET", journal, &Value::Null).await.body["decisions"][0]["waits"].clone();
    let map = |moves: &str| json!({ "metadata": { "name": "a" }, "data": { "moves": moves } });
    assert_eq!(ask(&server, "POST", CONFIGMAPS, &map("namespace")).await.code, 400);
    let told = waits().await;
    let says = "webhook m.example.com gives no valid answer, and what it is about is refused: it changes metadata.namespace from ";
    assert_eq!((&told[0]["reason"], &told[0]["actor"]), (&json!("WebhookFailing"), &json!("External")), "{told}");
    assert!(told[0]["message"].as_str().is_some_and(|it| it.starts_with(says)), "{told}");
    // A new object may be given another name.
    assert_eq!(ask(&server, "POST", CONFIGMAPS, &map("name")).await.body["metadata"]["name"], "elsewhere");
    assert_eq!(waits().await, Value::Null, "what it left in its place was taken");
    assert_eq!(ask(&server, "POST", CONFIGMAPS, &map("labels")).await.code, 201);
    for field in ["name", "namespace", "uid"] {
        let answered = ask(&server, "PUT", &format!("{CONFIGMAPS}/a"), &map(field)).await;
        assert!(answered.code >= 400, "{field}: {}", answered.body);
        let told = waits().await;
        let says = format!("it changes metadata.{field} from ");
        assert!(told[0]["message"].as_str().is_some_and(|it| it.contains(&says)), "{field}: {told} {}", answered.body);
    }
    assert_eq!(ask(&server, "PUT", &format!("{CONFIGMAPS}/a"), &map("labels")).await.code, 200);
    server.stop().await;
}

#[tokio::test]
async fn what_a_patch_makes_is_read_as_an_object() {
    let server = started().await;
    let hook = Hook::start(|it| {
        let patch = it["request"]["object"]["metadata"]["annotations"]["patch"].as_str().expect("a patch");
        patched(it, &serde_json::from_str(patch).expect("JSON"))
    })
    .await;
    let rules = json!([{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "services"] }]);
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({ "rules": rules }))])
        .await;
    let bomb: Vec<Value> = (0..60).map(|_| json!({ "op": "copy", "from": "/data", "path": "/data/x" })).collect();
    for (patch, code, said) in [
        (json!([]), 201, ""),
        (json!([{ "op": "add", "path": "/unknown", "value": 1 }]), 201, ""),
        (json!([{ "op": "add", "path": "/data", "value": { "k": 1 } }]), 500, "Internal error occurred: "),
        (json!([{ "op": "add", "path": "/data", "value": { "a b": "" } }]), 422, "data[a b]: Invalid value"),
        (json!([{ "op": "replace", "path": "/kind", "value": "Secret" }]), 500, "changes the object's kind"),
        (json!([{ "op": "remove", "path": "/nothing" }]), 500, "Internal error occurred: "),
        (
            json!([{ "op": "add", "path": "/metadata/namespace", "value": "kube-system" }]),
            400,
            "does not match the namespace",
        ),
        (
            json!([{ "op": "add", "path": "/metadata/uid", "value": "mine" }, { "op": "add", "path": "/metadata/creationTimestamp", "value": "2001-01-01T00:00:00Z" }]),
            201,
            "",
        ),
        (
            json!([{ "op": "add", "path": "/metadata/managedFields", "value": [{ "manager": 5 }] }]),
            500,
            "Internal error occurred: ",
        ),
        (json!(bomb), 500, "Internal error occurred: "),
    ] {
        let object = json!({ "metadata": { "name": "a", "annotations": { "patch": patch.to_string() } }, "data": { "k": "v".repeat(1000) } });
        let answered = ask(&server, "POST", CONFIGMAPS, &object).await;
        assert_eq!(answered.code, code, "{patch}: {}", answered.body);
        assert!(answered.message().contains(said), "{patch}: {}", answered.body);
        assert_eq!(answered.body.get("unknown"), None);
        assert_ne!(answered.body["metadata"]["uid"], "mine");
        assert_ne!(answered.body["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z");
        ask(&server, "DELETE", &format!("{CONFIGMAPS}/a"), &Value::Null).await;
    }
    // What a webhook leaves out is filled in, and what nobody may set is dropped.
    let ports = json!([{ "op": "replace", "path": "/spec/ports", "value": [{ "port": 81 }] }, { "op": "add", "path": "/status", "value": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } } }]);
    let service = json!({ "metadata": { "name": "s", "annotations": { "patch": ports.to_string() } }, "spec": { "ports": [{ "port": 80 }] } });
    let answered = ask(&server, "POST", "/api/v1/namespaces/default/services", &service).await;
    assert_eq!(
        answered.body["spec"]["ports"],
        json!([{ "port": 81, "protocol": "TCP", "targetPort": 81 }]),
        "{}",
        answered.body
    );
    assert_eq!(answered.body["status"], json!({ "loadBalancer": {} }));
    server.stop().await;
}

/// `a` is called first, `b` changes what it saw, and only who wants to be is called again.
#[tokio::test]
async fn who_saw_an_older_object_is_called_again_where_it_wants_to_be() {
    let server = started().await;
    let count = |it: &Value, key: &str| {
        let seen = it["request"]["object"]["data"][key].as_str().unwrap_or_default();
        patched(it, &json!([{ "op": "add", "path": format!("/data/{key}"), "value": format!("{seen}{key}") }]))
    };
    let once = |it: &Value| match it["request"]["object"]["data"]["b"].is_null() {
        true => patched(it, &json!([{ "op": "add", "path": "/data/b", "value": "b" }])),
        false => allowed(it),
    };
    let (a, b) = (Hook::start(move |it| count(it, "a")).await, Hook::start(once).await);
    for (of_a, of_b, calls, data) in [
        ("Never", "Never", [1, 1], json!({ "x": "y", "a": "a", "b": "b" })),
        ("IfNeeded", "Never", [2, 1], json!({ "x": "y", "a": "aa", "b": "b" })),
        ("Never", "IfNeeded", [1, 1], json!({ "x": "y", "a": "a", "b": "b" })),
        ("IfNeeded", "IfNeeded", [2, 2], json!({ "x": "y", "a": "aa", "b": "b" })),
    ] {
        let hook = |hook: &Hook, policy: &str| {
            webhook("m.example.com", &hook.client_config(), &json!({ "reinvocationPolicy": policy }))
        };
        // By the names of the configurations, whichever came first.
        configure(&server, MUTATING, "2", &[hook(&b, of_b)]).await;
        configure(&server, MUTATING, "1", &[hook(&a, of_a)]).await;
        let object = json!({ "metadata": { "name": "a" }, "data": { "x": "y" } });
        let answered = ask(&server, "POST", CONFIGMAPS, &object).await;
        assert_eq!(answered.body["data"], data, "{of_a} {of_b}");
        assert_eq!([a.take_seen().len(), b.take_seen().len()], calls, "{of_a} {of_b}");
        configure(&server, MUTATING, "1", &[]).await;
        configure(&server, MUTATING, "2", &[]).await;
        ask(&server, "DELETE", &format!("{CONFIGMAPS}/a"), &Value::Null).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn what_it_says_beside_its_answer_is_passed_on() {
    let server = started().await;
    let hook =
        Hook::start(|it| review(it, json!({ "allowed": true, "warnings": ["mind the gap", "x".repeat(100_000)] })))
            .await;
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({}))]).await;
    let answered = create(&server, "a").await;
    let warnings: Vec<_> = answered.headers.get_all("warning").iter().map(|it| it.to_str().expect("text")).collect();
    assert_eq!(warnings[0], "299 - \"mind the gap\"");
    assert_eq!(warnings[1].len(), 256 + "299 - \"\"".len());
    server.stop().await;
}

#[tokio::test]
async fn a_scale_is_shown_and_changed_as_one() {
    let server = started().await;
    let hook = Hook::start(|it| patched(it, &json!([{ "op": "replace", "path": "/spec/replicas", "value": 2 }]))).await;
    let rules = json!([{ "operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"] }]);
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({ "rules": rules }))])
        .await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let deployment = json!({ "metadata": { "name": "d" }, "spec": { "replicas": 1, "selector": { "matchLabels": { "a": "b" } }, "template": template } });
    assert_eq!(ask(&server, "POST", deployments, &deployment).await.code, 201);
    let change = json!({ "spec": { "replicas": 9 } });
    let scaled =
        ask_as(&server, "PATCH", &format!("{deployments}/d/scale"), "application/merge-patch+json", &change).await;
    assert_eq!(scaled.body["spec"]["replicas"], 2, "{}", scaled.body);
    let seen = &hook.take_seen()[0]["request"];
    assert_eq!(seen["kind"], json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }));
    assert_eq!(
        (&seen["subResource"], &seen["object"]["spec"]["replicas"], &seen["oldObject"]["spec"]["replicas"]),
        (&json!("scale"), &json!(9), &json!(1))
    );
    server.stop().await;
}

/// A patch as large as an answer may be, of operations that are none, or of one whose path is most of it.
#[tokio::test]
async fn a_large_patch_is_refused_in_few_words() {
    let server = started().await;
    let zeros = format!("[{}0]", "0,".repeat(2_200_000));
    let path = format!("/{}", "p".repeat(2 << 20));
    let operation = |op: &str, more: Value| {
        let mut operation = json!([{ "op": op, "path": path }]);
        operation[0].as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        operation.to_string()
    };
    for (patch, said) in [
        (zeros, "The allowed maximum operations in a JSON patch is 10000, got 2200001"),
        (operation("remove", json!({})), "remove operation does not apply: doc is missing path: \"/ppp"),
        (operation("test", json!({ "value": 1 })), "error in test for path: '/ppp"),
        (operation(&path, json!({})), "Unexpected kind: /ppp"),
        (
            json!([{ "op": "copy", "from": path, "path": "/data" }]).to_string(),
            "copy operation does not apply: doc is missing from path: \"/ppp",
        ),
    ] {
        let encoded = BASE64_STANDARD.encode(&patch);
        let hook =
            Hook::start(move |it| review(it, json!({ "allowed": true, "patchType": "JSONPatch", "patch": encoded })))
                .await;
        configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({}))]).await;
        let answered = create(&server, "a").await;
        assert_eq!(answered.code, 500, "{said}");
        let message = answered.message();
        assert!(message.contains(said) && message.len() < 5_000, "{said}: {} bytes", message.len());
    }
    server.stop().await;
}
