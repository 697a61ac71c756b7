//! Logs and tunnels, over TLS through the server to a kubelet.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_access::Identity;
use corten_stream::{Answer, Dialed, dial};

use http::{Request, Response, StatusCode, response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{
    server,
    webhooks::hook::{Hook, patched},
};
use corten_pki::Authority;

use crate::{KubeletClient, Server};

const DEADLINE: Duration = Duration::from_secs(10);

/// A kubelet with one Pod: its log is a line, what is typed into its container comes back in capitals.
async fn kubelet(authority: &Authority) -> (SocketAddr, JoinSet<()>) {
    let credential = authority.issue_server("n1", &["n1".to_owned()]).expect("a certificate");
    let acceptor = TlsAcceptor::from(
        authority.server_config(&credential.fixed().expect("a credential")).expect("a configuration"),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let stream = acceptor.accept(stream).await.expect("a handshake");
            let chain = stream.get_ref().1.peer_certificates().expect("the API server shows a certificate").to_vec();
            assert!(!chain.is_empty());
            let connection = hyper::server::conn::http1::Builder::new();
            let connection = connection.serve_connection(TokioIo::new(stream), service_fn(answer)).with_upgrades();
            // An error is the other side's end, which the test sees for itself.
            tokio::spawn(connection);
        }
    });
    (address, tasks)
}

const GREETING: &[u8] = b"hello";

async fn answer(mut request: Request<Incoming>) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let path = request.uri().path_and_query().expect("a path").to_string();
    let mut response = Response::new(Full::new(Bytes::new()));
    match &*path {
        "/containerLogs/default/web/a?follow=true&tailLines=2" => *response.body_mut() = "a line\n".into(),
        // One line, and then none for ever.
        "/containerLogs/default/web/a?follow=true" => {
            let line = futures_util::stream::iter([Ok(Frame::data("a line\n".into()))]);
            let lines = futures_util::StreamExt::chain(line, futures_util::stream::pending());
            return Ok(response.map(|_| StreamBody::new(lines).boxed()));
        }
        "/exec/default/web/a?input=1&output=1&command=cat"
        | "/exec/default/web/a?input=1&output=1&command=greet"
        | "/exec/default/web/a?input=1&output=1&command=sleep"
        | "/attach/default/web/a?input=1&output=1"
        | "/portForward/default/web?port=80" => {
            let protocol = request.headers()["upgrade"].clone();
            assert!(!request.headers().contains_key("authorization"));
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut io = TokioIo::new(upgrade.await.expect("the API server switches"));
                if !path.contains("command=cat") {
                    // At most a word by itself, and then nothing until the other side ends.
                    if !path.contains("command=sleep") {
                        io.write_all(GREETING).await.expect("the other side reads");
                    }
                    return drop(io.read_to_end(&mut Vec::new()).await);
                }
                let mut word = [0; 5];
                io.read_exact(&mut word).await.expect("five bytes come");
                io.write_all(&word.map(|it| it.to_ascii_uppercase())).await.expect("the other side reads");
            });
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("connection", "Upgrade".parse().expect("valid"));
            response.headers_mut().insert("upgrade", protocol);
        }
        _ => {
            *response.status_mut() = StatusCode::NOT_FOUND;
            *response.body_mut() = format!("nothing at {path}").into();
        }
    }
    Ok(response.map(BodyExt::boxed))
}

