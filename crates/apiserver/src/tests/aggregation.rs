//! Other API servers: whether they answer, what they are asked, and what a bad one cannot do.

mod backend;
mod connections;
mod endpoints;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use corten_access::Identity;
use corten_api::resources::API_SERVICES;
use corten_cacher::body::{Response, whole};
use corten_meta::Resource;
use corten_webhook::Dial;
use futures_util::{StreamExt, stream::FuturesUnordered};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use self::backend::{Backend, coded, discovery, echo};
use super::{audit, https, server};
use crate::Server;

static API_SERVICES_AT: Resource = API_SERVICES;
const NAME: &str = "v1.wardle.example.com";
const PATIENCE: Duration = Duration::from_secs(30);
/// As many as are passed on to one server at once.
const HANGING: usize = 1_000;
const FLUNDERS: &str = "/apis/wardle.example.com/v1/namespaces/default/flunders";

/// A network in which every Pod's address is this machine.
fn to_this_machine() -> Dial {
    Arc::new(|mut address| {
        address.set_ip([127, 0, 0, 1].into());
        Box::pin(TcpStream::connect(address))
    })
}

async fn started() -> Server {
    let mut config = server::config();
    config.webhook_dial = Some(to_this_machine());
    Server::start(config).await.expect("a server")
}

fn admin() -> Identity {
    Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"])
}

async fn answered(server: &Server, who: Identity, request: http::request::Builder, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (head, body) = split(server.answer(request.body(whole(body)).expect("a request"), None, Some(who)).await).await;
    (head, body)
}

async fn split(response: Response) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()))
}

async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    answered(server, admin(), request, body).await
}

async fn create(server: &Server, path: &str, object: Value) {
    let (code, body) = ask(server, "POST", path, &object).await;
    assert_eq!(code, 201, "{body}");
}

fn api_service(name: &str, bundle: &str) -> Value {
    let (version, group) = name.split_once('.').expect("a name");
    json!({ "metadata": { "name": name }, "spec": {
        "group": group, "version": version, "groupPriorityMinimum": 2000, "versionPriority": 10,
        "caBundle": bundle, "service": { "namespace": "other", "name": "flunder" } } })
}

fn service() -> Value {
    json!({ "metadata": { "name": "flunder" }, "spec": { "ports": [{ "name": "https", "port": 443 }] } })
}

fn slice(port: u16) -> Value {
    json!({
        "metadata": { "name": "flunder-1", "labels": { "kubernetes.io/service-name": "flunder" } },
        "addressType": "IPv4", "endpoints": [{ "addresses": ["10.1.2.3"], "conditions": { "ready": true } }],
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    })
}

const API_SERVICES_PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/other/endpointslices";

/// Puts the server there, and waits until it is known to answer.
async fn register(server: &Server, backend: &Backend) {
    create(server, "/api/v1/namespaces", json!({ "metadata": { "name": "other" } })).await;
    create(server, "/api/v1/namespaces/other/services", service()).await;
    create(server, SLICES, slice(backend.port)).await;
    create(server, API_SERVICES_PATH, api_service(NAME, &backend.bundle)).await;
    until(server, NAME, "Passed").await;
}

/// The message of the condition, once it has this reason.
async fn until(server: &Server, name: &str, reason: &str) -> String {
    let look = || {
        let object = server.caches().get(&API_SERVICES_AT)?.get("", name)?.parse();
        let condition = object["status"]["conditions"][0].clone();
        (condition["reason"] == reason).then(|| condition["message"].as_str().unwrap_or_default().to_owned())
    };
    let waiting = server.caches().until(look);
    let found = tokio::time::timeout(PATIENCE, waiting).await;
    found.unwrap_or_else(|_| panic!("{name} never says {reason}"))
}

