//! The transport over a network: one HTTP/2 connection for all requests of a client, made anew when it breaks.
//!
//! A server that only speaks HTTP/1.1 gets a connection per request, as do requests that upgrade (exec, port-forward).

mod connection;
mod failover;
mod plain;
mod tls;

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header, uri::PathAndQuery};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use tokio::{sync::Mutex, time::Instant};

use crate::{Body, BoxFuture, Transport, TransportError, kubeconfig::RestConfig};
use connection::{Connected, Connection, Dial, Single};

pub use connection::Upgraded;
pub use failover::{API_SERVER_NAME, FailoverTransport, ReachServer, ServerTransport};
pub use plain::PlainTransport;

const AGENT: &str = concat!("corten/", env!("CARGO_PKG_VERSION"));

/// How long a server that says nothing is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until it is connected to, and both know each other.
    pub connect: Duration,
    /// A silent connection is asked for a sign of life after this long.
    pub silent: Duration,
    /// Where no sign comes for so long, it is given up.
    pub unanswered: Duration,
}

/// Of who has no other server to ask.
impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), silent: Duration::from_secs(30), unanswered: Duration::from_secs(15) }
    }
}

/// A request without an answer.
#[derive(Debug)]
pub struct Failed {
    pub error: TransportError,
    /// No server has seen it.
    pub is_unsent: bool,
}

/// Speaks HTTPS to one API server.
pub struct HttpsTransport {
    dial: Dial,
    /// `https://host:port`, what every request's path is put behind.
    server: Uri,
    /// The host and port of that.
    host: Arc<str>,
    bearer: Option<HeaderValue>,
    /// Held while connecting only, so that one connection is made however many requests wait for it.
    connection: Mutex<Dialled>,
}

#[derive(Default)]
struct Dialled {
    living: Option<Connection>,
    /// When nothing came of it last. All who waited for that are told the same, instead of trying one after the other.
    failed: Option<(Instant, TransportError)>,
}

/// The target cannot be spoken to as it is described.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the server {server:?}: {reason}")]
pub struct TargetError {
    pub server: String,
    pub reason: String,
}

