//! A connection to a server, after the handshake.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll},
};

use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// Servers that are written by hand end it without saying so (`close_notify`), and Go, whose clients Kubernetes has, takes that for the
/// end where it comes between two records. What is cut short by it is no JSON.
pub struct Stream {
    pub(crate) tls: TlsStream<TcpStream>,
    pub(crate) to: SocketAddr,
}

impl Stream {
    /// The endpoint that it leads to.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// What is below, for who keeps the connection and gives the stream away.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn socket(&self) -> io::Result<Socket> {
        Socket::of(self.tls.get_ref().0)
    }
}

/// The socket of a connection that is kept, to look at and not to read from.
pub struct Socket(OwnedFd);

impl Socket {
    /// # Errors
    /// The process has no descriptor left.
    pub fn of(stream: &impl AsFd) -> io::Result<Self> {
        stream.as_fd().try_clone_to_owned().map(Self)
    }

    /// Nothing has come that nobody has read: no byte, no end, no error. The kernel is asked, for the runtime tells of an end only when
    /// it has looked for events: a server that closes right after its answer would be asked again over what it has closed.
    pub fn is_silent(&self) -> bool {
        let mut byte = [0];
        matches!(recv(&self.0, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Err(Errno::AGAIN))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.tls).poll_read(context, buffer) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            polled => polled,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn what_waits_and_what_has_ended_is_not_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let connected = || {
            let ours = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
            (Socket(ours.into()), listener.accept().expect("a connection").0)
        };
        let (socket, mut theirs) = connected();
        assert!(socket.is_silent());
        theirs.write_all(b"x").expect("it is sent");
        assert!(!socket.is_silent() && !socket.is_silent(), "nothing is taken out");
        let (socket, theirs) = connected();
        drop(theirs);
        assert!(!socket.is_silent());
    }
}
