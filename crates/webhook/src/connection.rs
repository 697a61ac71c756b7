//! One HTTP/1.1 connection, driven by a task that it owns, and those that wait for the next request.

use std::{error::Error, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_cacher::body::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    net::TcpStream,
    runtime::{self, Handle},
    task::JoinSet,
    time::Instant,
};
use tokio_rustls::client::TlsStream;

/// How an address is reached.
pub type Dial = Arc<dyn Fn(SocketAddr) -> BoxFuture<'static, io::Result<TcpStream>> + Send + Sync>;

/// A connection to a server, after the handshake.
pub type Stream = TlsStream<TcpStream>;

/// One that is idle for longer is not used again: what stands between may have forgotten it.
const IDLE_MAX: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Of an answer's head.
const HEADERS_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Dropped with the connection, which ends it.
    _driver: JoinSet<()>,
    /// The threads that read and write it. Others would wait until these have time.
    driven_by: runtime::Id,
    idle_since: Instant,
}

/// Why a request was not answered.
pub(crate) struct Failed {
    pub(crate) reason: String,
    /// The request, where nothing of it was sent.
    pub(crate) unsent: Option<Request<Full<Bytes>>>,
}

impl Connection {
    pub(crate) async fn over(stream: Stream) -> Result<Self, String> {
        let handshake = http1::Builder::new().max_buf_size(HEADERS_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|it| it.to_string())?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook ended");
            }
        });
        Ok(Self { sender, _driver: driver, driven_by: Handle::current().id(), idle_since: Instant::now() })
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failed> {
        self.sender.try_send_request(request).await.map_err(|mut failure| {
            let reason = in_gos_words(failure.error());
            Failed { reason, unsent: failure.take_message() }
        })
    }

    fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.idle_since.elapsed() < IDLE_MAX
    }
}

fn in_gos_words(error: &hyper::Error) -> String {
    // Whoever ends the connection below TLS ends it, too, without an answer.
    let below = error.source().and_then(|it| it.downcast_ref::<io::Error>());
    let is_ended = below.is_some_and(|it| it.kind() == io::ErrorKind::UnexpectedEof);
    if error.is_incomplete_message() || error.is_canceled() || is_ended { "EOF".into() } else { error.to_string() }
}

/// Connections that wait for the next request of the threads that opened them.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Connection>>);

impl Pool {
    pub(crate) fn take(&self) -> Option<Connection> {
        let mut idle = self.0.lock();
        idle.retain(Connection::is_usable);
        let here = Handle::current().id();
        let at = idle.iter().rposition(|it| it.driven_by == here)?;
        Some(idle.remove(at))
    }

    pub(crate) fn put(&self, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = self.0.lock();
        idle.retain(Connection::is_usable);
        if idle.len() < IDLE_CONNECTIONS_MAX && connection.is_usable() {
            idle.push(connection);
        }
    }
}
