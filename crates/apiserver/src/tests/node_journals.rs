//! What nodes of other processes say of their loops, in the Journals of their objects.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use corten_access::Identity;
use corten_pki::Authority;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use super::server;
use crate::{KubeletClient, Server};

const POD: &str = "/apis/corten.dev/v1/namespaces/default/journals/pods.web";
const ALL: &str = "/apis/corten.dev/v1/journals";

/// What a node answers, by path; where there is nothing it says nothing for ever.
#[derive(Default)]
struct Told {
    answers: BTreeMap<&'static str, Value>,
    asked: Mutex<Vec<String>>,
}

async fn kubelet(authority: &Authority, told: Arc<Told>) -> (SocketAddr, JoinSet<()>) {
    let credential = authority.issue_server("n1", &["n1".to_owned()]).expect("a certificate");
    let config = authority.server_config(&credential.fixed().expect("a credential")).expect("a configuration");
    let acceptor = TlsAcceptor::from(config);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let stream = acceptor.accept(stream).await.expect("a handshake");
            let told = told.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                let told = told.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    told.asked.lock().push(path.clone());
                    match told.answers.get(&*path) {
                        Some(answer) => Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string())))),
                        None => std::future::pending().await,
                    }
                }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            connections.spawn(async move { drop(connection.await) });
        }
    });
    (address, tasks)
}

async fn send(server: &Server, who: &Identity, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let response = server.call(who.clone(), request.body(body).expect("a request")).await;
    let code = response.status();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, serde_json::from_slice(&body).expect("JSON"))
}

fn admin() -> Identity {
    Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"])
}

/// A server with a node, a Pod on it, one on no node, and a Service.
async fn world(told: Arc<Told>) -> (Server, JoinSet<()>) {
    let mut config = server::config();
    config.kubelet_dial = Some(KubeletClient::new(&config.pki).expect("a client of kubelets"));
    let (address, tasks) = kubelet(&config.pki, told).await;
    let server = Server::start(config).await.expect("a server over an empty store starts");
    let pod = |name: &str, node: &str| {
        let spec = json!({ "containers": [{ "name": "a", "image": "i" }], "nodeName": node });
        json!({ "metadata": { "name": name }, "spec": spec })
    };
    for (path, body) in [
        ("/api/v1/nodes", json!({ "metadata": { "name": "n1" } })),
        ("/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "default" } })),
        ("/api/v1/namespaces/default/pods", pod("web", "n1")),
        ("/api/v1/namespaces/default/pods", pod("other", "")),
        (
            "/api/v1/namespaces/default/services",
            json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } }),
        ),
    ] {
        let (code, said) = send(&server, &admin(), "POST", path, &body).await;
        assert_eq!(code, StatusCode::CREATED, "{path}: {said}");
    }
    let status = json!({
        "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": address.port() } },
    });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "status": status });
    let (code, said) = send(&server, &admin(), "PUT", "/api/v1/nodes/n1/status", &node).await;
    assert_eq!(code, StatusCode::OK, "{said}");
    (server, tasks)
}

fn journal(name: &str, by: &str, reason: &str) -> Value {
    let wait = json!({ "reason": reason, "message": "it waits", "actor": "Author" });
    json!({
        "apiVersion": "corten.dev/v1", "kind": "Journal",
        "metadata": { "name": name, "namespace": "default" },
        "decisions": [{ "by": by, "waits": [wait] }],
    })
}

/// `kubelet ErrImagePull`, and so on.
fn waits(journal: &Value) -> Vec<String> {
    let decisions = journal["decisions"].as_array().into_iter().flatten();
    let waits = decisions.flat_map(|it| {
        let waits = it["waits"].as_array().into_iter().flatten();
        waits.map(move |wait| format!("{} {}", it["by"], wait["reason"]).replace('"', ""))
    });
    waits.collect()
}

#[tokio::test]
async fn a_pods_journal_has_what_its_node_says() {
    let journals = [
        journal("pods.web", "kubelet", "ErrImagePull"),
        // A node speaks for no Pod that it has not, for no other node, and for nothing that is not there.
        journal("pods.other", "kubelet", "Forged"),
        journal("nodes.n2", "kubelet", "Forged"),
        journal("services.gone", "kube-proxy", "Forged"),
        journal("secrets.web", "kube-proxy", "Forged"),
        journal("services.web", "kube-proxy", "PortTaken"),
    ];
    let answers = [("/journals/default/pods.web", journals[0].clone()), ("/journals", json!({ "items": journals }))];
    let told = Arc::new(Told { answers: answers.into(), ..Told::default() });
    let (server, _tasks) = world(told.clone()).await;
    let (code, found) = send(&server, &admin(), "GET", POD, &Value::Null).await;
    assert_eq!((code, waits(&found)), (StatusCode::OK, vec!["kubelet ErrImagePull".to_owned()]));
    assert_eq!(found["unanswered"], Value::Null);

    let (_, found) = send(&server, &admin(), "GET", ALL, &Value::Null).await;
    let said = found["items"].as_array().expect("a list").iter().flat_map(waits);
    // The server of all tests has decisions of a scheduler.
    let said: Vec<_> = said.filter(|it| !it.starts_with("scheduler ")).collect();
    assert_eq!(said, ["kubelet ErrImagePull", "kube-proxy on n1 PortTaken"], "{found}");
    let service = POD.replace("pods.web", "services.web");
    let (_, found) = send(&server, &admin(), "GET", &service, &Value::Null).await;
    assert_eq!(waits(&found), ["kube-proxy on n1 PortTaken"]);

    // Of a Pod without a node nobody is asked, and none for who may not see the Pod.
    told.asked.lock().clear();
    let (code, _) = send(&server, &admin(), "GET", &POD.replace("web", "other"), &Value::Null).await;
    assert_eq!(code, StatusCode::OK);
    let stranger = Identity::new("mallory", &["system:authenticated"]);
    let (code, _) = send(&server, &stranger, "GET", POD, &Value::Null).await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    assert!(told.asked.lock().is_empty(), "{:?}", told.asked.lock());
}

#[tokio::test]
async fn a_node_that_says_nothing_is_waited_for_once_and_named() {
    let told = Arc::new(Told::default());
    let (server, _tasks) = world(told.clone()).await;
    let begun = Instant::now();
    for _ in 0..20 {
        let (code, found) = send(&server, &admin(), "GET", POD, &Value::Null).await;
        let expected = json!(["n1 does not answer: no answer within 1.5 s"]);
        assert_eq!((code, &found["unanswered"]), (StatusCode::OK, &expected), "{found}");
    }
    let (code, _) = send(&server, &admin(), "GET", ALL, &Value::Null).await;
    assert_eq!((code, told.asked.lock().len()), (StatusCode::OK, 1));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