async fn send(server: &Server, method: &str, path: &str, body: &Value) -> (StatusCode, String) {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let response = server.call(who, request.body(body).expect("a request")).await;
    let code = response.status();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

/// A server that knows the node, a Pod on it and one on no node.
async fn world(kubelet_port: impl FnOnce(Arc<Authority>) -> Kubelet) -> (Server, Option<JoinSet<()>>) {
    let mut config = server::config();
    config.kubelet_dial = Some(KubeletClient::new(&config.pki).expect("a client of kubelets"));
    let (address, tasks) = kubelet_port(config.pki.clone()).await;
    let server = Server::start(config).await.expect("a server over an empty store starts");
    let status = json!({
        "addresses": [{ "type": "Hostname", "address": "n1" }, { "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": address.port() } },
    });
    let pod = |name: &str| {
        let containers = json!([{ "name": "a", "image": "i" }]);
        json!({ "metadata": { "name": name }, "spec": { "containers": containers } })
    };
    let mut placed = pod("web");
    placed["spec"]["nodeName"] = json!("n1");
    for (path, body) in [
        ("/api/v1/nodes", json!({ "metadata": { "name": "n1" } })),
        ("/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "default" } })),
        ("/api/v1/namespaces/default/pods", placed),
        ("/api/v1/namespaces/default/pods", pod("homeless")),
    ] {
        let (code, text) = send(&server, "POST", path, &body).await;
        assert_eq!(code, StatusCode::CREATED, "{path}: {text}");
    }
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "status": status });
    let (code, text) = send(&server, "PUT", "/api/v1/nodes/n1/status", &node).await;
    assert_eq!(code, StatusCode::OK, "{text}");
    (server, tasks)
}

type Kubelet = std::pin::Pin<Box<dyn Future<Output = (SocketAddr, Option<JoinSet<()>>)>>>;

fn listening(authority: Arc<Authority>) -> Kubelet {
    Box::pin(async move {
        let (address, tasks) = kubelet(&authority).await;
        (address, Some(tasks))
    })
}

fn absent(_: Arc<Authority>) -> Kubelet {
    Box::pin(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        (listener.local_addr().expect("a bound address"), None)
    })
}

