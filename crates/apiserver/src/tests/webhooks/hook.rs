//! A webhook: a real server behind TLS that answers as a test wants it to, and keeps what it was asked.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use corten_cacher::body::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

pub(in crate::tests) enum Reply {
    Json(Value),
    Raw(u16, Vec<u8>),
    To(&'static str),
    Hang,
}

pub(in crate::tests) type Answerer = Arc<dyn Fn(Value) -> BoxFuture<'static, Reply> + Send + Sync>;

pub(in crate::tests) struct Hook {
    pub(in crate::tests) address: SocketAddr,
    /// As base64 of PEM, which is what a `caBundle` is.
    pub(in crate::tests) bundle: String,
    seen: Arc<Mutex<Vec<Value>>>,
    connections: Arc<AtomicUsize>,
    _running: JoinSet<()>,
}

impl Hook {
    /// It makes its own certificate, one of an authority, as kopf does.
    pub(in crate::tests) async fn start(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(Arc::new(move |review| {
            let reply = answer(&review);
            Box::pin(async move { reply })
        }))
        .await
    }

    pub(in crate::tests) async fn start_with(answer: Answerer) -> Self {
        let (seen, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (its_seen, its_connections) = (seen.clone(), connections.clone());
        let serving = |listener, tls| serve(listener, tls, answer, its_seen, its_connections);
        let (address, bundle, running) = listening(serving).await;
        Self { address, bundle, seen, connections, _running: running }
    }

    /// One that allows all, says no length, and ends each connection without the word that TLS has for that: a script of Python's.
    pub(in crate::tests) async fn start_abrupt() -> Self {
        Self::start_closing("HTTP/1.0 200 OK\r\n", |_| String::new()).await
    }

    /// One that allows all, says that its connections may be used again, and closes each with its answer.
    pub(in crate::tests) async fn start_unreliable() -> Self {
        let length = |answer: &str| format!("content-length: {}\r\n", answer.len());
        Self::start_closing("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n", length).await
    }

    async fn start_closing(head: &'static str, length: fn(&str) -> String) -> Self {
        let connections = Arc::new(AtomicUsize::new(0));
        let its_connections = connections.clone();
        let serving = move |listener, tls| serve_abruptly(listener, tls, head, length, its_connections);
        let (address, bundle, running) = listening(serving).await;
        Self { address, bundle, seen: Arc::default(), connections, _running: running }
    }

    /// Its `clientConfig`.
    pub(in crate::tests) fn client_config(&self) -> Value {
        json!({ "url": format!("https://localhost:{}/hook", self.address.port()), "caBundle": self.bundle })
    }

    pub(in crate::tests) fn take_seen(&self) -> Vec<Value> {
        std::mem::take(&mut *self.seen.lock())
    }

    pub(in crate::tests) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

/// Behind a certificate of its own, which it gives, too.
async fn listening<F: Future<Output = ()> + Send + 'static>(
    serving: impl FnOnce(TcpListener, TlsAcceptor) -> F,
) -> (SocketAddr, String, JoinSet<()>) {
    let names = ["hook.default.svc", "localhost", "127.0.0.1"].map(str::to_owned);
    let mut parameters = rcgen::CertificateParams::new(names).expect("names");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("a certificate and its key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut running = JoinSet::new();
    running.spawn(serving(listener, Arc::new(tls).into()));
    (address, BASE64_STANDARD.encode(certificate.pem()), running)
}

async fn serve_abruptly(
    listener: TcpListener,
    tls: TlsAcceptor,
    head: &'static str,
    length: fn(&str) -> String,
    connections: Arc<AtomicUsize>,
) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut stream = tls.accept(stream).await.expect("a handshake");
        connections.fetch_add(1, Relaxed);
        let mut read = Vec::new();
        let review: Value = loop {
            stream.read_buf(&mut read).await.expect("a question");
            let body = read.windows(4).position(|it| it == b"\r\n\r\n").map(|at| &read[at + 4..]);
            if let Some(review) = body.and_then(|it| serde_json::from_slice(it).ok()) {
                break review;
            }
        };
        let Reply::Json(answer) = allowed(&review) else { unreachable!("it is JSON") };
        let answer = answer.to_string();
        let answer = format!("{head}{}content-type: application/json\r\n\r\n{answer}", length(&answer));
        stream.write_all(answer.as_bytes()).await.expect("it is read");
        stream.flush().await.expect("it is read");
        drop(stream.into_inner());
    }
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    answer: Answerer,
    seen: Arc<Mutex<Vec<Value>>>,
    connections: Arc<AtomicUsize>,
) {
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (tls, answer, seen, connections) = (tls.clone(), answer.clone(), seen.clone(), connections.clone());
        open.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            connections.fetch_add(1, Relaxed);
            let service = service_fn(move |request| respond(request, answer.clone(), seen.clone()));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    answer: Answerer,
    seen: Arc<Mutex<Vec<Value>>>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    seen.lock().push(review.clone());
    let response = match answer(review).await {
        Reply::Json(value) => Response::new(Full::from(value.to_string())),
        Reply::Raw(code, body) => Response::builder().status(code).body(Full::from(body)).expect("a response"),
        Reply::To(location) => {
            Response::builder().status(307).header("location", location).body(Full::default()).expect("a response")
        }
        Reply::Hang => std::future::pending().await,
    };
    Ok(response)
}

/// The review with a response, which is of the question unless it says otherwise.
pub(in crate::tests) fn review(of: &Value, mut response: Value) -> Reply {
    if response.get("uid").is_none() {
        response["uid"] = of["request"]["uid"].clone();
    }
    Reply::Json(json!({ "kind": "AdmissionReview", "apiVersion": of["apiVersion"], "response": response }))
}

pub(in crate::tests) fn allowed(of: &Value) -> Reply {
    review(of, json!({ "allowed": true }))
}

pub(in crate::tests) fn patched(of: &Value, patch: &Value) -> Reply {
    let patch = BASE64_STANDARD.encode(patch.to_string());
    review(of, json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))
}
