//! One HTTP/1.1 request over a connection of its own, which may end in an upgrade.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, response};
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, client::conn::http1, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

/// What the other server made of the request.
#[derive(Debug)]
pub enum Dialed {
    /// It switched protocols: the connection is a pipe now.
    Switched(Box<response::Parts>, Upgraded),
    /// It answered as HTTP does.
    Answered(Response<Answer>),
}

/// Sends `request` (whose path is absolute and whose `Host` header is set) over a fresh connection, and waits for the
/// answer's head until `deadline`.
///
/// # Errors
/// The connection broke, or there was no answer in time.
pub async fn dial<T, B>(io: T, request: Request<B>, deadline: Duration) -> Result<Dialed, Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    exchange(io, request, deadline, &http1::Builder::new()).await
}

/// As [`dial`], of a server whose answer's head may have so many bytes.
///
/// # Errors
/// The connection broke, or there was no such answer in time.
pub async fn dial_within<T, B>(
    io: T,
    request: Request<B>,
    deadline: Duration,
    head_bytes_max: usize,
) -> Result<Dialed, Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    exchange(io, request, deadline, http1::Builder::new().max_buf_size(head_bytes_max)).await
}

async fn exchange<T, B>(
    io: T,
    request: Request<B>,
    deadline: Duration,
    builder: &http1::Builder,
) -> Result<Dialed, Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let exchange = async {
        let (mut sender, connection) = builder.handshake(TokioIo::new(io)).await?;
        // Owned by the answer: it ends with the connection, or is stopped when nobody reads the answer any more.
        let driver = Driver(tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection ended with an error");
            }
        }));
        let response = sender.send_request(request).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Dialed::Answered(response.map(|body| Answer { body, _driver: driver })));
        }
        let (head, body) = response.into_parts();
        let mut switched = Response::new(body);
        *switched.extensions_mut() = head.extensions.clone();
        Ok(Dialed::Switched(Box::new(head), hyper::upgrade::on(switched).await?))
    };
    tokio::time::timeout(deadline, exchange).await.map_err(|_| Error::Deadline(deadline))?
}

#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of an answer, together with the task that reads its connection.
#[derive(Debug)]
pub struct Answer {
    body: Incoming,
    _driver: Driver,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
