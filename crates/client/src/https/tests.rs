mod failover;

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use corten_api::resources::{NODES, PODS};
use corten_meta::Key;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Notify,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::Client;

struct Pki {
    ca: String,
    server: (String, String),
    /// What a node serves with at the same address.
    kubelet: (String, String),
    client: (String, String),
}

fn pki() -> Pki {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed");
    let issue = |names: &[&str]| {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|&it| it.to_owned()).collect();
        let params = CertificateParams::new(names).expect("good names");
        (params.signed_by(&key, &ca).expect("signed").pem(), key.serialize_pem())
    };
    let server = issue(&["127.0.0.1", "kubernetes.default.svc"]);
    Pki { server, kubelet: issue(&["127.0.0.1", "node-1"]), client: issue(&["kubernetes-admin"]), ca: ca.pem() }
}

/// Answers each request with what it saw of it; `GET /break` ends the connection instead, `/hang` is not answered, an upgrade gets
/// an echo.
struct Server {
    port: u16,
    n_connections: Arc<AtomicUsize>,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    /// What it answers to `/readyz`.
    readyz: AtomicU16,
    /// Somebody has asked for `/hang`.
    hung: Notify,
}

async fn server(pki: &Pki, protocols: &[&[u8]]) -> Server {
    server_with(pki, &pki.server, protocols).await
}

async fn server_with(pki: &Pki, (certificate, key): &(String, String), protocols: &[&[u8]]) -> Server {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.ca.as_bytes()).expect("pem")).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("pem")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("pem");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.allow_unauthenticated().build().expect("a verifier"))
        .with_single_cert(chain, key)
        .expect("a certificate");
    config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let n_connections = Arc::new(AtomicUsize::new(0));
    let state = Arc::new(State { readyz: AtomicU16::new(200), hung: Notify::new() });
    let (mut tasks, counter, of_all) = (JoinSet::new(), n_connections.clone(), state.clone());
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, n) = (acceptor.clone(), counter.fetch_add(1, Ordering::SeqCst));
            let state = of_all.clone();
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let has_certificate = stream.get_ref().1.peer_certificates().is_some();
                let service = service_fn(move |request| answer(request, n, has_certificate, state.clone()));
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                // A connection that the client closes ends with an error, which is fine.
                let _ended = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
            });
        }
    });
    Server { port, n_connections, state, _tasks: tasks }
}

async fn answer(
    mut request: Request<hyper::body::Incoming>,
    connection: usize,
    has_certificate: bool,
    state: Arc<State>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    match request.uri().path() {
        "/readyz" => {
            let response = Response::builder().status(state.readyz.load(Ordering::SeqCst));
            return Ok(response.body(Full::default()).expect("valid"));
        }
        "/hang" => {
            state.hung.notify_one();
            std::future::pending().await
        }
        _ => {}
    }
    if request.uri().path().ends_with("/break") {
        return Err(std::io::Error::other("the connection is to break"));
    }
    if request.headers().contains_key(header::UPGRADE) {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.expect("upgraded"));
            let mut word = [0; 4];
            io.read_exact(&mut word).await.expect("readable");
            io.write_all(&word).await.expect("writable");
            io.shutdown().await.expect("closable");
        });
        let response = Response::builder().status(101).header(header::UPGRADE, "echo");
        return Ok(response.body(Full::default()).expect("valid"));
    }
    let text =
        |name| request.headers().get(name).and_then(|it: &HeaderValue| it.to_str().ok()).unwrap_or("-").to_owned();
    let (bearer, agent) = (text(header::AUTHORIZATION), text(header::USER_AGENT));
    let (path, version) = (request.uri().path().to_owned(), request.version());
    let line = format!("{connection} {version:?} {path} {bearer} {agent} {has_certificate}");
    Ok(Response::new(Full::new(line.into())))
}

fn target(pki: &Pki, port: u16) -> RestConfig {
    RestConfig {
        server: format!("https://127.0.0.1:{port}/base/"),
        ca: pki.ca.clone().into_bytes(),
        identity: Some((pki.client.0.clone().into_bytes(), pki.client.1.clone().into_bytes())),
        token: Some("secret".into()),
        ..RestConfig::default()
    }
}

