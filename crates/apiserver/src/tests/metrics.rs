//! What `/metrics` says after requests, in upstream's names and labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
};

use corten_access::{Identity, Peer};
use corten_cacher::body::whole;
use http_body_util::BodyExt;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use crate::{Server, tests::server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) async fn call(server: &Server, method: &str, path: &str, body: &Value) -> (u16, String) {
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = server.call(admin, request.body(body.into()).expect("a request of constants")).await;
    let code = answer.status().as_u16();
    let text = answer.into_body().collect().await.expect("a body in memory").to_bytes();
    (code, String::from_utf8_lossy(&text).into_owned())
}

/// The text repeats itself: who takes it compressed is sent a small part of it, and reads the same.
#[tokio::test]
async fn metrics_are_compressed_for_who_takes_that() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let request = http::Request::get("/metrics").header(http::header::ACCEPT_ENCODING, "gzip");
    let admin = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let answer = server.call(admin, request.body(Vec::new().into()).expect("a request of constants")).await;
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let sent = answer.into_body().collect().await.expect("a body in memory").to_bytes();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*sent).read_to_string(&mut text).expect("gzip");
    assert!(text.contains("\nprocess_max_fds ") && text.ends_with('\n'), "{text}");
    assert!(sent.len() * 5 < text.len(), "{} bytes of {}", sent.len(), text.len());
}

async fn assert_lines(server: &Server, lines: &[&str]) {
    let (_, text) = call(server, "GET", "/metrics", &Value::Null).await;
    for line in lines {
        assert!(text.lines().any(|it| it.starts_with(line)), "{line} is missing:\n{text}");
    }
}

#[tokio::test]
async fn plugins_and_steps_are_measured() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let map = json!({ "metadata": { "name": "a" } });
    assert_eq!(call(&server, "POST", MAPS, &map).await.0, 201);
    let refused = call(&server, "POST", "/api/v1/namespaces/none/configmaps", &map).await;
    assert_eq!(refused.0, 404, "{}", refused.1);
    assert_lines(
        &server,
        &[
            r#"apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="false",type="validate"}"#,
            r#"apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="true",type="admit"} 1"#,
            r#"apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle",operation="CREATE",rejected="true",type="admit"} 1"#,
            r#"apiserver_admission_controller_admission_duration_seconds_count{name="ResourceQuota",operation="CREATE",rejected="false",type="validate"}"#,
            r#"apiserver_request_sli_duration_seconds_count{component="apiserver",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} "#,
            r#"apiserver_flowcontrol_work_estimated_seats_bucket{flow_schema="exempt",priority_level="exempt",le="1"}"#,
            r#"apiserver_flowcontrol_watch_count_samples_bucket{flow_schema="exempt",priority_level="exempt",le="10000"}"#,
        ],
    )
    .await;
}