const POD: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn logs_come_from_the_kubelet() {
    let (server, _tasks) = world(listening).await;
    for (path, code, text) in [
        ("web/log?follow=true&tailLines=2", 200, "a line\n"),
        ("homeless/log", 200, ""),
        ("web/log", 404, "nothing at /containerLogs/default/web/a"),
        ("web/log?container=x", 400, "container x is not valid for pod web"),
        ("none/log", 404, r#"pods \"none\" not found"#),
        ("web/exec?command=cat", 400, "Upgrade request required"),
    ] {
        let (found, body) = send(&server, "GET", &format!("{POD}/{path}"), &Value::Null).await;
        assert!(found.as_u16() == code && body.contains(text), "{path}: {found} {body}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_kubelet_that_is_not_there_is_named() {
    let (server, _) = world(absent).await;
    let (code, body) = send(&server, "GET", &format!("{POD}/web/log"), &Value::Null).await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("dial tcp 127.0.0.1:") && body.contains(": connect: connection refused"), "{body}");
    server.stop().await;
}

/// Asks the server, over TLS as `user`, to switch protocols.
async fn ask(
    server: &Server,
    address: SocketAddr,
    user: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Dialed {
    let pki = &server.config().pki;
    let groups: &[&str] = if user == "admin" { &["system:masters"] } else { &[] };
    let credential = pki.issue_client(user, groups).expect("a certificate");
    let config = pki.client_config(&credential.fixed().expect("a credential")).expect("a TLS client");
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(config).connect(name, stream).await.expect("a handshake");
    let mut request = Request::builder().method(method).uri(format!("{POD}/{path}")).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    dial(stream, request.body(Empty::new()).expect("a request"), DEADLINE).await.expect("an answer")
}

fn switched(dialed: Dialed) -> (Box<response::Parts>, TokioIo<Upgraded>) {
    match dialed {
        Dialed::Switched(head, io) => (head, TokioIo::new(io)),
        Dialed::Answered(answer) => panic!("the server answers {}", answer.status()),
    }
}

async fn refused(dialed: Dialed) -> (u16, String) {
    let answer: Response<Answer> = match dialed {
        Dialed::Answered(answer) => answer,
        Dialed::Switched(..) => panic!("the server switches"),
    };
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

const SPDY: [(&str, &str); 2] = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];

#[tokio::test]
async fn tunnels_go_through_to_the_container() {
    let (server, _tasks) = world(listening).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.clone();
    let task = tokio::spawn(async move { serving.serve(listener, async { drop(stopped.await) }).await });

    let exec = "web/exec?command=cat&stdin=true&stdout=true";
    let (head, mut io) = switched(ask(&server, address, "admin", "POST", exec, &SPDY).await);
    assert_eq!(head.headers["upgrade"], "SPDY/3.1");
    io.write_all(b"hello").await.expect("the tunnel reads");
    let mut answer = String::new();
    io.read_to_string(&mut answer).await.expect("the tunnel ends");
    assert_eq!(answer, "HELLO");

    let websocket = |offer| [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-protocol", offer)];
    let (code, body) =
        refused(ask(&server, address, "admin", "GET", exec, &websocket("v6.channel.k8s.io")).await).await;
    assert!(code == 403 && body.contains("v6.channel.k8s.io"), "{code} {body}");
    switched(ask(&server, address, "admin", "GET", exec, &websocket("v4.channel.k8s.io")).await);

    // The newest protocol is ours to speak: who refuses is heard after the switch.
    let newest = [&websocket("v5.channel.k8s.io")[..], &[("sec-websocket-version", "13"), ("sec-websocket-key", "x")]];
    let (head, mut io) =
        switched(ask(&server, address, "admin", "GET", "web/exec?command=other", &newest.concat()).await);
    assert_eq!(head.headers["sec-websocket-protocol"], "v5.channel.k8s.io");
    let mut heard = Vec::new();
    io.read_to_end(&mut heard).await.expect("an end");
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(
        heard.contains("Internal error occurred: unable to upgrade connection: nothing at /exec/default/web/a"),
        "{heard}"
    );

    // A log as messages; whoever asks for one wrongly is refused as ever.
    let messages =
        |offer| [&websocket(offer)[..], &[("sec-websocket-version", "13"), ("sec-websocket-key", "x")]].concat();
    let log = "web/log?follow=true&tailLines=2";
    let (head, mut io) =
        switched(ask(&server, address, "admin", "GET", log, &messages("x, base64.binary.k8s.io")).await);
    assert_eq!(head.headers["sec-websocket-protocol"], "base64.binary.k8s.io");
    let mut heard = Vec::new();
    io.read_to_end(&mut heard).await.expect("an end");
    assert_eq!(heard, b"\x81\x00\x81\x0cYSBsaW5lCg==\x88\x02\x03\xe8");
    for (path, offer, code, text) in [
        (log, "x", 403, "x"),
        ("web/log", "binary.k8s.io", 404, "nothing at /containerLogs/default/web/a"),
        ("?watch=true&resourceVersion=x", "", 422, "resourceVersion"),
    ] {
        let (found, body) = refused(ask(&server, address, "admin", "GET", path, &messages(offer)).await).await;
        assert!(found == code && body.contains(text), "{path}: {found} {body}");
    }

    for (user, method, path, code, text) in [
        ("jane", "POST", exec, 403, r#"User \"jane\" cannot create resource \"pods/exec\""#),
        ("admin", "POST", "web/exec?command=other", 404, "nothing at /exec/default/web/a?command=other"),
        ("admin", "POST", "homeless/exec?command=cat", 400, "pod homeless does not have a host assigned"),
        ("admin", "POST", "web/portforward", 404, "nothing at /portForward/default/web"),
    ] {
        let (found, body) = refused(ask(&server, address, user, method, path, &SPDY).await).await;
        assert!(found == code && body.contains(text), "{user} {path}: {found} {body}");
    }

    // Whoever may only read Pods gets no shell by way of a GET.
    let role = json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"] }],
    });
    let binding = json!({
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        let (code, body) = send(&server, "POST", &path, &object).await;
        assert_eq!(code, StatusCode::CREATED, "{body}");
    }
    let (code, body) = refused(ask(&server, address, "jane", "GET", exec, &websocket("v4.channel.k8s.io")).await).await;
    assert!(code == 403 && body.contains("cannot create"), "{code} {body}");

    // A tunnel that is open when the server stops does not hold it up.
    let (_, _open) = switched(ask(&server, address, "admin", "POST", exec, &SPDY).await);
    stop.send(()).expect("the server still serves");
    task.await.expect("no panic").expect("serve ends");
    server.stop().await;
}

/// As upstream: the options of a connection are an object that webhooks may change.
#[tokio::test]
async fn what_a_webhook_makes_of_the_options_reaches_the_kubelet() {
    let (server, _tasks) = world(listening).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.clone();
    let task = tokio::spawn(async move { serving.serve(listener, async { drop(stopped.await) }).await });

    let hook = Hook::start(|it| match it["request"]["object"]["kind"].as_str() {
        Some("PodExecOptions") if it["request"]["object"]["command"] == json!(["broken"]) => {
            patched(it, &json!([{ "op": "replace", "path": "/command", "value": "no list" }]))
        }
        Some("PodExecOptions") => patched(
            it,
            &json!([{ "op": "replace", "path": "/command", "value": ["safe", "x y"] }, { "op": "add", "path": "/tty", "value": true }]),
        ),
        _ => patched(it, &json!([{ "op": "replace", "path": "/ports", "value": [81] }])),
    })
    .await;
    let rules = json!([{ "operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec", "pods/portforward"] }]);
    let configuration = json!({ "metadata": { "name": "m" }, "webhooks": [{
        "name": "m.example.com", "clientConfig": hook.client_config(), "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "rules": rules,
    }] });
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let (code, body) = send(&server, "POST", path, &configuration).await;
    assert_eq!(code, StatusCode::CREATED, "{body}");
    for (path, code, text) in [
        (
            "web/exec?command=other&stdin=true",
            404,
            "nothing at /exec/default/web/a?input=1&tty=1&command=safe&command=x+y",
        ),
        ("web/portforward?ports=80", 404, "nothing at /portForward/default/web?port=81"),
        ("web/exec?command=broken", 500, "command: the request cannot begin with this"),
    ] {
        let (found, body) = refused(ask(&server, address, "admin", "POST", path, &SPDY).await).await;
        assert!(found == code && body.contains(text), "{path}: {found} {body}");
    }
    stop.send(()).expect("the server still serves");
    task.await.expect("no panic").expect("serve ends");
    server.stop().await;
}

/// What does not end by itself, and all that has come of it.
struct GoesOn {
    dialed: Dialed,
    heard: Vec<u8>,
}

impl GoesOn {
    fn new(dialed: Dialed) -> Self {
        Self { dialed, heard: Vec::new() }
    }

    async fn say(&mut self, words: &[u8]) {
        if let Dialed::Switched(_, io) = &mut self.dialed {
            TokioIo::new(io).write_all(words).await.expect("the other side reads");
        }
    }

    /// Hears something more. False where it has ended.
    async fn hear(&mut self) -> bool {
        match &mut self.dialed {
            Dialed::Switched(_, io) => {
                let n = TokioIo::new(io).read_buf(&mut self.heard).await;
                n.is_ok_and(|it| it > 0)
            }
            Dialed::Answered(answer) => {
                assert_eq!(answer.status(), StatusCode::OK);
                let Some(Ok(frame)) = answer.body_mut().frame().await else { return false };
                self.heard.extend(frame.into_data().unwrap_or_default());
                true
            }
        }
    }

    async fn hears(&mut self, words: &[u8]) {
        while !self.heard.windows(words.len()).any(|it| it == words) {
            assert!(self.hear().await, "it has ended: {:?}", String::from_utf8_lossy(&self.heard));
        }
    }

    async fn ends(&mut self) {
        while self.hear().await {}
    }
}

/// Who loses the right to something that goes on loses it at once, whatever it is.
#[tokio::test]
async fn what_goes_on_is_cut_when_its_right_ends() {
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let (server, _tasks) = world(listening).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.clone();
    let task = tokio::spawn(async move { serving.serve(listener, async { drop(stopped.await) }).await });
    let role = json!({
        "metadata": { "name": "operator" },
        "rules": [{ "apiGroups": [""], "resources": ["pods", "pods/exec", "pods/attach", "pods/portforward", "pods/log"],
                    "verbs": ["get", "create", "watch"] }],
    });
    let (code, body) = send(&server, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await;
    assert_eq!(code, StatusCode::CREATED, "{body}");
    let binding = json!({
        "metadata": { "name": "operator" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "operator" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }],
    });
    const SOCKET: [(&str, &str); 4] = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "x"),
    ];
    let socket = |offer| [&SOCKET[..], &[("sec-websocket-protocol", offer)]].concat();
    let exec = "web/exec?command=greet&stdin=true&stdout=true";
    let silent = "web/exec?command=sleep&stdin=true&stdout=true";
    // An empty ping with a mask, and its pong.
    let (ping, pong) = (&b"\x89\x80\0\0\0\0"[..], &b"\x8a\0"[..]);
    let (code, body) = send(&server, "POST", BINDINGS, &binding).await;
    assert_eq!(code, StatusCode::CREATED, "{body}");
    let mut all = Vec::new();
    // What is said to each, and with what it shows that it is alive; and its last words.
    for (what, method, path, headers, (said, heard), last) in [
        ("exec over SPDY", "POST", exec, SPDY.to_vec(), (&b""[..], GREETING), ""),
        ("exec that talks to the kubelet", "GET", exec, socket("v4.channel.k8s.io"), (b"", GREETING), ""),
        ("exec that is translated", "GET", silent, socket("v5.channel.k8s.io"), (ping, pong), ""),
        ("attach", "POST", "web/attach?stdin=true&stdout=true", SPDY.to_vec(), (b"", GREETING), ""),
        ("port-forward", "POST", "web/portforward?ports=80", SPDY.to_vec(), (b"", GREETING), ""),
        ("a log", "GET", "web/log?follow=true", vec![], (b"", b"a line\n"), ""),
        ("a log as messages", "GET", "web/log?follow=true", socket("binary.k8s.io"), (b"", b"a line\n"), ""),
        ("a watch as messages", "GET", "?watch=true", socket("x"), (b"", br#"{"type":"ADDED""#), r#""code":403"#),
        ("a watch", "GET", "?watch=true", vec![], (b"", br#"{"type":"ADDED""#), r#""code":403"#),
    ] {
        let mut goes_on = GoesOn::new(ask(&server, address, "jane", method, path, &headers).await);
        goes_on.say(said).await;
        let hears = tokio::time::timeout(DEADLINE, goes_on.hears(heard)).await;
        hears.unwrap_or_else(|_| panic!("{what} is not alive: {:?}", goes_on.heard));
        all.push((what, last, goes_on));
    }
    let (code, body) = send(&server, "DELETE", &format!("{BINDINGS}/operator"), &Value::Null).await;
    assert_eq!(code, StatusCode::OK, "{body}");
    for (what, last, mut goes_on) in all {
        goes_on.heard.clear();
        let ended = tokio::time::timeout(DEADLINE, goes_on.ends()).await;
        ended.unwrap_or_else(|_| panic!("{what} goes on"));
        let heard = String::from_utf8_lossy(&goes_on.heard);
        assert_eq!(heard.contains(r#"{"type":"ERROR""#), !last.is_empty(), "{what}: {heard}");
        assert!(heard.contains(last), "{what}: {heard}");
    }
    stop.send(()).expect("the server still serves");
    task.await.expect("no panic").expect("serve ends");
    server.stop().await;
}
