//! An admission webhook that allows everything at once. It has a thread of its own: the load shall not wait for it, nor it for the load.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use corten_testbed::ServerAddress;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};
use tokio_rustls::TlsAcceptor;

pub(super) struct Webhook {
    address: SocketAddr,
    certificate: rcgen::Certificate,
    asked: Arc<ReviewsReceived>,
    /// Dropped with it, which ends the thread.
    _end: oneshot::Sender<()>,
}

#[derive(Default)]
struct ReviewsReceived {
    times: AtomicUsize,
    last: Mutex<Bytes>,
}

impl Webhook {
    /// One that is as far away as `distance`: so long it takes for an answer beside what the answer takes itself.
    pub(super) fn start(distance: Duration) -> Result<Self> {
        let key = rcgen::KeyPair::generate()?;
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let certificate = rcgen::CertificateParams::new(names)?.self_signed(&key)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        let asked = Arc::<ReviewsReceived>::default();
        let (end, ended) = oneshot::channel();
        let (started, address) = std::sync::mpsc::channel();
        let told = asked.clone();
        thread::Builder::new().name("webhook".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let outcome = runtime.map_err(anyhow::Error::from).and_then(|it| {
                it.block_on(async {
                    let listener = TcpListener::bind("127.0.0.1:0").await.context("listening")?;
                    // Who started it may have given up.
                    let _ = started.send(listener.local_addr()?);
                    tokio::select! {
                        _ = ended => Ok(()),
                        outcome = serve(listener, Arc::new(tls).into(), (told, distance)) => outcome,
                    }
                })
            });
            if let Err(error) = outcome {
                eprintln!("the webhook ended: {error:#}");
            }
        })?;
        let address = address.recv().map_err(|_| anyhow!("the webhook did not start"))?;
        Ok(Self { address, certificate, asked, _end: end })
    }

    /// Its `clientConfig`.
    pub(super) fn client_config(&self) -> Value {
        let bundle = BASE64_STANDARD.encode(self.certificate.pem());
        json!({ "url": format!("https://127.0.0.1:{}/", self.address.port()), "caBundle": bundle })
    }

    /// Whoever asks it directly.
    pub(super) fn address(&self) -> Result<ServerAddress> {
        ServerAddress::of_certificate(self.address, self.certificate.der().clone())
    }

    pub(super) fn times_asked(&self) -> usize {
        self.asked.times.load(Relaxed)
    }

    pub(super) fn last_question(&self) -> Bytes {
        self.asked.last.lock().clone()
    }
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    (asked, distance): (Arc<ReviewsReceived>, Duration),
) -> Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (tls, asked) = (tls.clone(), asked.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request| answer(request, asked.clone(), distance));
            // What breaks shows in the request that it breaks.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Arc<ReviewsReceived>,
    distance: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    asked.times.fetch_add(1, Relaxed);
    *asked.last.lock() = body;
    let answer = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": { "uid": review["request"]["uid"], "allowed": true },
    });
    if !distance.is_zero() {
        tokio::time::sleep(distance).await;
    }
    Ok(Response::new(Full::from(answer.to_string())))
}
