//! A connection that counts against what one server may have.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use corten_webhook::{Socket, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{server::Place, share::Share};

/// Counted until it is dropped.
pub(crate) struct Counted {
    stream: Stream,
    _place: Place,
    /// Of who has it for longer than a request.
    share: Option<Share>,
}

impl Counted {
    pub(crate) fn new(stream: Stream, place: Place) -> Self {
        Self { stream, _place: place, share: None }
    }

    /// It is this user's until its end.
    pub(crate) fn of(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    pub(crate) fn socket(&self) -> Option<Socket> {
        self.stream.socket().ok()
    }

    /// The endpoint that it leads to.
    pub(crate) fn to(&self) -> SocketAddr {
        self.stream.to()
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
