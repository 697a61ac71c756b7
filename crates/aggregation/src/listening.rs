//! Whether a server has said anything.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Shared by who asks and what is read from.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<AtomicBool>);

impl Said {
    pub(crate) fn anything(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// What is said from now on counts.
    pub(crate) fn forget(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A stream of which it is noted that a byte has come: hyper says of an answer that is cut off in its head what it says of none.
pub(crate) struct Listening<S> {
    stream: S,
    said: Said,
}

impl<S> Listening<S> {
    pub(crate) fn to(stream: S, said: Said) -> Self {
        Self { stream, said }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Listening<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.said.0.store(true, Ordering::Release);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Listening<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
