//! Connections to one server that take the next request once the answer to one has been read, as those of Go's `http.Transport`.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use bytes::Bytes;
use corten_cacher::body::{Body, BoxError, whole};
use corten_webhook::{Client, HEADERS_BYTES_MAX, Idle, Reusable, Reuse, Socket, in_gos_words};
use http::{Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
};

use crate::{
    listening::{Listening, Said},
    share::Share,
};

pub(crate) type KeptConnections = Idle<Connection>;

pub(crate) struct Connection {
    sender: http1::SendRequest<Body>,
    /// Reads and writes, and ends with it.
    driver: JoinHandle<()>,
    reuse: Reuse,
    to: SocketAddr,
    /// By which it was proved who is there, and who asks: no other may have it.
    client: Weak<Client>,
    /// Whether anything of the answer has come.
    said: Said,
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

impl Reusable for Connection {
    fn reuse(&mut self) -> &mut Reuse {
        &mut self.reuse
    }

    fn is_open(&mut self) -> bool {
        !self.sender.is_closed()
    }

    fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }
}

impl Connection {
    /// `socket` is what is below the stream, which is looked at before another request goes there.
    pub(crate) async fn over<S>(
        stream: S,
        to: SocketAddr,
        socket: Option<Socket>,
        client: Weak<Client>,
    ) -> Result<Self, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let said = Said::default();
        let stream = TokioIo::new(Listening::to(stream, said.clone()));
        let handshake = http1::Builder::new().max_buf_size(HEADERS_BYTES_MAX).handshake(stream).await;
        let (sender, connection) = handshake.map_err(|it| it.to_string())?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another API server ended");
            }
        });
        Ok(Self { sender, driver, reuse: Reuse::over(socket), to, client, said })
    }

    pub(crate) fn to(&self) -> SocketAddr {
        self.to
    }

    pub(crate) fn is_of(&self, client: &Weak<Client>) -> bool {
        self.client.ptr_eq(client)
    }

    /// The answer, whose connection is kept by `home` once it has been read to its end.
    pub(crate) async fn ask(
        mut self,
        request: Request<Body>,
        home: &Arc<KeptConnections>,
    ) -> Result<Response<Answer>, Failed> {
        let again = repeated(&request);
        self.said.forget();
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                let back = Some((self, Arc::downgrade(home)));
                Ok(response.map(|body| Answer { body, back, share: None }))
            }
            Err(mut failure) => {
                // Whatever has come of an answer says that the server has acted, also where it is cut off or is none.
                let unsent = failure.take_message().or(again.filter(|_| !self.said.anything()));
                Err(Failed { reason: in_gos_words(&failure.into_error()), unsent })
            }
        }
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

/// The body of an answer, with the connection that it comes over.
pub(crate) struct Answer {
    body: Incoming,
    back: Option<(Connection, Weak<KeptConnections>)>,
    /// Of who asked.
    share: Option<Share>,
}

impl Answer {
    pub(crate) fn of(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
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
        let polled = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
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
