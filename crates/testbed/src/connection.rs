//! Kept-alive connections over TLS, HTTP/1.1 and HTTP/2: as little as can be between the clock and the server.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use corten_client::kubeconfig::Kubeconfig;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    client::conn::{http1, http2},
    header,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Where the server is, and as whom to speak to it.
#[derive(Clone)]
pub struct ServerAddress {
    address: SocketAddr,
    host: String,
    name: ServerName<'static>,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl ServerAddress {
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        let target = Kubeconfig::load(path)?.target(None)?;
        let host = target.server.strip_prefix("https://").context("the server is not spoken to by https")?;
        let address: SocketAddr =
            host.trim_end_matches('/').parse().with_context(|| format!("the address {host:?}"))?;

        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&target.ca) {
            roots.add(certificate?)?;
        }
        let (certificate, key) = target.identity.context("the kubeconfig holds no client certificate")?;
        let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<Vec<_>, _>>()?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&key)?)?;
        Ok(Self::with(address, &mut config))
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// A server that is spoken to as nobody, and trusted for its certificate.
    pub fn of_certificate(address: SocketAddr, certificate: CertificateDer<'static>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::with(address, &mut config))
    }

    fn with(address: SocketAddr, config: &mut ClientConfig) -> Self {
        let mut speaking = |protocol: &str| {
            config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
            TlsConnector::from(Arc::new(config.clone()))
        };
        Self {
            address,
            host: address.to_string(),
            name: ServerName::from(address.ip()),
            http1: speaking("http/1.1"),
            http2: speaking("h2"),
        }
    }
}

pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Moves the bytes; ends with the connection.
    driver: JoinHandle<()>,
    target: ServerAddress,
    accept: &'static str,
    acts_as: Option<&'static str>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub async fn open(target: &ServerAddress) -> Result<Self> {
        let (sender, connection) = http1::handshake(connect(target, &target.http1).await?).await?;
        let driver = tokio::spawn(async move {
            // What breaks shows in the request that it breaks.
            let _ = connection.await;
        });
        Ok(Self { sender, driver, target: target.clone(), accept: "application/json", acts_as: None })
    }

    /// Opens it anew where the server has closed it: it does not keep what is quiet for long.
    async fn ready(&mut self) -> Result<()> {
        if self.sender.ready().await.is_err() {
            let mut fresh = Self::open(&self.target).await?;
            std::mem::swap(&mut self.sender, &mut fresh.sender);
            std::mem::swap(&mut self.driver, &mut fresh.driver);
            self.sender.ready().await?;
        }
        Ok(())
    }

    /// From now on answers are wanted in this form.
    pub fn accept(&mut self, media_type: &'static str) {
        self.accept = media_type;
    }

    /// From now on it asks as this user.
    pub fn act_as(&mut self, user: &'static str) {
        self.acts_as = Some(user);
    }

    /// The answer's head, its body still to be read.
    pub async fn begin(&mut self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Incoming)> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.target.host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, self.accept)
            .body(Full::new(body))?;
        if let Some(user) = self.acts_as {
            request.headers_mut().insert("impersonate-user", header::HeaderValue::from_static(user));
        }
        self.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok((head.status, body))
    }

    pub async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Bytes)> {
        let (status, body) = self.begin(method, path, body).await?;
        Ok((status, body.collect().await?.to_bytes()))
    }

    pub async fn get(&mut self, path: &str) -> Result<Bytes> {
        let (status, body) = self.send(Method::GET, path, Bytes::new()).await?;
        expect(status, StatusCode::OK, path, &body)?;
        Ok(body)
    }

    /// Creates one object.
    pub async fn create(&mut self, path: &str, body: Bytes) -> Result<Bytes> {
        let (status, body) = self.send(Method::POST, path, body).await?;
        expect(status, StatusCode::CREATED, path, &body)?;
        Ok(body)
    }

    /// Reads an answer of any size without keeping it: how long it is, and how it begins.
    pub async fn drain(&mut self, path: &str) -> Result<(usize, Vec<u8>)> {
        let (status, mut body) = self.begin(Method::GET, path, Bytes::new()).await?;
        let (mut length, mut begin) = (0, Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            length += data.len();
            if begin.len() < 4_096 {
                begin.extend_from_slice(&data[..data.len().min(4_096)]);
            }
        }
        expect(status, StatusCode::OK, path, &begin)?;
        Ok((length, begin))
    }
}

async fn connect(target: &ServerAddress, tls: &TlsConnector) -> Result<TokioIo<TlsStream<TcpStream>>> {
    let stream = TcpStream::connect(target.address).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let stream = tls.connect(target.name.clone(), stream).await.context("the TLS handshake")?;
    Ok(TokioIo::new(stream))
}

/// One HTTP/2 connection that carries many requests at once, as client libraries use it for all their watches.
pub struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    host: String,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Shared {
    pub async fn open(target: &ServerAddress) -> Result<Self> {
        let io = connect(target, &target.http2).await?;
        // As client-go: it never lets a window hold up what the server sends.
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(1 << 30)
            .handshake(io)
            .await?;
        let driver = tokio::spawn(async move {
            // What breaks shows in the requests that it breaks.
            let _ = connection.await;
        });
        Ok(Self { sender, driver, host: target.host.clone() })
    }

    /// The answer to a GET, its body still to be read.
    pub async fn begin(&mut self, path: &str) -> Result<(StatusCode, Incoming)> {
        let request = Request::builder()
            .uri(format!("https://{}{path}", self.host))
            .header(header::ACCEPT, "application/json")
            .body(Full::new(Bytes::new()))?;
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok((head.status, body))
    }
}

pub fn expect(status: StatusCode, expected: StatusCode, path: &str, body: &[u8]) -> Result<()> {
    if status == expected {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(500)]);
    bail!("{path} was answered with {status}: {text}")
}

/// A text field near the begin of an object or a list, found without parsing all of it.
pub fn text_field<'a>(json: &'a [u8], field: &str) -> Result<&'a str> {
    let json = match std::str::from_utf8(json) {
        Ok(json) => json,
        // Cut in the middle of a character.
        Err(error) => std::str::from_utf8(&json[..error.valid_up_to()])?,
    };
    let missing = || anyhow!("the answer holds no {field}");
    let (_, rest) = json.split_once(&format!("\"{field}\":\"")).ok_or_else(missing)?;
    rest.split_once('"').map(|(value, _)| value).ok_or_else(missing)
}
