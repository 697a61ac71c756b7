//! The same server over TLS: HTTP/1.1 and HTTP/2, client certificates, compression, limits, shutdown.

use std::{io::Read, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::server;
use crate::{Config, Server};

pub(super) struct HttpsServer {
    pub(super) server: Server,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

pub(super) async fn running() -> HttpsServer {
    serving(server::config()).await
}

pub(super) async fn serving(config: Config) -> HttpsServer {
    let server = Server::start(config).await.expect("a server over an empty store starts");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.clone();
    let task = tokio::spawn(async move {
        serving.serve(listener, async { drop(stopped.await) }).await.expect("serves");
    });
    HttpsServer { server, address, stop, task }
}

impl HttpsServer {
    /// Over a connection without a client certificate.
    pub(super) async fn as_stranger(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = self.connect_as_stranger(b"http/1.1").await;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer")
    }

    pub(super) async fn connect_as_stranger(&self, protocol: &'static [u8]) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        let ca = self.server.config().pki.ca_pem();
        for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
            roots.add(certificate.expect("PEM")).expect("a certificate");
        }
        let mut config =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
    }

    pub(super) async fn connect(&self, protocol: &'static [u8]) -> TlsStream<TcpStream> {
        self.secured(TcpStream::connect(self.address).await.expect("the server listens"), protocol).await
    }

    /// Does a new connection get as far as its handshake?
    pub(super) async fn is_served(&self) -> bool {
        let Ok(stream) = TcpStream::connect(self.address).await else { return false };
        self.handshake(stream, b"http/1.1").await.is_ok()
    }

    async fn secured(&self, stream: TcpStream, protocol: &'static [u8]) -> TlsStream<TcpStream> {
        self.handshake(stream, protocol).await.expect("a handshake")
    }

    async fn handshake(&self, stream: TcpStream, protocol: &'static [u8]) -> std::io::Result<TlsStream<TcpStream>> {
        let admin = self.server.config().pki.issue_client("kubernetes-admin", &["system:masters"]);
        self.handshake_showing(&admin.expect("a certificate"), stream, protocol).await
    }

    async fn handshake_showing(
        &self,
        credential: &corten_pki::Credential,
        stream: TcpStream,
        protocol: &'static [u8],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let client = self.server.config().pki.client_config(&credential.fixed().expect("a credential"));
        let mut config = (*client.expect("a TLS client")).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// From one of this machine's own addresses; nothing is said yet.
    pub(super) async fn connect_from(&self, address: &str) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::new(address.parse().expect("an address"), 0)).expect("it is ours");
        socket.connect(self.address).await.expect("the server listens")
    }

    /// The client's kernel keeps little of what is not read.
    pub(super) async fn connect_narrowly(
        &self,
        credential: &corten_pki::Credential,
        protocol: &'static [u8],
    ) -> TlsStream<TcpStream> {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(16 * 1024).expect("a size");
        let stream = socket.connect(self.address).await.expect("the server listens");
        self.handshake_showing(credential, stream, protocol).await.expect("a handshake")
    }

    /// As an administrator, over a connection that is there.
    pub(super) async fn over(&self, stream: TcpStream, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let io = TokioIo::new(self.secured(stream, b"http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer")
    }

    /// With another certificate than the administrator's.
    pub(super) async fn showing(
        &self,
        credential: &corten_pki::Credential,
        request: Request<Full<Bytes>>,
    ) -> Response<Incoming> {
        let pki = &self.server.config().pki;
        let config = pki.client_config(&credential.fixed().expect("a credential")).expect("a TLS client");
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(config).connect(name, stream).await.expect("a handshake");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer")
    }

    /// As an administrator; the answer may switch protocols.
    pub(super) async fn upgraded(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(b"http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP/1.1");
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.expect("an answer")
    }

    pub(super) async fn http1(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.over(TcpStream::connect(self.address).await.expect("the server listens"), request).await
    }

    pub(super) async fn http2(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.shared().await.send_request(request).await.expect("an answer")
    }

    /// A connection for many requests at once.
    async fn shared(&self) -> hyper::client::conn::http2::SendRequest<Full<Bytes>> {
        let io = TokioIo::new(self.connect(b"h2").await);
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
        tokio::spawn(connection);
        sender
    }

    pub(super) async fn end(self) {
        self.stop.send(()).expect("the server still serves");
        self.task.await.expect("serve ends without a panic");
        self.server.stop().await;
    }
}

pub(super) fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let uri = format!("https://localhost{path}");
    Request::builder().method(method).uri(uri).body(Full::new(body.into())).expect("a request")
}

