//! Dials kubelets over TLS, proving who we are and checking who they are.

use std::{io, time::Duration};

use bytes::Bytes;
use corten_cacher::body::BoxError;
use corten_meta::address::split_host_port;
use corten_stream::{Dialed, dial};
use http::{HeaderMap, Method, Request, header};
use http_body::Body;
use http_body_util::Empty;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{self, AlertDescription},
};

use crate::node::Node;

/// From the first packet to the end of the TLS handshake.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Until the head of the kubelet's answer: it may have to wait for the container runtime.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// How to reach the kubelets.
#[derive(Clone)]
pub struct KubeletClient {
    tls: TlsConnector,
    /// To kubelets whose certificate nobody checks, where a user asks for it.
    unverified: TlsConnector,
    /// To anybody, who is shown nothing.
    strangers: TlsConnector,
    /// Who is dialled in the place of all others.
    detour: Option<std::net::SocketAddr>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("dial tcp {address}: {}", in_gos_words(cause))]
    Connect { address: String, cause: io::Error },
    #[error(
        "dial tcp {0}: the kubelet has no serving certificate yet: its node's CertificateSigningRequest is not signed"
    )]
    NoCertificate(String),
    #[error("node {0:?} has a name that no certificate can have")]
    Name(String),
    #[error(transparent)]
    Http(#[from] corten_stream::Error),
    #[error("cannot ask for {0}: {1}")]
    Request(String, http::Error),
}

async fn in_time<T>(authority: &str, connecting: impl Future<Output = io::Result<T>>) -> Result<T, Error> {
    let connected = tokio::time::timeout(CONNECT_DEADLINE, connecting).await;
    let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    connected.map_err(|cause| Error::Connect { address: authority.to_owned(), cause })
}

/// A kubelet ends each handshake with this alert while it has no certificate to show; upstream's with `internal_error`. It never
/// refuses a client's certificate in that way.
fn of_kubelet(error: Error) -> Error {
    let Error::Connect { address, cause } = error else { return error };
    let tls = cause.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    let has_none = matches!(tls, Some(rustls::Error::AlertReceived(AlertDescription::AccessDenied)));
    if has_none { Error::NoCertificate(address) } else { Error::Connect { address, cause } }
}

/// The two failures that scripts look for read as Go's.
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
    pub fn new(authority: &corten_pki::Authority) -> Result<Self, corten_pki::Error> {
        let own = authority.kubelet_client()?;
        Ok(Self {
            tls: authority.client_config(&own)?.into(),
            unverified: corten_pki::unverified_client_config(Some(&own))?.into(),
            strangers: corten_pki::unverified_client_config(None)?.into(),
            detour: None,
        })
    }

    /// Dials this address, whoever is asked: for a network whose nodes and Pods have no addresses of their own.
    #[must_use]
    pub fn detoured(self, to: std::net::SocketAddr) -> Self {
        Self { detour: Some(to), ..self }
    }

    async fn connected(&self, authority: &str) -> io::Result<TcpStream> {
        let detour = self.detour.map(|it| it.to_string());
        let authority = detour.as_deref().unwrap_or(authority);
        let stream = TcpStream::connect(authority).await?;
        // Keystrokes must not wait for the answers to earlier ones.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    pub async fn dial(
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
        self.ask(node, request, ANSWER_DEADLINE).await
    }

    /// Sends a request as it is.
    pub async fn ask<B>(&self, node: &Node, request: Request<B>, deadline: Duration) -> Result<Dialed, Error>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let name = ServerName::try_from(node.name.clone()).map_err(|_| Error::Name(node.name.clone()))?;
        let tls = if node.is_verified { &self.tls } else { &self.unverified };
        let connecting = async { tls.connect(name, self.connected(&node.authority()).await?).await };
        let stream = in_time(&node.authority(), connecting).await.map_err(of_kubelet)?;
        Ok(dial(stream, request, deadline).await?)
    }

    /// Sends a request to what is no kubelet, over TLS where `is_https`.
    pub async fn ask_stranger<B>(
        &self,
        authority: &str,
        is_https: bool,
        request: Request<B>,
        deadline: Duration,
    ) -> Result<Dialed, Error>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if !is_https {
            let stream = in_time(authority, self.connected(authority)).await?;
            return Ok(dial(stream, request, deadline).await?);
        }
        let (name, _) = split_host_port(authority);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| Error::Name(name.to_owned()))?;
        let connecting = async { self.strangers.connect(name, self.connected(authority).await?).await };
        let stream = in_time(authority, connecting).await?;
        Ok(dial(stream, request, deadline).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{
        ServerConfig,
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    };
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl ResolvesServerCert for Nothing {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            None
        }
    }

    #[tokio::test]
    async fn a_kubelet_that_has_no_certificate_yet_is_told_as_such() {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth().with_cert_resolver(Arc::new(Nothing));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a connection");
            TlsAcceptor::from(Arc::new(config)).accept(stream).await.is_err()
        });
        let tls = TlsConnector::from(corten_pki::unverified_client_config(None).expect("a client"));
        let client = KubeletClient { tls: tls.clone(), unverified: tls.clone(), strangers: tls, detour: None };
        let node = Node { name: "n1".into(), address: "127.0.0.1".into(), port: address.port(), is_verified: true };
        let Err(error) = client.dial(&node, &Method::GET, "/healthz", None).await else { panic!("nobody answers") };
        let said = "the kubelet has no serving certificate yet: its node's CertificateSigningRequest is not signed";
        assert_eq!(error.to_string(), format!("dial tcp {address}: {said}"));
        assert!(serving.await.expect("it ends"), "the handshake fails");
    }
}
