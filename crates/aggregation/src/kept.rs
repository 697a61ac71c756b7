//! Connections to one server that take the next request once the answer to one has been read, as those of Go's `http.Transport`.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use corten_cacher::body::{Body, BoxError, whole};
use corten_webhook::{HEADERS_BYTES_MAX, IDLE_CONNECTIONS_MAX, IDLE_MAX, Socket, in_gos_words};
use http::{Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::{self, Handle},
    task::JoinHandle,
    time::{Instant, Sleep, sleep},
};

use crate::share::Share;

/// In the midst of an answer. Less than its client has to read it in: the server's fault ends this answer, and nothing else of its client.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Idle connections. Each is taken only by requests of the runtime that opened it.
#[derive(Default)]
pub(crate) struct KeptConnections(Mutex<Vec<Connection>>);

pub(crate) struct Connection {
    sender: http1::SendRequest<Body>,
    /// Reads and writes, and ends with it.
    driver: JoinHandle<()>,
    socket: Option<Socket>,
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
    /// `socket` is what is below the stream, which is looked at before another request goes there.
    pub(crate) async fn over<S>(stream: S, to: SocketAddr, socket: Option<Socket>) -> Result<Self, String>
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
        Ok(Self { sender, driver, socket, to, driven_by: Handle::current().id(), idle_since: Instant::now() })
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
                Ok(response.map(|body| Answer { body, back, share: None, goes_on: false, silence: None }))
            }
            Err(mut failure) => {
                // A broken answer is one: the server has acted.
                let is_answered = failure.error().is_parse();
                let unsent = failure.take_message().or(again.filter(|_| !is_answered));
                Err(Failed { reason: in_gos_words(&failure.into_error()), unsent })
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
        while let Some(at) = idle.iter().rposition(|it| it.driven_by == here && it.sender.is_ready()) {
            let connection = idle.remove(at);
            // Whoever has just ended it is not heard of by its driver yet.
            if connection.socket.as_ref().is_none_or(Socket::is_silent) {
                return Some(connection);
            }
        }
        None
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
    /// Of who asked.
    share: Option<Share>,
    /// May it go on for as long as both sides like?
    goes_on: bool,
    /// Since when the server has said nothing, where somebody waits for it.
    silence: Option<Pin<Box<Sleep>>>,
}

impl Answer {
    pub(crate) fn of(mut self, share: Share, goes_on: bool) -> Self {
        (self.share, self.goes_on) = (Some(share), goes_on);
        self
    }

    fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(SILENCE_MAX)));
        !self.goes_on && silence.as_mut().poll(context).is_ready()
    }

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
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(polled) = Pin::new(&mut self.body).poll_frame(context) else {
            if self.is_silent(context) {
                return Poll::Ready(Some(Err("the other API server does not go on with its answer".into())));
            }
            return Poll::Pending;
        };
        self.silence = None;
        if polled.is_none() {
            self.give_back();
        }
        Poll::Ready(polled.map(|it| it.map_err(BoxError::from)))
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