/// Looks again whenever something else is served, until it is as wanted.
async fn until_served<T>(server: &Server, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut changes = server.changes_of_served();
    let waiting = async {
        loop {
            changes.mark_unchanged();
            if let Some(found) = look().await {
                return found;
            }
            changes.changed().await.expect("the server is there");
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is served in time")
}

/// What discovery says of the group and version, once it is this fresh.
async fn until_freshness(server: &Server, freshness: &str) -> Value {
    until_served(server, async || {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let request = Request::builder().uri("/apis").header("accept", accept);
        let (_, list) = answered(server, admin(), request, &Value::Null).await;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let group = items.into_iter().find(|it| it["metadata"]["name"] == "wardle.example.com");
        group.map(|it| it["versions"][0].clone()).filter(|it| it["freshness"] == freshness)
    })
    .await
}

/// Until the group's version of the highest priority is this one.
async fn until_preferred(server: &Server, version: &str) {
    until_served(server, async || {
        let (_, group) = ask(server, "GET", "/apis/wardle.example.com", &Value::Null).await;
        (group["preferredVersion"]["version"] == version).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_request_goes_there_and_says_for_whom() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    register(&server, &backend).await;
    let who = Identity {
        uid: "u1".into(),
        extra: [("example.com/tenant".to_owned(), vec!["a".to_owned()])].into(),
        ..Identity::new("jane", &["dev", "system:masters"])
    };
    let request = Request::builder()
        .method("POST")
        .uri(format!("{FLUNDERS}?fieldManager=me&pretty=true"))
        .header("content-type", "application/json")
        .header("x-remote-user", "admin")
        .header("x-remote-group", "forged")
        .header("x-remote-extra-forged", "1")
        .header("authorization", "Bearer secret")
        .header("connection", "x-remote-user, keep-alive, x-hop")
        .header("x-hop", "1")
        .header("te", "trailers");
    let (code, seen) = answered(&server, who, request, &json!({ "kind": "Flunder" })).await;
    assert_eq!((code, &seen["method"], &seen["body"]), (201, &json!("POST"), &json!(r#"{"kind":"Flunder"}"#)));
    assert_eq!(seen["target"], format!("{FLUNDERS}?fieldManager=me&pretty=true"));
    let headers = &seen["headers"];
    assert_eq!(headers["x-remote-user"], json!(["jane"]));
    assert_eq!(headers["x-remote-uid"], json!(["u1"]));
    assert_eq!(headers["x-remote-group"], json!(["dev", "system:masters"]));
    assert_eq!(headers["x-remote-extra-example.com%2ftenant"], json!(["a"]));
    assert_eq!(headers["host"], json!(["flunder.other.svc"]));
    for absent in ["authorization", "connection", "te", "x-hop", "x-remote-extra-forged"] {
        assert!(headers[absent].is_null(), "{absent}: {headers}");
    }
    server.stop().await;
}

#[tokio::test]
async fn who_may_not_is_refused_here_and_the_impersonated_counts() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    register(&server, &backend).await;
    let jane = || Identity::new("jane", &["system:authenticated"]);
    let get = || Request::builder().uri(FLUNDERS);
    let (code, body) = answered(&server, jane(), get(), &Value::Null).await;
    assert_eq!(code, 403, "{body}");
    assert!(
        body["message"].as_str().is_some_and(|it| it.contains("cannot list resource \"flunders\" in API group")),
        "{body}"
    );
    for path in ["/apis/wardle.example.com/v1/../v1/flunders", "/apis/wardle.example.com/v1//flunders"] {
        let (code, _) = answered(&server, admin(), Request::builder().uri(path), &Value::Null).await;
        assert_eq!(code, 404, "{path}");
    }
    assert_eq!(backend.asked(), 0);
    create(
        &server,
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        json!({ "metadata": { "name": "flunders" }, "rules": [
        { "apiGroups": ["wardle.example.com"], "resources": ["flunders"], "verbs": ["list"] }] }),
    )
    .await;
    create(
        &server,
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        json!({ "metadata": { "name": "flunders" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flunders" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }] }),
    )
    .await;
    let (code, seen) = answered(&server, admin(), get().header("impersonate-user", "jane"), &Value::Null).await;
    assert_eq!((code, &seen["headers"]["x-remote-user"]), (201, &json!(["jane"])));
    assert!(seen["headers"]["impersonate-user"].is_null());
    server.stop().await;
}

#[tokio::test]
async fn a_condition_says_why_a_server_does_not_answer() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "other" } })).await;
    create(&server, API_SERVICES_PATH, api_service(NAME, &backend.bundle)).await;
    assert_eq!(until(&server, NAME, "ServiceNotFound").await, r#"service/flunder in "other" is not present"#);
    let (code, body) = ask(&server, "GET", FLUNDERS, &Value::Null).await;
    assert_eq!((code, body), (503, json!("service unavailable\n")));
    let mut other_port = service();
    other_port["spec"]["ports"][0]["port"] = json!(80);
    create(&server, "/api/v1/namespaces/other/services", other_port).await;
    assert_eq!(
        until(&server, NAME, "ServicePortError").await,
        r#"service/flunder in "other" is not listening on port 443"#
    );
    let patch = json!([{ "op": "replace", "path": "/spec/ports/0/port", "value": 443 }]);
    let request = Request::builder().method("PATCH").uri("/api/v1/namespaces/other/services/flunder");
    let request = request.header("content-type", "application/json-patch+json");
    assert_eq!(answered(&server, admin(), request, &patch).await.0, 200);
    assert_eq!(
        until(&server, NAME, "EndpointsNotFound").await,
        r#"cannot find endpointslices for service/flunder in "other""#
    );
    let mut unready = slice(backend.port);
    unready["endpoints"][0]["conditions"]["ready"] = json!(false);
    create(&server, SLICES, unready).await;
    assert_eq!(
        until(&server, NAME, "MissingEndpoints").await,
        r#"endpointslices for service/flunder in "other" have no addresses with port name "https""#
    );
    assert_eq!(ask(&server, "DELETE", &format!("{SLICES}/flunder-1"), &Value::Null).await.0, 200);
    create(&server, SLICES, slice(backend.port)).await;
    assert_eq!(until(&server, NAME, "Passed").await, "all checks passed");
    assert_eq!(ask(&server, "GET", FLUNDERS, &Value::Null).await.0, 201);
    server.stop().await;
}

#[tokio::test]
async fn the_record_says_why_a_request_was_not_passed_on() {
    let kept = Arc::new(audit::RecordingSink::default());
    let config = crate::Config { audit: Some(kept.clone()), ..server::config() };
    let server = Server::start(config).await.expect("a server");
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "other" } })).await;
    create(&server, API_SERVICES_PATH, api_service(NAME, "")).await;
    until(&server, NAME, "ServiceNotFound").await;
    kept.take();
    assert_eq!(ask(&server, "POST", FLUNDERS, &json!({})).await.0, 503);
    let of_flunders = |it: &Value| it["objectRef"]["resource"] == "flunders" && it["stage"] == "ResponseComplete";
    let record = kept.take().into_iter().find(of_flunders).expect("it is recorded");
    assert_eq!(record["responseStatus"], json!({ "metadata": {}, "code": 503, "message": "service unavailable" }));
    server.stop().await;
}

#[tokio::test]
async fn what_others_serve_is_discovered_and_described_and_stale_when_they_are_gone() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    register(&server, &backend).await;
    let version = until_freshness(&server, "Current").await;
    assert_eq!(version["resources"][0]["resource"], "flunders");
    let (_, group) = ask(&server, "GET", "/apis/wardle.example.com", &Value::Null).await;
    assert_eq!(group["preferredVersion"]["groupVersion"], "wardle.example.com/v1");
    let (_, index) = ask(&server, "GET", "/openapi/v3", &Value::Null).await;
    let url = index["paths"]["apis/wardle.example.com/v1"]["serverRelativeURL"].as_str().expect("it is listed");
    let (_, document) = ask(&server, "GET", url, &Value::Null).await;
    assert_eq!(document["components"]["schemas"]["Flunder"]["description"], "Nobody knows.");
    let (_, swagger) = ask(&server, "GET", "/openapi/v2", &Value::Null).await;
    assert_eq!(swagger["definitions"]["Flunder"]["type"], "object");
    assert!(swagger["paths"]["/apis/wardle.example.com/v1/flunders"].is_object());
    drop(backend);
    // Whoever looks for it finds it gone; so does the next look at its endpoints.
    assert_eq!(ask(&server, "GET", FLUNDERS, &Value::Null).await.0, 503);
    let (code, _) = ask(&server, "DELETE", &format!("{SLICES}/flunder-1"), &Value::Null).await;
    assert_eq!(code, 200);
    until(&server, NAME, "EndpointsNotFound").await;
    let stale = until_freshness(&server, "Stale").await;
    assert_eq!(stale["resources"][0]["resource"], "flunders", "what was heard stays");
    assert_eq!(ask(&server, "GET", "/api/v1/namespaces/default", &Value::Null).await.0, 200);
    server.stop().await;
}

