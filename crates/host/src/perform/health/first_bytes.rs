//! A connection that remembers how its other side began to speak: a server that answers TLS with plain HTTP is told apart
//! from one that speaks something else.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

const REMEMBERED: usize = b"HTTP/".len();

pub(super) struct FirstBytes {
    stream: TcpStream,
    first: Vec<u8>,
}

impl FirstBytes {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, first: Vec::with_capacity(REMEMBERED) }
    }

    pub(super) fn first(&self) -> &[u8] {
        &self.first
    }
}

impl AsyncRead for FirstBytes {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let missing = REMEMBERED - self.first.len();
        self.first.extend(buf.filled()[before..].iter().take(missing));
        read
    }
}

impl AsyncWrite for FirstBytes {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
