//! Probes and hooks that go over the network: HTTP, TCP and gRPC's health service, with upstream's words for what is wrong.

mod first_bytes;
mod http;

use std::{io, time::Duration};

use corten_kubelet::{Action, HookAnswer, ProbeVerdict};
use corten_meta::address::join_host_port;
use tokio::{net::TcpStream, time::timeout};
use tonic::{Code, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;

use self::http::Get;

pub(super) async fn probe(action: &Action, within: Duration) -> ProbeVerdict {
    match action {
        Action::Http { https, host, port, path, headers } => {
            let get = Get { https: *https, host, port: *port, path, headers, purpose: "probe" };
            match timeout(within, get.ask(within)).await {
                Ok(Ok(it)) if (200..300).contains(&it.status) => ProbeVerdict::Success,
                Ok(Ok(it)) if (300..400).contains(&it.status) => {
                    ProbeVerdict::Warning(format!("Probe terminated redirects, Response body: {}", it.body))
                }
                Ok(Ok(it)) => ProbeVerdict::Failure(format!("HTTP probe failed with statuscode: {}", it.status)),
                Ok(Err(it)) => ProbeVerdict::Failure(it.reason),
                Err(_) => {
                    let reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                    ProbeVerdict::Failure(format!("Get {:?}: {reason}", get.url()))
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

pub(super) async fn hook(action: &Action, within: Duration) -> Result<HookAnswer, String> {
    match action {
        Action::Http { https, host, port, path, headers } => {
            let get = Get { https: *https, host, port: *port, path, headers, purpose: "lifecycle" };
            let answer = timeout(within, called(&get, within)).await;
            answer.unwrap_or_else(|_| Err(format!("Get {:?}: context deadline exceeded", get.url())))
        }
        Action::Sleep { seconds } => {
            let wished = Duration::from_secs(u64::try_from(*seconds).unwrap_or(0));
            tokio::time::sleep(wished.min(within)).await;
            Ok(HookAnswer::Ran)
        }
        Action::Exec { .. } | Action::Tcp { .. } | Action::Grpc { .. } => Err("no such hook".into()),
    }
}

/// As in lifecycle's `runHTTPHandler`: any answer will do, and a server that has no TLS is asked without, and without what
/// only TLS would hide.
async fn called(get: &Get<'_>, within: Duration) -> Result<HookAnswer, String> {
    let no_tls = match get.ask(within).await {
        Ok(_) => return Ok(HookAnswer::Ran),
        Err(it) if it.is_plain => it,
        Err(it) => return Err(it.reason),
    };
    let open = |it: &&(String, String)| !it.0.eq_ignore_ascii_case("authorization");
    let headers: Vec<_> = get.headers.iter().filter(open).cloned().collect();
    match (Get { https: false, headers: &headers, ..*get }).ask(within).await {
        Ok(_) => Ok(HookAnswer::WithoutTls { server: join_host_port(get.host, get.port) }),
        Err(_) => Err(no_tls.reason),
    }
}

async fn connect(host: &str, port: u16, within: Duration) -> Result<TcpStream, String> {
    let address = join_host_port(host, port);
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
    let address = join_host_port(host, port);
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
    let path = ::http::uri::PathAndQuery::from_static("/grpc.health.v1.Health/Check");
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
