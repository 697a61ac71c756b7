//! Dials kubelets over TLS, proving who we are and checking who they are, and owns the tunnels that come of it.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_stream::{Accepted, Dialed, Limits, dial};
use http::{HeaderMap, Method, Request, header};
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use tokio::{net::TcpStream, sync::watch, task::JoinSet};
use tokio_rustls::TlsConnector;

use super::target::Node;
use crate::pki;

/// From the first packet to the end of the TLS handshake.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Until the head of the kubelet's answer: it may have to wait for the container runtime.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// How to reach the kubelets. Clones share their tunnels.
#[derive(Clone)]
pub struct KubeletClient {
    tls: TlsConnector,
    limits: Limits,
    tunnels: Arc<Mutex<JoinSet<()>>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("dial tcp {address}: {}", in_gos_words(source))]
    Connect { address: String, source: io::Error },
    #[error("node {0:?} has a name that no certificate can have")]
    Name(String),
    #[error("{0}")]
    Http(#[from] corten_stream::Error),
    #[error("cannot ask for {0}: {1}")]
    Request(String, http::Error),
}

/// The two failures that scripts look for read as upstream's.
fn in_gos_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".into(),
        io::ErrorKind::TimedOut => "i/o timeout".into(),
        _ => error.to_string(),
    }
}

impl KubeletClient {
    /// # Errors
    /// The authority cannot issue or keep our certificate.
    pub fn new(authority: &pki::Authority) -> Result<Self, pki::Error> {
        let tls = authority.client_config(&authority.kubelet_client()?)?;
        Ok(Self { tls: tls.into(), limits: Limits::default(), tunnels: Arc::default() })
    }

    pub(super) async fn dial(
        &self,
        node: &Node,
        method: &Method,
        path: &str,
        upgrade: Option<&HeaderMap>,
    ) -> Result<Dialed, Error> {
        let request = Request::builder().method(method).uri(path).header(header::HOST, node.authority());
        let request = request.body(Empty::<Bytes>::new());
        let mut request = request.map_err(|it| Error::Request(path.to_owned(), it))?;
        if let Some(headers) = upgrade {
            request.headers_mut().extend(headers.clone());
        }
        let name = ServerName::try_from(node.name.clone()).map_err(|_| Error::Name(node.name.clone()))?;
        let connected = async {
            let stream = TcpStream::connect(node.authority()).await?;
            // Keystrokes must not wait for the answers to earlier ones.
            stream.set_nodelay(true)?;
            self.tls.connect(name, stream).await
        };
        let connected = tokio::time::timeout(CONNECT_DEADLINE, connected).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = connected.map_err(|source| Error::Connect { address: node.authority(), source })?;
        Ok(dial(stream, request, ANSWER_DEADLINE).await?)
    }

    /// Runs a tunnel until it ends or the server stops.
    pub(super) fn keep(&self, mut stopping: watch::Receiver<bool>, client: Accepted, kubelet: Upgraded) {
        let limits = self.limits;
        let tunnel = async move {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|it| *it) => {}
                ended = client.tunnel(kubelet, limits) => match ended {
                    Ok(copied) => tracing::debug!(?copied, "a tunnel to a kubelet has ended"),
                    Err(error) => tracing::debug!(%error, "a tunnel to a kubelet broke"),
                }
            }
        };
        let mut tunnels = self.tunnels.lock();
        while tunnels.try_join_next().is_some() {}
        tunnels.spawn(tunnel);
    }

    /// Waits for the tunnels, which end by themselves once the server stops.
    pub(crate) async fn stop(&self) {
        let mut tunnels = std::mem::take(&mut *self.tunnels.lock());
        let all = async { while tunnels.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_DEADLINE, all).await.is_err() {
            tracing::warn!("tunnels to kubelets did not end in time");
        }
    }
}
