//! GET as a kubelet asks it: no certificate is checked, and redirects are followed as long as they stay on the host.
//!
//! As in probe/http's `RedirectChecker`, only the host's name counts for that: another port or scheme of it is followed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_meta::address::join_host_port;
use corten_stream::AnyServer;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rustls::InvalidMessage;
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{connect, first_bytes::FirstBytes};

const REDIRECTS: usize = 10;
const BODY_BYTES_MAX: usize = 10 << 10;
const VERSION: &str = "1.37";
/// What may not stand in a request's line as it is.
const NOT_IN_PATHS: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// What is asked for, and in whose name: `probe` or `lifecycle`.
pub(super) struct Get<'a> {
    pub(super) https: bool,
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) purpose: &'static str,
}

pub(super) struct Answer {
    pub(super) status: u16,
    /// The beginning of it.
    pub(super) body: String,
}

/// Why there is no answer.
pub(super) struct NoAnswer {
    pub(super) reason: String,
    /// A server that was asked over TLS speaks HTTP without it.
    pub(super) is_plain: bool,
}

/// Where one request goes.
#[derive(Clone)]
struct ProbeUrl {
    https: bool,
    host: String,
    port: u16,
    path: String,
}

impl Get<'_> {
    pub(super) fn url(&self) -> String {
        self.target().url()
    }

    fn target(&self) -> ProbeUrl {
        let path = utf8_percent_encode(self.path, NOT_IN_PATHS).to_string();
        let path = path.split('#').next().unwrap_or_default().to_owned();
        ProbeUrl { https: self.https, host: self.host.into(), port: self.port, path }
    }

    /// The answer, after redirects. A redirect to another host, or to nowhere, is an answer like any other.
    pub(super) async fn ask(&self, within: Duration) -> Result<Answer, NoAnswer> {
        let mut target = self.target();
        let mut host = self.host_header();
        for _ in 0..REDIRECTS {
            let failed = |it: NoAnswer| NoAnswer { reason: format!("Get {:?}: {}", target.url(), it.reason), ..it };
            let (head, body) =
                exchange(&target, self.headers_for(&target, host.as_ref())?, within).await.map_err(failed)?;
            let location = head.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
            let location = location.filter(|it| is_redirect(head.status()) && !it.is_empty());
            let next = location.map(|it| target.redirected(it)).transpose().map_err(|it| failed(it.into()))?;
            match next.filter(|it| it.host == self.host) {
                Some(next) => target = next,
                None => return Ok(Answer { status: head.status().as_u16(), body }),
            }
            // The name that was asked for holds for a path of the same server only.
            host = host.filter(|_| location.is_some_and(|it| it.starts_with('/') && !it.starts_with("//")));
        }
        Err(format!("Get {:?}: stopped after {REDIRECTS} redirects", target.url()).into())
    }

    fn host_header(&self) -> Option<String> {
        let named = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        named.map(|(_, value)| value.clone()).filter(|it| !it.is_empty())
    }

    fn headers_for(&self, target: &ProbeUrl, host: Option<&String>) -> Result<HeaderMap, String> {
        let mut map = HeaderMap::new();
        for (name, value) in self.headers {
            let name: HeaderName = name.parse().map_err(|_| format!("invalid header name {name:?}"))?;
            let value: HeaderValue = value.parse().map_err(|_| format!("invalid value of header {name}"))?;
            map.append(name, value);
        }
        let agent = format!("kube-{}/{VERSION}", self.purpose);
        for (name, value) in [(header::USER_AGENT, agent.as_str()), (header::ACCEPT, "*/*")] {
            match map.get(&name) {
                None => drop(map.insert(name, value.parse().map_err(|_| format!("invalid value {value:?}"))?)),
                // Who names it and leaves it empty wants it not to be sent.
                Some(it) if it.is_empty() => drop(map.remove(&name)),
                Some(_) => {}
            }
        }
        let own = target.authority();
        let host = host.unwrap_or(&own);
        map.insert(header::HOST, host.parse().map_err(|_| format!("invalid host {host:?}"))?);
        Ok(map)
    }
}

impl From<String> for NoAnswer {
    fn from(reason: String) -> Self {
        Self { reason, is_plain: false }
    }
}

impl ProbeUrl {
    fn url(&self) -> String {
        format!("{}://{}{}", self.scheme(), join_host_port(&self.host, self.port), self.path)
    }

    fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }

    fn authority(&self) -> String {
        join_host_port(&self.host, self.port)
    }

    /// RFC 3986, 5.2: where a `Location` leads from here.
    fn redirected(&self, location: &str) -> Result<Self, String> {
        let location = utf8_percent_encode(location, NOT_IN_PATHS).to_string();
        let location = location.split('#').next().unwrap_or_default();
        let scheme = location.split_once("://").map(|(it, _)| it).filter(|it| !it.contains(['/', '?']));
        if scheme.is_none() && !location.starts_with("//") {
            return Ok(Self { path: joined(&self.path, location), ..self.clone() });
        }
        let url = if scheme.is_some() { location.to_owned() } else { format!("{}:{location}", self.scheme()) };
        let uri: Uri = url.parse().map_err(|_| format!("failed to parse Location header {location:?}"))?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            other => return Err(format!("unsupported protocol scheme {:?}", other.unwrap_or_default())),
        };
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        Ok(Self { https, host, port, path })
    }
}

/// A reference without scheme and host, seen from `base`.
fn joined(base: &str, reference: &str) -> String {
    let base_path = base.split('?').next().unwrap_or_default();
    if reference.starts_with('?') {
        return format!("{base_path}{reference}");
    }
    let (path, query) = reference.find('?').map_or((reference, ""), |at| reference.split_at(at));
    let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}{path}") };
    let mut steps: Vec<&str> = Vec::new();
    for step in whole.split('/').skip(1) {
        match step {
            ".." => drop(steps.pop()),
            "." => {}
            _ => steps.push(step),
        }
    }
    if whole.ends_with("/.") || whole.ends_with("/..") {
        steps.push("");
    }
    format!("/{}{query}", steps.join("/"))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

async fn exchange(target: &ProbeUrl, headers: HeaderMap, within: Duration) -> Result<(Response<()>, String), NoAnswer> {
    let stream = connect(&target.host, target.port, within).await?;
    if !target.https {
        return Ok(over_http1(stream, target, headers).await?);
    }
    let name = ServerName::try_from(target.host.clone()).map_err(|it| it.to_string())?;
    let handshake = TlsConnector::from(trusting()?).connect(name, FirstBytes::new(stream)).into_fallible();
    let tls = handshake.await.map_err(|(error, stream)| no_tls(&error, stream.first()))?;
    let answer = if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
        over_http2(tls, target, headers).await
    } else {
        over_http1(tls, target, headers).await
    };
    Ok(answer?)
}

fn no_tls(error: &std::io::Error, first: &[u8]) -> NoAnswer {
    let tls = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidMessage(_)) if first == b"HTTP/" => {
            NoAnswer { reason: "http: server gave HTTP response to HTTPS client".into(), is_plain: true }
        }
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "tls: first record does not look like a TLS handshake".to_owned().into()
        }
        _ => error.to_string().into(),
    }
}

async fn over_http1<T>(stream: T, target: &ProbeUrl, mut headers: HeaderMap) -> Result<(Response<()>, String), String>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|it| it.to_string())?;
    let request = request(&target.path, headers)?;
    let answer = async move { read(sender.send_request(request).await.map_err(|it| it.to_string())?).await };
    driven(connection, answer).await
}

async fn over_http2(
    stream: TlsStream<FirstBytes>,
    target: &ProbeUrl,
    mut headers: HeaderMap,
) -> Result<(Response<()>, String), String> {
    let host = headers.remove(header::HOST);
    let host = host.as_ref().and_then(|it| it.to_str().ok()).unwrap_or_default();
    let request = request(&format!("https://{host}{}", target.path), headers)?;
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|it| it.to_string())?;
    let answer = async move { read(sender.send_request(request).await.map_err(|it| it.to_string())?).await };
    driven(connection, answer).await
}

fn request(uri: &str, headers: HeaderMap) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::get(uri).body(Empty::new()).map_err(|it| it.to_string())?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// A little of the body is read, so that a server need not see its connection reset while it writes.
async fn read(response: Response<Incoming>) -> Result<(Response<()>, String), String> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while bytes.len() < BODY_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |it| it));
    }
    bytes.truncate(BODY_BYTES_MAX);
    Ok((Response::from_parts(head, ()), String::from_utf8_lossy(&bytes).into_owned()))
}

/// The answer, while its connection is kept going.
async fn driven<T>(
    connection: impl Future<Output = Result<(), hyper::Error>>,
    answer: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let mut answer = std::pin::pin!(answer);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        ended = &mut connection => {
            // The connection may end right after it has handed over the answer.
            match (timeout(Duration::from_millis(100), answer).await, ended) {
                (Ok(answer), _) => answer,
                (Err(_), Err(error)) => Err(error.to_string()),
                (Err(_), Ok(())) => Err("EOF".into()),
            }
        }
    }
}

/// `InsecureSkipVerify`: a probe asks whether a server is well, not who it is.
fn trusting() -> Result<Arc<rustls::ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|it| it.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
