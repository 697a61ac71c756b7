//! Another API server: a real one behind TLS, which lets in whoever shows a certificate of the front proxy's authority, and answers as
//! a test wants it to.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use corten_cacher::body::{BoxFuture, Response, whole};
use http::{Request, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

type Answerer = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response> + Send + Sync>;

/// By the path.
type Discovery = fn(&str) -> Option<Value>;

pub(super) struct Backend {
    pub(super) port: u16,
    /// As base64 of PEM.
    pub(super) bundle: String,
    asked: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    _running: JoinSet<()>,
}

impl Backend {
    /// What is not about discovery is answered by `answer`.
    pub(super) async fn start<F>(pki: &corten_pki::Authority, answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> BoxFuture<'static, Response> + Send + Sync + 'static,
    {
        Self::describing(pki, discovery, answer).await
    }

    /// As [`Self::start`], with other answers about what it serves.
    pub(super) async fn describing<F>(pki: &corten_pki::Authority, discovery: Discovery, answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> BoxFuture<'static, Response> + Send + Sync + 'static,
    {
        let key = rcgen::KeyPair::generate().expect("a key");
        let parameters = rcgen::CertificateParams::new(["flunder.other.svc".to_owned()]).expect("a name");
        let certificate = parameters.self_signed(&key).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(pki.front_proxy().ca_pem().as_bytes()) {
            roots.add(root.expect("PEM")).expect("a certificate");
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(clients.build().expect("roots"))
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .expect("a certificate and its key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (asked, connections) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let mut running = JoinSet::new();
        let (answer, counted): (Answerer, _) = (Arc::new(answer), (asked.clone(), connections.clone()));
        running.spawn(serve(listener, Arc::new(tls).into(), discovery, answer, counted));
        Self { port, bundle: BASE64_STANDARD.encode(certificate.pem()), asked, connections, _running: running }
    }

    /// How many requests it was asked that are not about discovery.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }

    /// How many connections these came over.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    discovery: Discovery,
    answer: Answerer,
    (asked, connections): (Arc<AtomicUsize>, Arc<AtomicUsize>),
) {
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (tls, answer, asked, connections) = (tls.clone(), answer.clone(), asked.clone(), connections.clone());
        open.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let is_first = Arc::new(AtomicBool::new(true));
            let service = service_fn(move |request: Request<Incoming>| {
                let (answer, asked, connections) = (answer.clone(), asked.clone(), connections.clone());
                let is_first = is_first.clone();
                async move {
                    if let Some(value) = discovery(request.uri().path()) {
                        return Ok::<_, std::convert::Infallible>(json_answer(&value));
                    }
                    asked.fetch_add(1, Relaxed);
                    connections.fetch_add(is_first.swap(false, Relaxed).into(), Relaxed);
                    Ok(answer(request).await)
                }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        });
    }
}

pub(super) fn json_answer(value: &Value) -> Response {
    let mut response = http::Response::new(whole(value.to_string()));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

pub(super) fn coded(code: u16, name: &'static str, value: &'static str) -> Response {
    let response = http::Response::builder().status(code).header(name, value);
    response.body(whole(Bytes::new())).expect("a response")
}

pub(super) fn discovery(path: &str) -> Option<Value> {
    let schemas = json!({ "schemas": { "Flunder": { "type": "object", "description": "Nobody knows." } } });
    match path {
        "/apis" => Some(json!({ "kind": "APIGroupList", "groups": [] })),
        "/apis/wardle.example.com/v1" => Some(json!({
            "kind": "APIResourceList", "groupVersion": "wardle.example.com/v1",
            "resources": [{ "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder",
                            "verbs": ["create", "get", "list", "watch", "delete"] }],
        })),
        "/openapi/v3" => Some(json!({ "paths": { "apis/wardle.example.com/v1": {
            "serverRelativeURL": "/openapi/v3/apis/wardle.example.com/v1?hash=1" } } })),
        "/openapi/v3/apis/wardle.example.com/v1" => {
            Some(json!({ "openapi": "3.0.0", "paths": {}, "components": schemas }))
        }
        "/openapi/v2" => Some(json!({
            "swagger": "2.0",
            "paths": { "/apis/wardle.example.com/v1/flunders": {
                "get": { "responses": { "200": { "schema": { "$ref": "#/definitions/Flunder" } } } } } },
            "definitions": { "Flunder": { "type": "object" } },
        })),
        _ => None,
    }
}

/// What came, as an answer.
pub(super) fn echo(request: Request<Incoming>) -> BoxFuture<'static, Response> {
    Box::pin(async move {
        let (head, body) = request.into_parts();
        let body = http_body_util::BodyExt::collect(body).await.map(|it| it.to_bytes()).unwrap_or_default();
        let mut headers = serde_json::Map::new();
        for name in head.headers.keys() {
            let all = head.headers.get_all(name).iter().map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
            headers.insert(name.to_string(), all.collect::<Vec<_>>().into());
        }
        let mut response = json_answer(&json!({
            "method": head.method.as_str(), "target": head.uri.to_string(), "headers": headers,
            "body": String::from_utf8_lossy(&body),
        }));
        *response.status_mut() = StatusCode::CREATED;
        response
    })
}
