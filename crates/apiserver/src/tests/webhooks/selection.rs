//! Which requests webhooks are asked about.

use serde_json::{Value, json};

use super::{
    CONFIGMAPS, MUTATING, VALIDATING, ask, ask_as, configure,
    hook::{Hook, allowed, patched, review},
    started, webhook,
};
use crate::Server;

fn rule(operations: &[&str], group: &str, version: &str, resources: &[&str]) -> Value {
    json!([{ "operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": resources }])
}

/// What is done in every case, and what it is called.
async fn everything(server: &Server) {
    let config_map = json!({ "metadata": { "name": "a", "labels": { "app": "web" } } });
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let namespace = json!({ "metadata": { "name": "n", "labels": { "team": "blue" } } });
    let binding = json!({ "metadata": { "name": "p" }, "target": { "name": "n1" } });
    let scaler = json!({ "metadata": { "name": "h" }, "spec": { "maxReplicas": 3, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" } } });
    let event = json!({ "metadata": { "name": "p" } });
    let pods = "/api/v1/namespaces/default/pods";
    let account = json!({ "metadata": { "name": "default" } });
    let merge = "application/merge-patch+json";
    for (method, path, media_type, body, code) in [
        ("POST", CONFIGMAPS.to_owned(), "application/json", config_map.clone(), 201),
        ("PATCH", format!("{CONFIGMAPS}/a"), merge, json!({ "data": { "k": "v" } }), 200),
        ("POST", "/api/v1/namespaces".to_owned(), "application/json", namespace, 201),
        ("POST", "/api/v1/namespaces/n/configmaps".to_owned(), "application/json", config_map, 201),
        ("POST", "/api/v1/namespaces/default/serviceaccounts".to_owned(), "application/json", account, 201),
        ("POST", pods.to_owned(), "application/json", pod, 201),
        ("POST", format!("{pods}/p/binding"), "application/json", binding, 201),
        ("PATCH", format!("{pods}/p/status"), merge, json!({ "status": { "message": "m" } }), 200),
        ("POST", format!("{pods}/p/exec?command=ls"), "application/json", Value::Null, 0),
        ("POST", format!("{pods}/p/eviction"), "application/json", event, 201),
        (
            "POST",
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers".to_owned(),
            "application/json",
            scaler,
            201,
        ),
        ("DELETE", CONFIGMAPS.to_owned(), "application/json", Value::Null, 200),
    ] {
        let answered = ask_as(server, method, &path, media_type, &body).await;
        assert!(code == 0 || answered.code == code, "{method} {path}: {}", answered.body);
    }
    for path in
        ["/api/v1/namespaces/n/configmaps/a", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h"]
    {
        assert_eq!(ask(server, "DELETE", path, &Value::Null).await.code, 200);
    }
}

/// `CREATE pods/binding default/p`.
fn described(review: &Value) -> String {
    let request = &review["request"];
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let below = request["subResource"].as_str().map_or(String::new(), |it| format!("/{it}"));
    let version =
        request["kind"]["version"].as_str().filter(|it| *it != "v1").map_or(String::new(), |it| format!(" {it}"));
    format!(
        "{} {}{below} {}/{}{version}",
        text(&request["operation"]),
        text(&request["resource"]["resource"]),
        text(&request["namespace"]),
        text(&request["name"])
    )
}

#[tokio::test]
async fn webhooks_are_asked_about_what_they_match() {
    let all = rule(&["*"], "*", "*", &["configmaps"]);
    let team = json!({ "matchLabels": { "team": "blue" } });
    let condition = |expression: &str| json!({ "rules": rule(&["CREATE"], "", "v1", &["configmaps"]), "matchConditions": [{ "name": "c", "expression": expression }] });
    let two = ["CREATE configmaps default/a", "CREATE configmaps n/a"];
    for (fields, expected) in [
        (
            json!({ "rules": all }),
            vec![
                "CREATE configmaps default/a",
                "UPDATE configmaps default/a",
                "CREATE configmaps n/a",
                "DELETE configmaps default/a",
                "DELETE configmaps n/a",
            ],
        ),
        (json!({ "rules": rule(&["CREATE"], "", "v2", &["configmaps"]) }), vec![]),
        (json!({ "rules": all, "namespaceSelector": team }), vec!["CREATE configmaps n/a", "DELETE configmaps n/a"]),
        (
            json!({ "rules": rule(&["CREATE"], "", "v1", &["namespaces"]), "namespaceSelector": team }),
            vec!["CREATE namespaces n/n"],
        ),
        (
            json!({ "rules": rule(&["CREATE"], "", "v1", &["*"]), "objectSelector": { "matchLabels": { "app": "web" } } }),
            two.to_vec(),
        ),
        (
            json!({ "rules": rule(&["*"], "", "v1", &["pods/*"]) }),
            vec![
                "CREATE pods default/p",
                "CREATE pods/binding default/p",
                "UPDATE pods/status default/p",
                "CONNECT pods/exec default/p",
                "CREATE pods/eviction default/p",
            ],
        ),
        (json!({ "rules": rule(&["DELETE"], "", "v1", &["pods", "pods/*"]) }), vec![]),
        (
            json!({ "rules": rule(&["CREATE"], "autoscaling", "v1", &["horizontalpodautoscalers"]) }),
            vec!["CREATE horizontalpodautoscalers default/h"],
        ),
        (
            json!({ "rules": rule(&["CREATE"], "autoscaling", "v1", &["horizontalpodautoscalers"]), "matchPolicy": "Exact" }),
            vec![],
        ),
        (
            json!({ "rules": rule(&["CREATE"], "autoscaling", "v2", &["horizontalpodautoscalers"]) }),
            vec!["CREATE horizontalpodautoscalers default/h v2"],
        ),
        (
            json!({ "rules": rule(&["*"], "*", "*", &["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]) }),
            vec![],
        ),
        (condition("object.metadata.namespace == 'n'"), vec!["CREATE configmaps n/a"]),
        (condition("request.userInfo.username == 'kubernetes-admin'"), two.to_vec()),
        (condition("namespaceObject.metadata.name == 'default'"), vec!["CREATE configmaps default/a"]),
        (condition("authorizer.group('').resource('pods').check('get').allowed()"), two.to_vec()),
        (condition("oldObject != null"), vec![]),
    ] {
        let server = started().await;
        let hook = Hook::start(allowed).await;
        configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &fields)]).await;
        everything(&server).await;
        let seen: Vec<String> = hook.take_seen().iter().map(described).collect();
        assert_eq!(seen, expected, "{fields}");
        configure(&server, VALIDATING, "v", &[]).await;
        server.stop().await;
    }
}

/// The object that an older webhook sees is in its own version, and what it says counts for the newer one.
#[tokio::test]
async fn an_equivalent_request_is_shown_in_the_version_that_matches() {
    let server = started().await;
    let hook = Hook::start(|it| {
        patched(it, &json!([{ "op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 55 }]))
    })
    .await;
    let rules = rule(&["CREATE"], "autoscaling", "v1", &["horizontalpodautoscalers"]);
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({ "rules": rules }))])
        .await;
    let scaler = json!({ "metadata": { "name": "h" }, "spec": { "maxReplicas": 3, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" } } });
    let made = ask(&server, "POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", &scaler).await;
    assert_eq!(made.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 55, "{}", made.body);
    let seen = &hook.take_seen()[0]["request"];
    assert_eq!(
        (&seen["object"]["apiVersion"], &seen["kind"]["version"], &seen["requestKind"]["version"]),
        (&json!("autoscaling/v1"), &json!("v1"), &json!("v2"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_dry_run_asks_only_who_has_no_side_effects() {
    let server = started().await;
    let hook = Hook::start(allowed).await;
    for (side_effects, code) in [("None", 201), ("NoneOnDryRun", 201)] {
        configure(
            &server,
            MUTATING,
            "m",
            &[webhook("m.example.com", &hook.client_config(), &json!({ "sideEffects": side_effects }))],
        )
        .await;
        let answered =
            ask(&server, "POST", &format!("{CONFIGMAPS}?dryRun=All"), &json!({ "metadata": { "name": "a" } })).await;
        assert_eq!(answered.code, code, "{}", answered.body);
        let seen = &hook.take_seen()[0]["request"];
        assert_eq!((&seen["dryRun"], &seen["options"]["dryRun"]), (&json!(true), &json!(["All"])));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_connection_may_be_refused() {
    let server = started().await;
    let hook =
        Hook::start(|it| review(it, json!({ "allowed": it["request"]["object"]["command"] != json!(["rm", "x"]) })))
            .await;
    let rules = rule(&["CONNECT"], "", "v1", &["pods/exec"]);
    configure(&server, VALIDATING, "v", &[webhook("v.example.com", &hook.client_config(), &json!({ "rules": rules }))])
        .await;
    for (command, said) in [("command=rm&command=x", "denied the request"), ("command=ls", "pods \"p\" not found")] {
        let answered =
            ask(&server, "POST", &format!("/api/v1/namespaces/default/pods/p/exec?{command}"), &Value::Null).await;
        let is_refused = answered.message().contains("denied the request");
        assert_eq!(is_refused, said.contains("denied"), "{}", answered.body);
    }
    assert_eq!(hook.take_seen()[0]["request"]["kind"]["kind"], "PodExecOptions");
    server.stop().await;
}

#[tokio::test]
async fn reviews_are_shown_to_webhooks_and_not_to_policies() {
    let hook = Hook::start(|it| {
        let is_refused = it["request"]["object"]["spec"]["user"] == "nobody";
        review(it, json!({ "allowed": !is_refused, "status": { "message": "nobody is not asked about" } }))
    })
    .await;
    let server = started().await;
    let rules = json!([
        rule(&["CREATE"], "authorization.k8s.io", "v1", &["*"])[0],
        rule(&["CREATE"], "authentication.k8s.io", "v1", &["*"])[0],
    ]);
    configure(&server, VALIDATING, "w", &[webhook("w.example.com", &hook.client_config(), &json!({ "rules": rules }))])
        .await;
    let spec = json!({ "matchConstraints": { "resourceRules": rules }, "validations": [{ "expression": "false" }] });
    let policy = json!({ "metadata": { "name": "no" }, "spec": spec });
    let binding =
        json!({ "metadata": { "name": "no" }, "spec": { "policyName": "no", "validationActions": ["Deny"] } });
    for (plural, object) in [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        assert_eq!(ask(&server, "POST", &path, &object).await.code, 201);
    }
    let attributes = json!({ "verb": "get", "resource": "pods" });
    let about = |user: &str| json!({ "spec": { "user": user, "resourceAttributes": attributes } });
    let local = json!({ "metadata": { "namespace": "default" }, "spec": { "user": "jane", "resourceAttributes": { "namespace": "default", "verb": "get", "resource": "pods" } } });
    let access = "/apis/authorization.k8s.io/v1";
    for (path, body, code, seen) in [
        (format!("{access}/subjectaccessreviews"), about("jane"), 201, &["CREATE subjectaccessreviews /"][..]),
        (format!("{access}/subjectaccessreviews"), about("nobody"), 400, &["CREATE subjectaccessreviews /"]),
        (format!("{access}/subjectaccessreviews"), json!({ "spec": {} }), 422, &[]),
        (
            format!("{access}/namespaces/default/localsubjectaccessreviews"),
            local,
            201,
            &["CREATE localsubjectaccessreviews default/"],
        ),
        (
            "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(),
            json!({ "spec": { "token": "t" } }),
            201,
            &["CREATE tokenreviews /"],
        ),
        (
            "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(),
            json!({}),
            201,
            &["CREATE selfsubjectreviews /"],
        ),
        (
            format!("{access}/selfsubjectaccessreviews"),
            json!({ "spec": { "resourceAttributes": attributes } }),
            201,
            &["CREATE selfsubjectaccessreviews /"],
        ),
        (
            format!("{access}/selfsubjectrulesreviews"),
            json!({ "spec": { "namespace": "default" } }),
            201,
            &["CREATE selfsubjectrulesreviews /"],
        ),
    ] {
        let answered = ask(&server, "POST", &path, &body).await;
        assert_eq!(answered.code, code, "{path}: {}", answered.body);
        let asked: Vec<String> = hook.take_seen().iter().map(described).collect();
        assert_eq!(asked, seen, "{path}");
    }
    server.stop().await;
}

/// The review is answered as the webhook left it: about another user, whom a role lets read Pods.
#[tokio::test]
async fn who_changes_a_review_changes_its_answer() {
    let hook =
        Hook::start(|it| patched(it, &json!([{ "op": "replace", "path": "/spec/user", "value": "jane" }]))).await;
    let server = started().await;
    let meta = json!({ "name": "reader" });
    let rule_of_role = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
    let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" });
    let jane = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" });
    for (plural, object) in [
        ("clusterroles", json!({ "metadata": meta, "rules": [rule_of_role] })),
        ("clusterrolebindings", json!({ "metadata": meta, "roleRef": reference, "subjects": [jane] })),
    ] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        let made = ask(&server, "POST", &path, &object).await;
        assert_eq!(made.code, 201, "{}", made.body);
    }
    let attributes = json!({ "namespace": "default", "verb": "get", "resource": "pods" });
    let about_joe =
        json!({ "metadata": { "namespace": "default" }, "spec": { "user": "joe", "resourceAttributes": attributes } });
    let access = "/apis/authorization.k8s.io/v1";
    let paths =
        [format!("{access}/subjectaccessreviews"), format!("{access}/namespaces/default/localsubjectaccessreviews")];
    let answers = async || {
        let mut answers = Vec::new();
        for (nth, path) in paths.iter().enumerate() {
            let mut review = about_joe.clone();
            if nth == 0 {
                review["metadata"] = json!({});
            }
            let answered = ask(&server, "POST", path, &review).await;
            assert_eq!(answered.code, 201, "{path}: {}", answered.body);
            let (user, status) = (&answered.body["spec"]["user"], &answered.body["status"]);
            answers.push((user.as_str().map(str::to_owned), status["allowed"].as_bool()));
        }
        answers
    };
    assert_eq!(answers().await, vec![(Some("joe".to_owned()), Some(false)); 2]);
    let rules = json!([rule(&["CREATE"], "authorization.k8s.io", "v1", &["*"])[0]]);
    configure(&server, MUTATING, "m", &[webhook("m.example.com", &hook.client_config(), &json!({ "rules": rules }))])
        .await;
    assert_eq!(answers().await, vec![(Some("jane".to_owned()), Some(true)); 2]);
    assert_eq!(hook.take_seen().iter().filter(|it| it["request"]["object"]["spec"]["user"] == "joe").count(), 2);
    server.stop().await;
}