/// How many came by what, who they were as far as that is told, what they were allowed, and how long their certificates last.
#[tokio::test]
async fn who_comes_and_what_they_may_is_measured() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let credential = server.config().pki.issue_client("ann@example.org", &["ops"]).expect("a credential");
    let chain = CertificateDer::pem_slice_iter(credential.certificate.as_bytes());
    let certificates = chain.collect::<Result<_, _>>().expect("a certificate");
    let ann = Peer { address: ([127, 0, 0, 1], 1).into(), certificates };
    let ask = async |peer: Option<&Peer>, token: &str| {
        let mut request = http::Request::builder().uri(MAPS);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(whole("")).expect("a request of constants");
        server.answer(request, peer.cloned(), None).await.status().as_u16()
    };
    assert_eq!((ask(Some(&ann), "").await, ask(None, "").await, ask(None, "nonsense").await), (403, 403, 401));
    assert_lines(
        &server,
        &[
            r#"authentication_attempts{result="success"} 2"#,
            r#"authentication_attempts{result="failure"} 0"#,
            r#"authentication_attempts{result="error"} 1"#,
            r#"authentication_duration_seconds_bucket{result="success",le="16.384"} 2"#,
            r#"authenticated_user_requests{username="email_id"} 1"#,
            r#"authenticated_user_requests{username="other"} 1"#,
            r#"authorization_attempts_total{result="no-opinion"} 2"#,
            r#"authorization_duration_seconds_count{result="no-opinion"} 2"#,
            r#"apiserver_client_certificate_expiration_seconds_bucket{le="604800"} 0"#,
            r#"apiserver_client_certificate_expiration_seconds_count 1"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn mutating_policies_and_their_expressions_are_measured() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
    for (name, condition, expression) in [
        ("fine", "true", "[JSONPatch{op: 'add', path: '/data', value: {'a': 'b'}}]"),
        ("fails", "object.metadata.name == 'a'", "[JSONPatch{op: 'remove', path: '/data/none'}]"),
        ("other", "object.metadata.name == 'b'", "[JSONPatch{op: 'remove', path: '/data'}]"),
        ("broken", "object.data.none == 'b'", "[JSONPatch{op: 'remove', path: '/data'}]"),
    ] {
        let policy = json!({ "metadata": { "name": name }, "spec": {
            "failurePolicy": "Ignore", "reinvocationPolicy": "Never", "matchConstraints": { "resourceRules": [rule] },
            "matchConditions": [{ "name": "c", "expression": condition }],
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
        } });
        let binding = json!({ "metadata": { "name": name }, "spec": { "policyName": name } });
        let (code, told) = call(&server, "POST", POLICIES, &policy).await;
        assert_eq!(code, 201, "{told}");
        let bindings = POLICIES.replace("policies", "policybindings");
        assert_eq!(call(&server, "POST", &bindings, &binding).await.0, 201);
    }
    let (code, told) = call(&server, "POST", MAPS, &json!({ "metadata": { "name": "a" } })).await;
    assert_eq!(code, 201, "{told}");
    assert_lines(
        &server,
        &[
            r#"apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="fine",policy_binding="fine"} 1"#,
            r#"apiserver_mutating_admission_policy_check_total{error_type="invalid_error",policy="fails",policy_binding="fails"} 1"#,
            r#"apiserver_mutating_admission_policy_check_duration_seconds_count{error_type="no_error",policy="fine",policy_binding="fine"} 1"#,
            "apiserver_cel_compilation_duration_seconds_count 4",
            "apiserver_cel_evaluation_duration_seconds_count 6",
            r#"apiserver_admission_match_condition_evaluation_seconds_bucket{kind="policy",name="fine",operation="CREATE",type="validate",le="0.25"} 1"#,
            r#"apiserver_admission_match_condition_exclusions_total{kind="policy",name="other",operation="CREATE",type="validate"} 1"#,
            r#"apiserver_admission_match_condition_evaluation_errors_total{kind="policy",name="broken",operation="CREATE",type="validate"} 1"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn conditions_of_validating_policies_and_rules_of_definitions_are_measured() {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
    let policy = json!({ "metadata": { "name": "p" }, "spec": {
        "matchConstraints": { "resourceRules": [rule] },
        "matchConditions": [{ "name": "c", "expression": "object.metadata.name == 'b'" }],
        "validations": [{ "expression": "false" }],
    } });
    let binding = json!({ "metadata": { "name": "p" }, "spec": { "policyName": "p", "validationActions": ["Deny"] } });
    for (path, object, expected) in [
        (format!("{ADMISSION}ies"), policy, 201),
        (format!("{ADMISSION}ybindings"), binding, 201),
        (MAPS.to_owned(), json!({ "metadata": { "name": "a" } }), 201),
        (MAPS.to_owned(), json!({ "metadata": { "name": "b" } }), 422),
    ] {
        let (code, told) = call(&server, "POST", &path, &object).await;
        assert_eq!(code, expected, "{told}");
    }
    let labels = r#"kind="policy",name="p",operation="CREATE",type="validate""#;
    assert_lines(
        &server,
        &[
            &format!("apiserver_admission_match_condition_evaluation_seconds_count{{{labels}}} 2"),
            &format!("apiserver_admission_match_condition_exclusions_total{{{labels}}} 1"),
        ],
    )
    .await;
}

#[test]
fn what_a_request_waits_for_is_not_the_servers_own_time() {
    let metrics = corten_metrics::Metrics::default();
    let info = corten_routes::RequestInfo::read(&corten_kinds::Kinds::default(), "POST", MAPS, None).expect("a path");
    let second = std::time::Duration::from_secs(1);
    let time = corten_metrics::RequestTime { whole: 3 * second, waited: 2 * second + second / 2 };
    assert!(
        metrics.requests.record(&info, "application/json", 201, time).is_none(),
        "no answer to a write is measured"
    );
    let text = metrics.text(Vec::new());
    for line in [
        r#"apiserver_request_duration_seconds_sum{component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 3"#,
        r#"apiserver_request_sli_duration_seconds_sum{component="apiserver",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 0.5"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    }
}

#[tokio::test]
async fn answers_to_reads_are_measured() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    assert_eq!(call(&server, "POST", MAPS, &json!({ "metadata": { "name": "a" } })).await.0, 201);
    let (code, list) = call(&server, "GET", MAPS, &Value::Null).await;
    assert_eq!(code, 200);
    let labels = |verb: &str, scope: &str| {
        format!(
            r#"component="apiserver",group="",resource="configmaps",scope="{scope}",subresource="",verb="{verb}",version="v1""#
        )
    };
    let of_list = labels("LIST", "namespace");
    assert_lines(
        &server,
        &[
            &format!("apiserver_response_sizes_sum{{{of_list}}} {}", list.len()),
            &format!(r#"apiserver_response_sizes_bucket{{{of_list},le="1000"}} 1"#),
            &format!(r#"apiserver_response_sizes_bucket{{{of_list},le="1000000000"}} 1"#),
        ],
    )
    .await;
    let (_, text) = call(&server, "GET", "/metrics", &Value::Null).await;
    assert!(!text.contains(&format!("apiserver_response_sizes_count{{{}}}", labels("POST", "resource"))), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn what_pods_ask_for_as_a_whole_is_told() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    let account = json!({ "metadata": { "name": "default" } });
    assert_eq!(call(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", &account).await.0, 201);
    let resources = json!({ "requests": { "cpu": "1500m" }, "limits": { "memory": "1Gi" } });
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "i", "resources": resources }] },
    });
    let (code, told) = call(&server, "POST", "/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!(code, 201, "{told}");
    let (code, text) = call(&server, "GET", "/metrics/resources", &Value::Null).await;
    assert_eq!(code, 200, "{text}");
    let of_pod = r#"namespace="default",pod="p",node="",scheduler="default-scheduler",priority="0""#;
    for line in [
        format!(r#"kube_pod_resource_request{{{of_pod},resource="cpu",unit="cores"}} 1.5"#),
        format!(r#"kube_pod_resource_limit{{{of_pod},resource="memory",unit="bytes"}} 1073741824"#),
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    }
    server.stop().await;
}

#[test]
fn requests_that_are_not_served_for_the_servers_sake_are_counted_apart() {
    let metrics = corten_metrics::Metrics::default();
    let info = corten_routes::RequestInfo::read(&corten_kinds::Kinds::default(), "GET", MAPS, None).expect("a path");
    metrics.requests.terminate(&info, "", 429);
    let line = r#"apiserver_request_terminations_total{code="429",component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="LIST",version="v1"} 1"#;
    let text = metrics.text(Vec::new());
    assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    metrics.forget(&corten_api::resources::CONFIG_MAPS);
    let text = metrics.text(Vec::new());
    assert!(!text.contains("terminations_total{"), "{text}");
}

#[tokio::test]
async fn deprecated_resources_and_health_checks_are_counted() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    for path in ["/api/v1/endpoints", "/apis/resource.k8s.io/v1beta1/deviceclasses", MAPS, "/livez", "/readyz/ping"] {
        let (code, text) = call(&server, "GET", path, &Value::Null).await;
        assert_eq!(code, 200, "{path}: {text}");
    }
    let gauge = "apiserver_requested_deprecated_apis";
    assert_lines(
        &server,
        &[
            &format!(
                r#"{gauge}{{group="",removed_release="",resource="endpoints",subresource="",version="v1"}} 1"#
            ),
            &format!(
                r#"{gauge}{{group="resource.k8s.io",removed_release="1.38",resource="deviceclasses",subresource="",version="v1beta1"}} 1"#
            ),
        ],
    )
    .await;
    let (_, text) = call(&server, "GET", "/metrics", &Value::Null).await;
    assert_eq!(text.matches(&format!("{gauge}{{")).count(), 2, "{text}");
    let (_, text) = call(&server, "GET", "/metrics/slis", &Value::Null).await;
    for line in [
        r#"kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1"#,
        r#"kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 1"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    }
    server.stop().await;
}

/// Each name that Kubernetes promises or that dashboards ask for is served where the list says, and nowhere where it says so.
#[tokio::test]
async fn what_is_promised_is_served_where_the_list_says() {
    let server = Server::start(server::config()).await.expect("an empty store is filled");
    assert_eq!(call(&server, "POST", MAPS, &json!({ "metadata": { "name": "a" } })).await.0, 201);
    assert_eq!(call(&server, "GET", MAPS, &Value::Null).await.0, 200);
    let mut served: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (place, path) in [
        ("metrics", "/metrics"),
        ("resources", "/metrics/resources"),
        ("slis", "/metrics/slis"),
        ("state", "/metrics/state"),
    ] {
        let (code, text) = call(&server, "GET", path, &Value::Null).await;
        assert_eq!(code, 200, "{path}: {text}");
        let types = text.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split(' ').next());
        served.insert(place, types.map(str::to_owned).collect());
    }
    for line in include_str!("../../testdata/promised_metrics.tsv").lines().filter(|it| !it.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (name, place) = (fields[0], fields[1]);
        assert_eq!(fields.len(), if place == "left out" { 3 } else { 2 }, "{name} is {place}");
        let found: Vec<&str> = served.iter().filter(|it| it.1.contains(name)).map(|it| *it.0).collect();
        match place {
            "metrics" | "resources" | "slis" | "state" => assert_eq!(found, [place], "{name}"),
            "happens" | "node" | "left out" => assert_eq!(found, Vec::<&str>::new(), "{name} is {place}"),
            other => panic!("{name}: no place is called {other}"),
        }
    }
    server.stop().await;
}