#[tokio::test]
async fn who_describes_itself_in_the_older_form_alone_is_described_in_both() {
    let server = started().await;
    let older = |path: &str| discovery(path).filter(|_| !path.starts_with("/openapi/v3"));
    let backend =
        Backend::describing(&server.config().pki, older, |_| Box::pin(async { coded(404, "x-a", "b") })).await;
    register(&server, &backend).await;
    let url = until_served(&server, async || {
        let (_, index) = ask(&server, "GET", "/openapi/v3", &Value::Null).await;
        index["paths"]["apis/wardle.example.com/v1"]["serverRelativeURL"].as_str().map(str::to_owned)
    })
    .await;
    let (_, document) = ask(&server, "GET", &url, &Value::Null).await;
    assert_eq!(document["openapi"], "3.0.0");
    assert_eq!(document["components"]["schemas"]["Flunder"], json!({ "type": "object" }));
    assert!(document["paths"]["/apis/wardle.example.com/v1/flunders"]["get"]["responses"]["200"].is_object());
    server.stop().await;
}

#[tokio::test]
async fn a_service_may_be_a_name_elsewhere_but_none_of_the_machine() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "other" } })).await;
    // An address is a name, too, and one that nobody has to be asked for.
    let elsewhere = |name: &str| json!({ "metadata": { "name": "flunder" }, "spec": { "type": "ExternalName", "externalName": name } });
    create(&server, "/api/v1/namespaces/other/services", elsewhere("203.0.113.7")).await;
    let mut object = api_service(NAME, &backend.bundle);
    object["spec"]["service"]["port"] = json!(backend.port);
    create(&server, API_SERVICES_PATH, object).await;
    until(&server, NAME, "Passed").await;
    let (code, seen) = ask(&server, "GET", FLUNDERS, &Value::Null).await;
    assert_eq!((code, &seen["headers"]["host"]), (201, &json!(["flunder.other.svc"])));
    for name in ["127.0.0.1", "169.254.169.254", "localhost"] {
        let path = "/api/v1/namespaces/other/services/flunder";
        let (_, mut service) = ask(&server, "GET", path, &Value::Null).await;
        service["spec"]["externalName"] = json!(name);
        assert_eq!(ask(&server, "PUT", path, &service).await.0, 200);
        let told = until(&server, NAME, "FailedDiscoveryCheck").await;
        assert!(told.contains("address not allowed"), "{name}: {told}");
        assert_eq!(ask(&server, "GET", FLUNDERS, &Value::Null).await.0, 503);
    }
    server.stop().await;
}