pub(super) async fn text(response: Response<Incoming>) -> String {
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
    let body = vec![b' '; corten_cacher::body::BODY_BYTES_MAX + 1];
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

/// It moves in its midst: to where wide answers are made, and back with the first request that is narrow.
#[tokio::test]
async fn wide_and_narrow_requests_share_a_connection() {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let running = running().await;
    let filler = "x".repeat(2000);
    for n in 0..150 {
        let body = format!(r#"{{"metadata":{{"name":"m{n}"}},"data":{{"k":"{filler}"}}}}"#);
        assert_eq!(running.server.call(admin(), plain("POST", PATH, body)).await.status(), StatusCode::CREATED);
    }
    let one = format!("{PATH}/m1");
    let (page, new) = (format!("{PATH}?limit=1"), format!("{PATH}/new"));
    let long = format!("{PATH}?labelSelector={}", vec!["!a"; 3000].join(","));
    let requests = [
        ("GET", PATH, "", StatusCode::OK, 150),
        ("GET", PATH, "", StatusCode::OK, 150),
        ("GET", &one, "", StatusCode::OK, 0),
        ("GET", &long, "", StatusCode::OK, 150),
        ("POST", PATH, r#"{"metadata":{"name":"new"}}"#, StatusCode::CREATED, 0),
        ("GET", PATH, "", StatusCode::OK, 151),
        ("GET", &page, "", StatusCode::OK, 1),
        ("HEAD", PATH, "", StatusCode::OK, 0),
        ("DELETE", &new, "", StatusCode::OK, 0),
    ];
    let n_items = |text: &str| {
        let answer: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        answer["items"].as_array().map_or(0, Vec::len)
    };
    let io = TokioIo::new(running.connect(b"http/1.1").await);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    for (method, path, body, code, n) in requests {
        let answer = sender.send_request(request(method, path, body)).await.expect("an answer");
        assert_eq!((answer.status(), n_items(&text(answer).await)), (code, n), "{method} {path}");
        sender.ready().await.expect("the connection goes on");
    }
    let mut shared = running.shared().await;
    for (method, path, body, code, n) in requests {
        // While this one is unread the connection is where wide answers are sent.
        let unread = shared.send_request(request("GET", PATH, "")).await.expect("a list");
        let answer = shared.send_request(request(method, path, body)).await.expect("an answer");
        assert_eq!((answer.status(), n_items(&text(answer).await)), (code, n), "{method} {path}");
        assert!(n_items(&text(unread).await) >= 150);
    }
    running.end().await;
}

#[tokio::test]
async fn streams_of_one_connection_do_not_hold_each_other_up() {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let running = running().await;
    let create = |name: &str, filler: usize| {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"{}"}}}}"#, "x".repeat(filler));
        running.server.call(admin(), plain("POST", PATH, body))
    };
    for n in 0..8 {
        assert_eq!(create(&format!("large-{n}"), 100_000).await.status(), StatusCode::CREATED);
    }
    let mut shared = running.shared().await;
    let mut watches = Vec::new();
    for _ in 0..100 {
        let path = format!("{PATH}?watch=true&fieldSelector=metadata.name%3Dsmall");
        watches.push(shared.send_request(request("GET", &path, "")).await.expect("a watch"));
    }
    // A list that nobody reads fills its window, and a watch that is given up frees its stream.
    let unread = shared.send_request(request("GET", PATH, "")).await.expect("a list");
    drop(watches.pop());
    assert_eq!(create("small", 1).await.status(), StatusCode::CREATED);
    for watch in &mut watches {
        let event = watch.frame().await.expect("a frame").expect("no error").into_data().expect("data");
        assert!(event.starts_with(br#"{"type":"ADDED""#), "{event:?}");
    }
    let list: serde_json::Value = serde_json::from_str(&text(unread).await).expect("all of the list");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(8));
    running.end().await;
}

#[tokio::test]
async fn shutdown_ends_watches_and_lets_requests_finish() {
    let running = running().await;
    let mut watch = running.http2(request("GET", "/api/v1/namespaces/default/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "")).await;
    let first = watch.frame().await.expect("a frame").expect("no error").into_data().expect("data");
    assert!(first.starts_with(br#"{"type":"BOOKMARK""#), "{first:?}");
    tokio::time::timeout(Duration::from_secs(5), running.end()).await.expect("it ends soon");
    let rest = watch.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    assert!(rest.is_empty(), "{rest:?}");
}

pub(super) fn admin() -> corten_access::Identity {
    corten_access::Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"])
}

pub(super) fn plain(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::builder().method(method).uri(path).body(body.into()).expect("a request")
}
