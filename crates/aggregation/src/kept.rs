//! Connections to one server that take the next request once the answer to one has been read, as those of Go's `http.Transport`.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use bytes::Bytes;
use corten_cacher::body::{Body, whole};
use corten_webhook::{HEADERS_BYTES_MAX, IDLE_CONNECTIONS_MAX, IDLE_MAX};
use http::{Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::{self, Handle},
    task::JoinHandle,
    time::Instant,
};

/// Idle connections. Each is taken only by requests of the runtime that opened it.
#[derive(Default)]
pub(crate) struct KeptConnections(Mutex<Vec<Connection>>);

pub(crate) struct Connection {
    sender: http1::SendRequest<Body>,
    /// Reads and writes, and ends with it.
    driver: JoinHandle<()>,
    to: SocketAddr,
    /// The threads that the driver runs on. From others it would be waited for until these have time.
    driven_by: runtime::Id,
    idle_since: Instant,
}

/// Why a request was not answered.
pub(crate) struct Failed {
    pub(crate) reason: String,
    /// The request, where the server cannot have begun to act on it, or may act on it again.
    pub(crate) unsent: Option<Request<Body>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub(crate) async fn over<S>(stream: S, to: SocketAddr) -> Result<Self, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = http1::Builder::new().max_buf_size(HEADERS_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|it| it.to_string())?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another API server ended");
            }
        });
        Ok(Self { sender, driver, to, driven_by: Handle::current().id(), idle_since: Instant::now() })
    }

    /// The answer, whose connection is kept by `home` once it has been read to its end.
    pub(crate) async fn ask(
        mut self,
        request: Request<Body>,
        home: &Arc<KeptConnections>,
    ) -> Result<Response<Answer>, Failed> {
        let again = repeated(&request);
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                let back = Some((self, Arc::downgrade(home)));
                Ok(response.map(|body| Answer { body, back }))
            }
            Err(mut failure) => {
                let unsent = failure.take_message().or(again);
                Err(Failed { reason: failure.into_error().to_string(), unsent })
            }
        }
    }

    fn is_fresh(&self) -> bool {
        !self.sender.is_closed() && self.idle_since.elapsed() < IDLE_MAX
    }
}

/// What may be asked twice (RFC 9110, section 9.2.2): the server may have ended a connection just as the request was sent.
fn repeated(request: &Request<Body>) -> Option<Request<Body>> {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD) && request.body().is_end_stream();
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    is_safe.then(|| {
        let mut again = Request::new(whole(Bytes::new()));
        (*again.method_mut(), *again.uri_mut(), *again.headers_mut()) = (method.clone(), uri.clone(), headers.clone());
        again
    })
}

impl KeptConnections {
    /// One to an endpoint that is still there.
    pub(crate) fn take(&self, is_endpoint: impl Fn(SocketAddr) -> bool) -> Option<Connection> {
        let mut idle = self.0.lock();
        idle.retain(|it| it.is_fresh() && is_endpoint(it.to));
        let here = Handle::current().id();
        // An answer may have come before the request was sent to its end: such a connection is still busy with that.
        let at = idle.iter().rposition(|it| it.driven_by == here && it.sender.is_ready())?;
        Some(idle.swap_remove(at))
    }

    pub(crate) fn end_all(&self) {
        self.0.lock().clear();
    }

    /// Ends those that nobody will take.
    pub(crate) fn tidy(&self) {
        self.0.lock().retain(Connection::is_fresh);
    }

    fn put(&self, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = self.0.lock();
        idle.retain(Connection::is_fresh);
        if idle.len() < IDLE_CONNECTIONS_MAX && connection.is_fresh() {
            idle.push(connection);
        }
    }
}

/// The body of an answer, with the connection that it comes over.
pub(crate) struct Answer {
    body: Incoming,
    back: Option<(Connection, Weak<KeptConnections>)>,
}

impl Answer {
    fn give_back(&mut self) {
        if let Some((connection, home)) = self.back.take()
            && let Some(home) = home.upgrade()
        {
            home.put(connection);
        }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) {
            self.give_back();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // Of one whose length is known nobody asks for what comes after its last byte.
        if self.body.is_end_stream() {
            self.give_back();
        }
    }
}

#[cfg(test)]
mod tests;
