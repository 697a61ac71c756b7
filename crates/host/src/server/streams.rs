//! Exec, attach and port-forward: the caller's connection becomes a tunnel to the runtime's own streaming server.
//!
//! What runs in the tunnel (SPDY frames, WebSocket messages) is the two ends' business.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use corten_stream::{Accepted, Dialed, Limits, Purpose, Refusal, Streams, Upgrade, dial};
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Incoming,
    upgrade::{OnUpgrade, Upgraded},
};
use tokio::{net::TcpStream, time::timeout};

use super::{Body, PlainTextError, containers, query, routes::Call, text};
use crate::{CriError, cri};

const DIAL: Duration = Duration::from_secs(30);

/// What a connection is to become once its answer is sent.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Option<Tunnel>>>);

pub(super) struct Tunnel {
    client: Accepted,
    runtime: Upgraded,
}

impl Slot {
    fn put(&self, tunnel: Tunnel) {
        *self.0.lock().expect("nobody panics with the lock held") = Some(tunnel);
    }

    pub(super) fn take(&self) -> Option<Tunnel> {
        self.0.lock().expect("nobody panics with the lock held").take()
    }
}

impl Tunnel {
    pub(super) async fn run(self) {
        if let Err(error) = self.client.tunnel(self.runtime, Limits::default()).await {
            tracing::debug!(%error, "a stream to a container broke");
        }
    }
}

/// Which streams are wanted. The API server's own names are understood beside the kubelet's.
#[derive(Debug, Default, PartialEq, Eq)]
struct StreamOptions {
    command: Vec<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
    ports: Vec<i32>,
}

fn stream_options(text: &str) -> Result<StreamOptions, PlainTextError> {
    let mut options = StreamOptions::default();
    for (name, value) in query(text) {
        let is_on = matches!(value.as_str(), "1" | "true");
        match name.as_str() {
            "command" => options.command.push(value),
            "input" | "stdin" => options.stdin = is_on,
            "output" | "stdout" => options.stdout = is_on,
            "error" | "stderr" => options.stderr = is_on,
            "tty" => options.tty = is_on,
            "port" | "ports" => {
                for port in value.split(',') {
                    let port = port.parse::<u16>().ok().filter(|it| *it > 0);
                    let invalid = || PlainTextError::new(StatusCode::BAD_REQUEST, format!("invalid port {value:?}"));
                    options.ports.push(port.ok_or_else(invalid)?.into());
                }
            }
            _ => {}
        }
    }
    // A terminal has one output.
    options.stderr &= !options.tty;
    Ok(options)
}

impl StreamOptions {
    fn purpose(&self) -> Purpose {
        let Self { stdin, stdout, stderr, tty, .. } = *self;
        Purpose::RemoteCommand(Streams { stdin, stdout, stderr, tty })
    }
}

fn need_a_stream(options: &StreamOptions) -> Result<(), PlainTextError> {
    if options.stdin || options.stdout || options.stderr {
        return Ok(());
    }
    let message = "you must specify at least 1 of stdin, stdout, stderr";
    Err(PlainTextError::new(StatusCode::BAD_REQUEST, message))
}

pub(super) async fn exec(call: Call) -> Result<Response<Body>, PlainTextError> {
    let cri = call.server.hands().cri();
    let options = stream_options(call.query())?;
    need_a_stream(&options)?;
    let found = containers::running(cri, call.name(0), call.name(1), call.uid(3), call.container()).await?;
    let purpose = options.purpose();
    let StreamOptions { command: cmd, stdin, stdout, stderr, tty, .. } = options;
    let ask = cri.exec(cri::ExecRequest { container_id: found.id, cmd, tty, stdin, stdout, stderr });
    tunnel(call.request, purpose, ask, &call.tunnel).await
}

pub(super) async fn attach(call: Call) -> Result<Response<Body>, PlainTextError> {
    let cri = call.server.hands().cri();
    let mut options = stream_options(call.query())?;
    need_a_stream(&options)?;
    options.tty = containers::pod(&call, call.name(0), call.name(1)).await?.has_terminal(call.container());
    options.stderr &= !options.tty;
    let found = containers::running(cri, call.name(0), call.name(1), call.uid(3), call.container()).await?;
    let purpose = options.purpose();
    let StreamOptions { stdin, stdout, stderr, tty, .. } = options;
    let ask = cri.attach(cri::AttachRequest { container_id: found.id, stdin, tty, stdout, stderr });
    tunnel(call.request, purpose, ask, &call.tunnel).await
}

pub(super) async fn port_forward(call: Call) -> Result<Response<Body>, PlainTextError> {
    let cri = call.server.hands().cri();
    let options = stream_options(call.query())?;
    let sandbox = containers::sandbox(cri, call.name(0), call.name(1), call.uid(2)).await?;
    let ask = cri.port_forward(&sandbox, options.ports);
    tunnel(call.request, Purpose::PortForward, ask, &call.tunnel).await
}

/// Joins the caller to the URL the runtime gives; anything but a switch of protocols is passed on as it is.
async fn tunnel(
    mut request: Request<Incoming>,
    purpose: Purpose,
    ask: impl Future<Output = Result<String, CriError>>,
    slot: &Slot,
) -> Result<Response<Body>, PlainTextError> {
    let connection = request.extensions_mut().remove::<OnUpgrade>();
    let upgrade = Upgrade::from_request(request.headers(), connection, purpose).map_err(|refusal| {
        let status = match refusal {
            Refusal::UnknownSubprotocols(_) => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        PlainTextError::new(status, refusal.to_string())
    })?;
    let url = ask.await.map_err(|it| PlainTextError::internal(it.message))?;
    let url: Uri =
        url.parse().map_err(|it| PlainTextError::internal(format!("the runtime's stream is at {url:?}: {it}")))?;
    let authority = url.authority().ok_or_else(|| PlainTextError::internal(format!("no address in {url}")))?.clone();
    let mut onward = Request::builder()
        .method(request.method())
        .uri(url.path_and_query().map_or("/", |it| it.as_str()))
        .body(Empty::<Bytes>::new())
        .map_err(PlainTextError::internal)?;
    onward.headers_mut().extend(upgrade.headers().clone());
    let host = authority.as_str().parse().map_err(PlainTextError::internal)?;
    onward.headers_mut().insert(header::HOST, host);
    let stream = timeout(DIAL, TcpStream::connect(authority.as_str())).await;
    let stream = stream.map_err(PlainTextError::internal)?.map_err(PlainTextError::internal)?;
    let _ = stream.set_nodelay(true);
    match dial(stream, onward, DIAL).await.map_err(PlainTextError::internal)? {
        Dialed::Switched(head, runtime) => {
            let (response, client) = upgrade.accept(&head);
            slot.put(Tunnel { client, runtime });
            Ok(response.map(|()| text("")))
        }
        Dialed::Answered(answer) => Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_both_dialects() {
        let both = [
            "command=ls&command=-l&input=1&output=1&error=1&tty=1",
            "command=ls&command=-l&stdin=true&stdout=true&stderr=true&tty=true",
        ];
        for text in both {
            let options = stream_options(text).expect("valid");
            assert_eq!(options.command, ["ls", "-l"]);
            assert!(options.stdin && options.stdout && options.tty && !options.stderr, "{options:?}");
        }
        assert_eq!(stream_options("port=80&port=443").expect("valid").ports, [80, 443]);
        assert!(stream_options("port=0").is_err() && stream_options("port=x").is_err());
        assert!(need_a_stream(&StreamOptions::default()).is_err());
    }
}