#[tokio::test]
async fn bad_answers_are_contained() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, |request| {
        Box::pin(async move {
            match request.uri().query() {
                Some("redirect") => coded(307, "location", "http://169.254.169.254/latest"),
                Some("upgrade") => coded(101, "upgrade", "anything"),
                _ => coded(200, "access-control-allow-origin", "*"),
            }
        })
    })
    .await;
    register(&server, &backend).await;
    let (code, body) = ask(&server, "GET", &format!("{FLUNDERS}?redirect"), &Value::Null).await;
    assert_eq!((code, body), (502, json!("the backend attempted to redirect this request, which is not permitted\n")));
    let (code, body) = ask(&server, "GET", &format!("{FLUNDERS}?upgrade"), &Value::Null).await;
    assert!(code == 503 && body.as_str().is_some_and(|it| it.starts_with("error trying to reach service")), "{body}");
    let request = Request::builder().uri(FLUNDERS).body(whole("")).expect("a request");
    let response = server.answer(request, None, Some(admin())).await;
    assert!(response.status().is_success() && !response.headers().contains_key("access-control-allow-origin"));
    server.stop().await;
}

#[tokio::test]
async fn nobody_takes_over_what_is_built_in_and_a_definition_has_its_place_back() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    for name in ["v1.apps", "v1.apiregistration.k8s.io", "v1.rbac.authorization.k8s.io"] {
        let (_, mut object) = ask(&server, "GET", &format!("{API_SERVICES_PATH}/{name}"), &Value::Null).await;
        object["spec"]["service"] = json!({ "namespace": "other", "name": "flunder", "port": 443 });
        object["spec"]["insecureSkipTLSVerify"] = json!(true);
        let (code, body) = ask(&server, "PUT", &format!("{API_SERVICES_PATH}/{name}"), &object).await;
        assert!(
            code == 422 && body["message"].as_str().is_some_and(|it| it.contains("spec.service")),
            "{name}: {body}"
        );
    }
    create(
        &server,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        json!({
        "metadata": { "name": "flunders.wardle.example.com" },
        "spec": { "group": "wardle.example.com", "scope": "Namespaced",
            "names": { "plural": "flunders", "singular": "flunder", "kind": "Flunder", "listKind": "FlunderList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }] } }),
    )
    .await;
    until(&server, NAME, "Local").await;
    assert_eq!(ask(&server, "GET", FLUNDERS, &Value::Null).await.0, 200);
    let (code, _) = ask(&server, "DELETE", &format!("{API_SERVICES_PATH}/{NAME}"), &Value::Null).await;
    assert_eq!(code, 200);
    until(&server, NAME, "Local").await;
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "other" } })).await;
    create(&server, "/api/v1/namespaces/other/services", service()).await;
    create(&server, SLICES, slice(backend.port)).await;
    let (_, mut object) = ask(&server, "GET", &format!("{API_SERVICES_PATH}/{NAME}"), &Value::Null).await;
    object["spec"] = api_service(NAME, &backend.bundle)["spec"].clone();
    object["metadata"]["labels"] = json!({});
    let (code, body) = ask(&server, "PUT", &format!("{API_SERVICES_PATH}/{NAME}"), &object).await;
    assert_eq!(code, 200, "{body}");
    until(&server, NAME, "Passed").await;
    assert_eq!(ask(&server, "GET", FLUNDERS, &Value::Null).await.0, 201, "the other server answers");
    assert_eq!(ask(&server, "DELETE", &format!("{API_SERVICES_PATH}/{NAME}"), &Value::Null).await.0, 200);
    until(&server, NAME, "Local").await;
    until_served(&server, async || (ask(&server, "GET", FLUNDERS, &Value::Null).await.0 == 200).then_some(())).await;
    server.stop().await;
}