fn client(target: &RestConfig) -> Client {
    Client::new(Arc::new(HttpsTransport::new(target).expect("a good target")))
}

async fn ask(client: &Client) -> Result<String, crate::Error> {
    let answer = client.get(&NODES, &Key::cluster("n1")).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn all_requests_share_one_connection_until_it_breaks() {
    let pki = pki();
    let server = server(&pki, &[b"h2", b"http/1.1"]).await;
    let client = client(&target(&pki, server.port));
    let answers = futures_util::future::join_all((0..20).map(|_| ask(&client))).await;
    for answer in answers {
        let expected = format!("0 HTTP/2.0 /base/api/v1/nodes/n1 Bearer secret {AGENT} true");
        assert_eq!(answer.expect("answered"), expected);
    }
    assert_eq!(server.n_connections.load(Ordering::SeqCst), 1);
    let broken = client.get_path("/break").await.expect_err("no answer");
    assert!(broken.may_have_been_done(), "{broken}");
    // One stream broke; the connection, and all others on it, go on or are made anew.
    ask(&client).await.expect("answered");
}

#[tokio::test]
async fn a_server_of_the_old_protocol_is_spoken_to_in_it() {
    let pki = pki();
    let server = server(&pki, &[b"http/1.1"]).await;
    let client = client(&target(&pki, server.port));
    for _ in 0..2 {
        let answer = ask(&client).await.expect("answered");
        assert!(answer.contains("HTTP/1.1 /base/api/v1/nodes/n1 Bearer secret"), "{answer}");
    }
}

#[tokio::test]
async fn an_upgrade_gives_the_connection_away() {
    let pki = pki();
    let server = server(&pki, &[b"h2", b"http/1.1"]).await;
    let transport = HttpsTransport::new(&target(&pki, server.port)).expect("a good target");
    let path = format!("{}/exec", PODS.path(&Key::new("default", "web")));
    let request = |upgrade: bool| {
        let mut request = Request::builder().uri(&path);
        if upgrade {
            request = request.header(header::CONNECTION, "Upgrade").header(header::UPGRADE, "echo");
        }
        request.body(Bytes::new()).expect("valid")
    };
    let (response, upgraded) = transport.upgrade(request(true)).await.expect("answered");
    assert_eq!(response.status(), 101);
    let mut upgraded = upgraded.expect("the server agreed");
    upgraded.io.write_all(b"ping").await.expect("writable");
    let mut echo = String::new();
    upgraded.io.read_to_string(&mut echo).await.expect("readable");
    assert_eq!(echo, "ping");

    let (response, upgraded) = transport.upgrade(request(false)).await.expect("answered");
    assert!(response.status() == 200 && upgraded.is_none());
}

#[tokio::test]
async fn a_server_is_not_trusted_for_nothing() {
    let (mine, theirs) = (pki(), pki());
    let server = server(&theirs, &[b"h2"]).await;
    let target = target(&mine, server.port);
    let error = ask(&client(&target)).await.expect_err("not trusted").to_string();
    assert!(error.contains("cannot trust 127.0.0.1:") && error.contains("certificate"), "{error}");
    let any = RestConfig { insecure_skip_tls_verify: true, ca: Vec::new(), identity: None, ..target.clone() };
    let answer = ask(&client(&any)).await.expect("the user said that any server will do");
    assert!(answer.ends_with("false"), "{answer}");
    for (bad, reason) in [
        (RestConfig { ca: Vec::new(), ..target.clone() }, "it comes without a certificate authority to know it by"),
        (RestConfig { ca: b"no pem".to_vec(), ..target.clone() }, "a certificate file holds no certificate"),
        (RestConfig { server: "http://x".into(), ..target.clone() }, "its address must begin with https://"),
        (RestConfig { token: Some("a\nb".into()), ..target.clone() }, "the token holds characters no header may hold"),
    ] {
        assert_eq!(HttpsTransport::new(&bad).err().expect("refused").reason, reason);
    }
}