impl HttpsTransport {
    /// Prepares, without connecting yet.
    ///
    /// # Errors
    /// The address, a certificate, the key or the token cannot be read.
    pub fn new(target: &RestConfig) -> Result<Self, TargetError> {
        let failed = |reason: String| TargetError { server: target.server.clone(), reason };
        let server: Uri = target.server.parse().map_err(|error| failed(format!("{error}")))?;
        if server.scheme_str() != Some("https") {
            return Err(failed("its address must begin with https://".into()));
        }
        let host = server.host().ok_or_else(|| failed("its address has no host".into()))?;
        let bearer = match &target.token {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                    .map_err(|_| failed("the token holds characters no header may hold".into()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let name = target.server_name.as_deref().unwrap_or(host);
        let dial = Dial {
            address: (host.trim_matches(['[', ']']).to_owned(), server.port_u16().unwrap_or(443)),
            name: tls::server_name(name).map_err(failed)?,
            any: Arc::new(tls::config(target, &[b"h2", b"http/1.1"]).map_err(failed)?),
            http1: Arc::new(tls::config(target, &[b"http/1.1"]).map_err(failed)?),
        };
        let authority = server.authority().map_or(host, |it| it.as_str());
        let host = authority.rsplit('@').next().unwrap_or(authority).into();
        Ok(Self { dial, server, host, bearer, connection: Mutex::default() })
    }

    /// Sends a request that asks to upgrade, over a connection of its own. Where the server agrees (101) the connection
    /// comes back with the answer; else only the answer.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn upgrade(&self, request: Request<Bytes>) -> Result<(Response<Body>, Option<Upgraded>), TransportError> {
        let request = self.addressed(request)?;
        self.in_time(Patience::default(), async { self.dial.http1().await?.upgrade(request).await }).await
    }

    /// Ends the connection and everything that is under way on it.
    pub async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.living.take() {
            connection.close().await;
        }
    }

    /// Sends it, and says of one without an answer whether the server may have seen it.
    pub(crate) async fn try_send(&self, request: Request<Bytes>, patience: Patience) -> Result<Response<Body>, Failed> {
        let unsent = |error| Failed { error, is_unsent: true };
        let sent = |error| Failed { error, is_unsent: false };
        let mut request = self.addressed(request).map_err(sent)?;
        // A connection may die between two requests. hyper gives back a request it never sent, and that one, and only
        // that one, is safe to send again.
        for _ in 0..3 {
            let sender = match self.sender(patience).await.map_err(unsent)? {
                Sender::Http1(single) => return single.send(request).await.map_err(sent),
                Sender::Http2(sender) => sender,
            };
            match attempt(sender, request).await {
                Ok(response) => return Ok(response),
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(sent(error)),
            }
        }
        Err(unsent(TransportError(format!("the connection to {} closes again and again", self.server))))
    }

    /// A way to send one request: over the living connection, or one made now.
    async fn sender(&self, patience: Patience) -> Result<Sender, TransportError> {
        let begun = Instant::now();
        let mut dialled = self.connection.lock().await;
        if let Some(living) = dialled.living.as_ref().and_then(Connection::sender) {
            return Ok(Sender::Http2(living));
        }
        dialled.living = None;
        if let Some((_, error)) = dialled.failed.as_ref().filter(|it| it.0 > begun) {
            return Err(error.clone());
        }
        match self.in_time(patience, self.dial.any(patience)).await {
            Ok(Connected::Http1(single)) => Ok(Sender::Http1(single)),
            Ok(Connected::Http2(made)) => {
                let sender = made.sender();
                dialled.living = Some(made);
                let closed = || TransportError(format!("{} closed the connection", self.server));
                sender.map(Sender::Http2).ok_or_else(closed)
            }
            Err(error) => {
                dialled.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    async fn in_time<T>(
        &self,
        patience: Patience,
        work: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let deadline = patience.connect;
        match tokio::time::timeout(deadline, work).await {
            Ok(done) => done,
            Err(_) => Err(TransportError(format!("connecting to {} took longer than {deadline:?}", self.server))),
        }
    }

    /// Puts server, token and agent onto a request that has only a path.
    fn addressed(&self, request: Request<Bytes>) -> Result<Request<Bytes>, TransportError> {
        let (mut head, body) = request.into_parts();
        let mut parts = self.server.clone().into_parts();
        let prefix = self.server.path().trim_end_matches('/');
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let path = PathAndQuery::try_from(format!("{prefix}{path}"))
            .map_err(|error| TransportError(format!("{path:?} is no path: {error}")))?;
        parts.path_and_query = Some(path);
        head.uri = Uri::from_parts(parts).map_err(|error| TransportError(format!("no address: {error}")))?;
        if let Some(bearer) = &self.bearer {
            head.headers.insert(header::AUTHORIZATION, bearer.clone());
        }
        head.headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
        Ok(Request::from_parts(head, body))
    }
}

impl ServerTransport for HttpsTransport {
    fn try_send(&self, request: Request<Bytes>, patience: Patience) -> BoxFuture<'_, Result<Response<Body>, Failed>> {
        Box::pin(self.try_send(request, patience))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.host.clone())
    }
}

impl Transport for HttpsTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(async move { self.try_send(request, Patience::default()).await.map_err(|it| it.error) })
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(self.host.clone())
    }
}

enum Sender {
    Http2(SendRequest<Full<Bytes>>),
    Http1(Single),
}

async fn attempt(
    mut sender: SendRequest<Full<Bytes>>,
    request: Request<Bytes>,
) -> Result<Response<Body>, (TransportError, Option<Request<Bytes>>)> {
    let (head, body) = request.into_parts();
    let kept = body.clone();
    match sender.try_send_request(Request::from_parts(head, Full::new(body))).await {
        Ok(response) => Ok(response.map(|it| it.map_err(Into::into).boxed_unsync())),
        Err(mut failure) => {
            let unsent = failure.take_message().map(|it| it.map(|_| kept));
            Err((TransportError(format!("{}", failure.error())), unsent))
        }
    }
}

#[cfg(test)]
mod tests;