#[tokio::test]
async fn one_that_hangs_costs_others_nothing() {
    let server = started().await;
    // It takes connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    create(&server, "/api/v1/namespaces", json!({ "metadata": { "name": "silent" } })).await;
    create(&server, "/api/v1/namespaces/silent/services", service()).await;
    let port = silent.local_addr().expect("an address").port();
    create(&server, "/apis/discovery.k8s.io/v1/namespaces/silent/endpointslices", slice(port)).await;
    let mut object = api_service("v1.silent.example.com", "");
    object["spec"]["service"]["namespace"] = json!("silent");
    create(&server, API_SERVICES_PATH, object).await;
    // Another answers what it serves, and then keeps every request.
    let n_hanging = Arc::new(AtomicUsize::new(0));
    let counted = n_hanging.clone();
    let backend = Backend::start(&server.config().pki, move |request| {
        let counted = counted.clone();
        Box::pin(async move {
            if request.uri().query() == Some("hang") {
                counted.fetch_add(1, Relaxed);
                std::future::pending::<()>().await;
            }
            echo(request).await
        })
    })
    .await;
    register(&server, &backend).await;
    // The same server once more: what it may have is shared by all that it serves.
    let other_version = "v2.wardle.example.com";
    let mut object = api_service(other_version, &backend.bundle);
    object["spec"]["versionPriority"] = json!(20);
    create(&server, API_SERVICES_PATH, object).await;
    until(&server, other_version, "Passed").await;
    let (code, _) = ask(&server, "GET", "/apis/silent.example.com/v1/foos", &Value::Null).await;
    assert_eq!(code, 503);
    // Nobody who is exempt: what hangs there keeps no seats either.
    const HANGING_GROUP: &str = "hanging";
    let everything = json!({ "metadata": { "name": "hanging" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": HANGING_GROUP }] });
    create(&server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", everything).await;
    let who = |n: usize| Identity::new(format!("user-{n}"), &[HANGING_GROUP, "system:authenticated"]);
    let other_flunders = FLUNDERS.replace("/v1/", "/v2/");
    let hanging = [format!("{FLUNDERS}?hang"), format!("{other_flunders}?hang")];
    let mut kept = FuturesUnordered::new();
    while kept.len() < HANGING {
        // A few at a time: of a thousand handshakes that begin together the last may take longer than one has.
        kept.extend((0..20).map(|n| answered(&server, who(n % 2), Request::get(&hanging[n / 2 % 2]), &Value::Null)));
        let n = kept.len();
        let all_hang = async {
            while n_hanging.load(Relaxed) < n {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            answered = kept.next() => panic!("one that hangs was answered: {answered:?}"),
            come = tokio::time::timeout(PATIENCE, all_hang) => come.expect("all of them come there"),
        }
    }
    // While all of them hang: that these are answered, and not how soon, shows that they wait for none.
    let others = async {
        let maps = "/api/v1/namespaces/default/configmaps";
        create(&server, maps, json!({ "metadata": { "name": "a" } })).await;
        assert_eq!(ask(&server, "GET", maps, &Value::Null).await.0, 200);
        assert_eq!(ask(&server, "GET", "/apis", &Value::Null).await.0, 200);
        assert_eq!(ask(&server, "GET", "/openapi/v2", &Value::Null).await.0, 200);
        // One that is asked anew, as with a renewed certificate, has what ran before.
        until_preferred(&server, "v2").await;
        let patch = json!([{ "op": "replace", "path": "/spec/versionPriority", "value": 5 }]);
        let request = Request::patch(format!("{API_SERVICES_PATH}/{other_version}"));
        let request = request.header("content-type", "application/json-patch+json");
        assert_eq!(answered(&server, admin(), request, &patch).await.0, 200);
        until_preferred(&server, "v1").await;
        // Neither of both users has more, and there is no place for one more; both is said at once.
        for flunders in [FLUNDERS, &other_flunders] {
            let (code, body) = answered(&server, who(1), Request::get(flunders), &Value::Null).await;
            assert_eq!((code, body), (429, json!("user-1 has 500 requests under way there already\n")));
            let (code, body) = ask(&server, "GET", flunders, &Value::Null).await;
            let expected = "error trying to reach service: there are 1000 connections to it already\n";
            assert_eq!((code, body), (503, json!(expected)));
        }
    };
    tokio::select! {
        answered = kept.next() => panic!("one that hangs was answered: {answered:?}"),
        () = others => {}
    }
    // Who goes away gives the place back, once its connection has ended.
    drop(kept);
    let again = async {
        while ask(&server, "GET", FLUNDERS, &Value::Null).await.0 != 201 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("a place comes free");
    server.stop().await;
}

/// A request that was passed on once comes back here by an APIService that leads in a circle.
#[tokio::test]
async fn nothing_goes_in_a_circle() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    register(&server, &backend).await;
    let (code, passed_on) = ask(&server, "GET", FLUNDERS, &Value::Null).await;
    assert_eq!(code, 201);
    let asked = backend.asked();
    let mut request = Request::builder().uri(FLUNDERS);
    for (name, values) in passed_on["headers"].as_object().into_iter().flatten() {
        if !name.starts_with("x-remote-") {
            request = request.header(name, values[0].as_str().expect("text"));
        }
    }
    let (code, body) = answered(&server, admin(), request, &Value::Null).await;
    assert_eq!((code, body), (508, json!("the request was passed on to another API server already\n")));
    assert_eq!(backend.asked(), asked);
    server.stop().await;
}

/// What a Service has for endpoints nobody can point at the machine itself, or at what a cloud tells it.
#[tokio::test]
async fn an_api_service_leads_to_no_address_of_the_machine() {
    let server = started().await;
    let backend = Backend::start(&server.config().pki, echo).await;
    register(&server, &backend).await;
    for address in ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1"] {
        let mut to = slice(backend.port);
        to["metadata"]["name"] = json!("aimed");
        to["endpoints"][0]["addresses"] = json!([address]);
        to["addressType"] = json!(if address.contains(':') { "IPv6" } else { "IPv4" });
        let (code, body) = ask(&server, "POST", SLICES, &to).await;
        assert_eq!(code, 422, "{address}: {body}");
    }
    server.stop().await;
}

/// Who shows a front proxy's certificate is whom it names, and nobody without that.
#[tokio::test]
async fn a_front_proxy_asks_for_whom_it_names() {
    let running = https::running().await;
    let pki = running.server.config().pki.clone();
    let proxy = pki.front_proxy_client().expect("a certificate").credential();
    let cluster = pki.issue_client("front-proxy-client", &["system:masters"]).expect("a certificate");
    let review = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    for (what, credential, is_named, expected) in [
        ("a front proxy", &proxy, true, "jane"),
        ("a front proxy that names nobody", &proxy, false, "Unauthorized"),
        ("another who says so", &cluster, true, "front-proxy-client"),
    ] {
        let mut request = https::request("POST", path, review);
        request.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        if is_named {
            request.headers_mut().insert("x-remote-user", http::HeaderValue::from_static("jane"));
            request.headers_mut().insert("x-remote-group", http::HeaderValue::from_static("dev"));
        }
        let text = https::text(running.showing(credential, request).await).await;
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let who = answer["status"]["userInfo"]["username"].as_str().or(answer["reason"].as_str());
        assert_eq!(who, Some(expected), "{what}: {text}");
    }
    running.end().await;
}
