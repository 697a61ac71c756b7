//! The same server over TLS: HTTP/1.1 and HTTP/2, client certificates, compression, limits, shutdown.

use std::{io::Read, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::server;
use crate::Server;

struct Running {
    server: Server,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn running() -> Running {
    let server = server::started().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.clone();
    let task = tokio::spawn(async move {
        serving.serve(listener, async { drop(stopped.await) }).await.expect("serves");
    });
    Running { server, address, stop, task }
}

impl Running {
    async fn connect(&self, protocol: &'static [u8]) -> TlsStream<TcpStream> {
        let pki = &self.server.config().pki;
        let admin = pki.issue_client("kubernetes-admin", &["system:masters"]).expect("a certificate");
        let mut config = (*pki.client_config(&admin).expect("a TLS client")).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
    }

    async fn http1(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(b"http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer")
    }

    async fn http2(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(b"h2").await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer")
    }

    async fn end(self) {
        self.stop.send(()).expect("the server still serves");
        self.task.await.expect("serve ends without a panic");
        self.server.stop().await;
    }
}

fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let uri = format!("https://localhost{path}");
    Request::builder().method(method).uri(uri).body(Full::new(body.into())).expect("a request")
}

async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test]
async fn both_protocols_reach_the_chain_as_the_certificate_says() {
    let running = running().await;
    let created =
        running.http1(request("POST", "/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"a"}}"#));
    assert_eq!(created.await.status(), StatusCode::CREATED);
    let read = running.http2(request("GET", "/api/v1/namespaces/default/configmaps/a", "")).await;
    assert_eq!(read.status(), StatusCode::OK);
    assert!(text(read).await.contains(r#""name":"a""#));
    running.end().await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let running = running().await;
    let body = vec![b' '; crate::request::BODY_BYTES_MAX + 1];
    let refused = running.http2(request("POST", "/api/v1/namespaces/default/configmaps", body)).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(text(refused).await.contains("RequestEntityTooLarge"));
    running.end().await;
}

#[tokio::test]
async fn long_lists_come_in_pieces_and_compressed_where_asked() {
    let running = running().await;
    let filler = "x".repeat(2000);
    for n in 0..200 {
        let body = format!(r#"{{"metadata":{{"name":"m{n}"}},"data":{{"k":"{filler}"}}}}"#);
        let created = running.server.call(admin(), plain("POST", "/api/v1/namespaces/default/configmaps", body)).await;
        assert_eq!(created.status(), StatusCode::CREATED);
    }
    let path = "/api/v1/namespaces/default/configmaps";
    let whole = text(running.http1(request("GET", path, "")).await).await;
    let mut zipped = request("GET", path, "");
    zipped.headers_mut().insert("accept-encoding", "gzip".parse().expect("a header"));
    let zipped = running.http2(zipped).await;
    assert_eq!(zipped.headers()["content-encoding"], "gzip");
    let bytes = zipped.into_body().collect().await.expect("a whole body").to_bytes();
    assert!(bytes.len() * 10 < whole.len());
    let mut unzipped = String::new();
    flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut unzipped).expect("gzip");
    assert_eq!(unzipped, whole);
    let list: serde_json::Value = serde_json::from_str(&whole).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(200));
    running.end().await;
}

#[tokio::test]
async fn shutdown_ends_watches_and_lets_requests_finish() {
    let running = running().await;
    let mut watch = running.http2(request("GET", "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "")).await;
    let first = watch.frame().await.expect("a frame").expect("no error").into_data().expect("data");
    assert!(first.starts_with(br#"{"type":"BOOKMARK""#), "{first:?}");
    tokio::time::timeout(Duration::from_secs(5), running.end()).await.expect("it ends soon");
    let rest = watch.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    assert!(rest.is_empty(), "{rest:?}");
}

fn admin() -> crate::Identity {
    crate::Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"])
}

fn plain(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::builder().method(method).uri(path).body(body.into()).expect("a request")
}
