//! The kubelet's HTTPS server: what the API server asks a node for on behalf of its users (logs, exec, attach, port-forward).
//!
//! Only the API server may ask: whoever has no certificate of the cluster's own gets 401, whoever has another's, 403.

mod containers;
mod logs;
mod streams;
mod tls;

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::NodeHands;

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

const CONNECTIONS_MAX: usize = 1024;
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(30);
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("the certificate, key or authority of the kubelet's server cannot be used: {0}")]
    Pem(String),
    #[error("set up TLS for the kubelet's server: {0}")]
    Tls(#[from] rustls::Error),
}

/// See the module's documentation. Cheap to clone.
#[derive(Clone)]
pub struct KubeletServer {
    hands: NodeHands,
    tls: TlsAcceptor,
    room: Arc<Semaphore>,
}

/// An answer that is not an object, in plain text, as the kubelet gives it.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    message: String,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl KubeletServer {
    /// `certificate` and `key` are the server's own (PEM), `client_ca` is who signed the API server's client certificate.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn new(hands: NodeHands, certificate: &str, key: &str, client_ca: &str) -> Result<Self, ServerError> {
        let tls = TlsAcceptor::from(Arc::new(tls::config(certificate, key, client_ca)?));
        Ok(Self { hands, tls, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)) })
    }

    /// Serves until `shutdown` is ready; connections that are open then are ended.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = pin!(shutdown);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => match self.room.clone().try_acquire_owned() {
                    Ok(permit) => {
                        let server = self.clone();
                        connections.spawn(async move {
                            server.connection(stream).await;
                            drop(permit);
                        });
                    }
                    Err(_) => tracing::warn!("too many connections to the kubelet, one is refused"),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the kubelet");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        connections.abort_all();
        let ended = timeout(SHUTDOWN_PATIENCE, async { while connections.join_next().await.is_some() {} });
        if ended.await.is_err() {
            tracing::warn!("connections to the kubelet do not end");
        }
    }

    /// One connection, and the tunnel that it may become.
    async fn connection(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let stream = match timeout(HANDSHAKE, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "no TLS with the kubelet"),
            Err(_) => return tracing::debug!("no TLS with the kubelet in time"),
        };
        let caller = tls::caller(stream.get_ref().1.peer_certificates());
        let tunnel = streams::Slot::default();
        let service = service_fn(|request: Request<Incoming>| {
            let (server, caller, tunnel) = (self.clone(), caller.clone(), tunnel.clone());
            async move { Ok::<_, Infallible>(server.answer(&caller, request, &tunnel).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADERS);
        if let Err(error) = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await {
            tracing::debug!(%error, "a connection to the kubelet broke");
        }
        // The task of the connection owns what it has become.
        if let Some(tunnel) = tunnel.take() {
            tunnel.run().await;
        }
    }

    async fn answer(&self, caller: &tls::Caller, request: Request<Incoming>, tunnel: &streams::Slot) -> Response<Body> {
        let answer = match caller {
            tls::Caller::Nobody => Err(Refused::new(StatusCode::UNAUTHORIZED, "Unauthorized")),
            tls::Caller::Other(name) => {
                let message = format!("Forbidden (user={name}, verb={}, resource=nodes)", request.method());
                Err(Refused::new(StatusCode::FORBIDDEN, message))
            }
            tls::Caller::ApiServer => self.route(request, tunnel).await,
        };
        answer.unwrap_or_else(|refused| {
            let mut response = Response::new(text(refused.message + "\n"));
            *response.status_mut() = refused.status;
            plain(&mut response);
            response
        })
    }

    async fn route(&self, request: Request<Incoming>, tunnel: &streams::Slot) -> Result<Response<Body>, Refused> {
        let path = request.uri().path().to_owned();
        let parts: Vec<String> = path
            .split('/')
            .skip(1)
            .map(|it| percent_encoding::percent_decode_str(it).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let is_get = request.method() == Method::GET;
        match parts.as_slice() {
            ["healthz"] if is_get => {
                let mut response = Response::new(text("ok"));
                plain(&mut response);
                Ok(response)
            }
            ["pods"] if is_get => containers::pods(self.hands.cri()).await,
            ["containerLogs", namespace, pod, container] if is_get => {
                logs::answer(&self.hands, namespace, pod, container, request.uri().query().unwrap_or_default()).await
            }
            // As upstream: the pod's uid may stand before the container.
            ["exec", namespace, pod, container] | ["exec", namespace, pod, _, container] => {
                streams::exec(self.hands.cri(), namespace, pod, container, request, tunnel).await
            }
            ["attach", namespace, pod, container] | ["attach", namespace, pod, _, container] => {
                streams::attach(self.hands.cri(), namespace, pod, container, request, tunnel).await
            }
            ["portForward", namespace, pod] | ["portForward", namespace, pod, _] => {
                streams::port_forward(self.hands.cri(), namespace, pod, request, tunnel).await
            }
            ["healthz" | "pods" | "containerLogs", ..] if !is_get => {
                Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed"))
            }
            _ => Err(Refused::new(StatusCode::NOT_FOUND, "404 page not found")),
        }
    }
}

pub(crate) fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn plain(response: &mut Response<Body>) {
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
}

/// The values of a query, in order.
pub(crate) fn query(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}
