//! Probes and hooks that go over the network: HTTP, TCP and gRPC's health service, with upstream's words for what is wrong.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_kubelet::{Action, ProbeVerdict};
use corten_stream::AnyServer;
use http::{HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tonic::{Code, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

const REDIRECTS: usize = 10;
const AGENT: &str = "kube-probe/1.37";

pub(super) async fn probe(action: &Action, within: Duration) -> ProbeVerdict {
    match action {
        Action::Http { https, host, port, path, headers } => {
            let target = Target { https: *https, host, port: *port };
            match timeout(within, get(&target, path, headers, within)).await {
                Ok(Ok(status)) if (200..400).contains(&status) => ProbeVerdict::Success,
                Ok(Ok(status)) => ProbeVerdict::Failure(format!("HTTP probe failed with statuscode: {status}")),
                Ok(Err(reason)) => ProbeVerdict::Failure(format!("Get {:?}: {reason}", target.url(path))),
                Err(_) => {
                    let reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                    ProbeVerdict::Failure(format!("Get {:?}: {reason}", target.url(path)))
                }
            }
        }
        Action::Tcp { host, port } => match connect(host, *port, within).await {
            Ok(_) => ProbeVerdict::Success,
            Err(reason) => ProbeVerdict::Failure(reason),
        },
        Action::Grpc { host, port, service } => grpc(host, *port, service, within).await,
        Action::Exec { .. } | Action::Sleep { .. } => ProbeVerdict::Unknown("no such probe".into()),
    }
}

pub(super) async fn hook(action: &Action, within: Duration) -> Result<(), String> {
    match action {
        Action::Http { https, host, port, path, headers } => {
            let target = Target { https: *https, host, port: *port };
            let answer = timeout(within, get(&target, path, headers, within)).await;
            let reason = match answer {
                // As upstream: any answer will do.
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(reason)) => reason,
                Err(_) => "context deadline exceeded".to_owned(),
            };
            Err(format!("Get {:?}: {reason}", target.url(path)))
        }
        Action::Sleep { seconds } => {
            let wished = Duration::from_secs(u64::try_from(*seconds).unwrap_or(0));
            tokio::time::sleep(wished.min(within)).await;
            Ok(())
        }
        Action::Exec { .. } | Action::Tcp { .. } | Action::Grpc { .. } => Err("no such hook".into()),
    }
}

struct Target<'a> {
    https: bool,
    host: &'a str,
    port: u16,
}

impl Target<'_> {
    fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", if self.https { "https" } else { "http" }, address(self.host, self.port))
    }
}

fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

async fn connect(host: &str, port: u16, within: Duration) -> Result<TcpStream, String> {
    let address = address(host, port);
    let reason = match timeout(within, TcpStream::connect(&address)).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
            io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
            _ => error.to_string(),
        },
        Err(_) => "i/o timeout".to_owned(),
    };
    Err(format!("dial tcp {address}: {reason}"))
}

/// The status of the answer, after redirects on the same host. A redirect elsewhere is an answer like any other.
async fn get(target: &Target<'_>, path: &str, headers: &[(String, String)], within: Duration) -> Result<u16, String> {
    let mut path = path.to_owned();
    for _ in 0..REDIRECTS {
        let stream = connect(target.host, target.port, within).await?;
        let response = if target.https {
            let name = ServerName::try_from(target.host.to_owned()).map_err(|it| it.to_string())?;
            let tls = tokio_rustls::TlsConnector::from(trusting()?).connect(name, stream).await;
            exchange(tls.map_err(|it| it.to_string())?, request(target, &path, headers)?).await?
        } else {
            exchange(stream, request(target, &path, headers)?).await?
        };
        let status = response.status().as_u16();
        let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
        let next = location.filter(|_| (300..400).contains(&status)).and_then(|it| same_host(target, it));
        match next {
            Some(next) => path = next,
            None => return Ok(status),
        }
    }
    Err(format!("stopped after {REDIRECTS} redirects"))
}

/// The path a redirect leads to, where it stays on this host, port and scheme.
fn same_host(target: &Target<'_>, location: &str) -> Option<String> {
    let uri: Uri = location.parse().ok()?;
    let path = uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
    let Some(host) = uri.host() else { return Some(path) };
    let https = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
    (host == target.host && port == target.port && https == target.https).then_some(path)
}

fn request(target: &Target<'_>, path: &str, headers: &[(String, String)]) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::get(path).body(Empty::new()).map_err(|it| it.to_string())?;
    let map = request.headers_mut();
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|_| format!("invalid header name {name:?}"))?;
        let value: HeaderValue = value.parse().map_err(|_| format!("invalid value of header {name}"))?;
        map.append(name, value);
    }
    let host = address(target.host, target.port);
    for (name, value) in [(header::HOST, host.as_str()), (header::USER_AGENT, AGENT), (header::ACCEPT, "*/*")] {
        if !map.contains_key(&name) {
            map.insert(name, value.parse().map_err(|_| format!("invalid host {value:?}"))?);
        }
    }
    map.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

async fn exchange<T>(stream: T, request: Request<Empty<Bytes>>) -> Result<Response<()>, String>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|it| it.to_string())?;
    let answer = async move {
        let response: Response<Incoming> = sender.send_request(request).await.map_err(|it| it.to_string())?;
        let (head, mut body) = response.into_parts();
        // A little of the body is read, so that a server need not see its connection reset while it writes.
        let mut left = 10_usize << 10;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(1, Bytes::len).max(1));
        }
        Ok(Response::from_parts(head, ()))
    };
    tokio::pin!(answer);
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

/// As upstream: a probe asks whether a server is well, not who it is.
fn trusting() -> Result<Arc<rustls::ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|it| it.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

async fn grpc(host: &str, port: u16, service: &str, within: Duration) -> ProbeVerdict {
    let address = address(host, port);
    let no_connection = || {
        let seconds = within.as_secs();
        ProbeVerdict::Failure(format!("timeout: failed to connect service {address:?} within {seconds}s"))
    };
    let endpoint = match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.connect_timeout(within),
        Err(error) => return ProbeVerdict::Unknown(error.to_string()),
    };
    let Ok(Ok(channel)) = timeout(within, endpoint.connect()).await else { return no_connection() };
    let mut grpc = Grpc::new(channel);
    if grpc.ready().await.is_err() {
        return no_connection();
    }
    let path = http::uri::PathAndQuery::from_static("/grpc.health.v1.Health/Check");
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let request = tonic::Request::new(HealthCheckRequest { service: service.into() });
    match timeout(within, grpc.unary(request, path, codec)).await {
        Ok(Ok(answer)) => match answer.into_inner().status {
            1 => ProbeVerdict::Success,
            other => {
                let name = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
                let name = usize::try_from(other).ok().and_then(|it| name.get(it)).copied().unwrap_or("UNKNOWN");
                ProbeVerdict::Failure(format!("service unhealthy (responded with {name:?})"))
            }
        },
        Ok(Err(status)) if status.code() == Code::Unimplemented => ProbeVerdict::Failure(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ".to_owned()
                + status.message(),
        ),
        Ok(Err(status)) => ProbeVerdict::Failure(format!(
            "error: health rpc probe failed: rpc error: code = {:?} desc = {}",
            status.code(),
            status.message()
        )),
        Err(_) => ProbeVerdict::Failure(
            "timeout: health rpc did not complete within ".to_owned() + &format!("{}s", within.as_secs()),
        ),
    }
}

#[cfg(test)]
mod tests;
