//! HTTPS: TLS, HTTP/1.1 and HTTP/2 on one port, and every bound a stranger on the network meets before the chain does.

mod multiplexed;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use corten_access::Peer;
use corten_cacher::{
    answer,
    body::{BoxError, Response},
};
use corten_connection::{
    Attendance, BusyPoll, EndsUnread, InOneTurn, Lanes, Others, Placement, RequestPace, RequestPlacement,
    UnreadAnswers, ambiguity,
};
use corten_meta::Status;
use corten_stream::{Addresses, Connected};
use http::{HeaderValue, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto::Builder,
        graceful::{GracefulShutdown, Watcher},
    },
};
use rustix::net::sockopt;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::Server;

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

const CONNECTIONS_MAX: usize = 8192;
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
const HEADER_DEADLINE: Duration = Duration::from_secs(30);
const HEADERS_MAX: usize = 100;
const HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Streams of one HTTP/2 connection at a time; kube-apiserver's `--http2-max-streams-per-connection` where it is not given.
const STREAMS_MAX: u32 = 250;
/// Streams a client opened and reset at once before it is shut out (the rapid reset attack).
const RESETS_MAX: usize = 200;
const WINDOW_BYTES: u32 = 1024 * 1024;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long what was sent may stay unread.
const UNREAD_MS_MAX: u32 = 120_000;
/// The kernel doubles it for its own, and would else let four megabytes wait for a slow client.
const SEND_BUFFER_BYTES: usize = 256 * 1024;
/// How long open connections have to finish after shutdown began.
const DRAIN_DEADLINE: Duration = Duration::from_secs(10);
/// After an accept that failed for want of files or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot issue the serving certificate: {0}")]
    Certificate(corten_pki::Error),
    #[error("cannot read the listener's address: {0}")]
    Address(io::Error),
    #[error("cannot start the threads for large requests: {0}")]
    Threads(io::Error),
}

impl Server {
    /// Answers HTTPS on `listener` until `shutdown` comes: then watches end, open requests finish within a deadline, and
    /// this returns.
    ///
    /// # Errors
    /// Where there is no certificate to serve with.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let others = Others::new();
        let lanes = Arc::new(self.heavy().map_err(ServeError::Threads)?.lanes(others.clone()));
        let credential = self.credential(listener.local_addr().map_err(ServeError::Address)?);
        let credential = credential.map_err(ServeError::Certificate)?;
        let pki = &self.config().pki;
        let mut changes = pki.changes();
        let mut tls = TlsAcceptor::from(pki.server_config(&credential).map_err(ServeError::Certificate)?);
        let http1 = Arc::new(http1());
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let addresses = Addresses::new(self.config().limits.connections_of_address);
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accept(&listener, &places) => accepted,
            };
            match accepted {
                Ok((stream, address, place)) => {
                    let Some(connected) = addresses.admit(address.ip()) else {
                        tracing::debug!(%address, "the address has too many connections, one is refused");
                        continue;
                    };
                    // Clients are told whose certificates they may show.
                    if changes.has_changed().unwrap_or_default() {
                        changes.mark_unchanged();
                        match pki.server_config(&credential) {
                            Ok(config) => tls = config.into(),
                            Err(error) => tracing::error!(%error, "clients are told of authorities of before"),
                        }
                    }
                    let (server, tls, http1, lanes) = (self.clone(), tls.clone(), http1.clone(), lanes.clone());
                    let (pace, placement) = (RequestPace::new(others.clone()), lanes.placement());
                    let connection = Connection { server, tls, http1, address, pace, lanes, placement };
                    connections.spawn(connection.run(stream, graceful.watcher(), (place, connected)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        self.begin_stop();
        drop(listener);
        let drained = tokio::time::timeout(DRAIN_DEADLINE, graceful.shutdown()).await;
        if drained.is_err() {
            tracing::warn!(open = connections.len(), "connections did not finish in time and are cut");
        }
        connections.shutdown().await;
        Ok(())
    }

    fn credential(&self, address: SocketAddr) -> Result<Arc<corten_pki::DynamicCertificate>, corten_pki::Error> {
        let pki = &self.config().pki;
        let mut addresses = if address.ip().is_unspecified() { own_addresses() } else { vec![address.ip()] };
        // Listeners of one server show the same certificate. Pods know the server by its Service's address.
        addresses.extend(self.config().advertise.map(|it| it.ip()));
        addresses.extend(crate::bootstrap::service_addresses(self));
        pki.serving(&self.config().machine.host_name, &self.config().network.domain, &addresses)
    }
}

/// The address this machine has towards others. Asking the kernel for a route sends nothing.
fn own_addresses() -> Vec<std::net::IpAddr> {
    let towards = |bind: &str, to: &str| {
        let socket = std::net::UdpSocket::bind(bind).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|it| it.ip())
    };
    [towards("0.0.0.0:0", "192.0.2.1:9"), towards("[::]:0", "[2001:db8::1]:9")].into_iter().flatten().collect()
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    // First a place, then the connection: those beyond the bound wait in the kernel's queue.
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    Ok((stream, address, place))
}

/// For clients that did not choose HTTP/2 in the handshake. They get HTTP/1.1, as of Go's server.
fn http1() -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new()).http1_only();
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE)
        .max_headers(HEADERS_MAX)
        .max_buf_size(512 * 1024);
    http
}

/// Small frames of watches must not wait for more, and a client that stops reading must not be waited for for ever, nor have much wait
/// for it in the kernel, where nobody counts it.
fn bounded(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_tcp_user_timeout(stream, UNREAD_MS_MAX)?;
    sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER_BYTES)?;
    Ok(())
}

/// What one connection is served with.
struct Connection {
    server: Server,
    tls: TlsAcceptor,
    http1: Arc<Builder<TokioExecutor>>,
    address: SocketAddr,
    pace: Arc<RequestPace>,
    lanes: Arc<Lanes>,
    placement: Arc<Placement>,
}

impl Connection {
    async fn run(self, stream: TcpStream, watcher: Watcher, _place: (OwnedSemaphorePermit, Connected)) {
        let address = self.address;
        if let Err(error) = bounded(&stream) {
            return tracing::debug!(%address, %error, "the connection cannot be bounded");
        }
        let stream = match tokio::time::timeout(HANDSHAKE_DEADLINE, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%address, %error, "the TLS handshake failed"),
            Err(_) => return tracing::debug!(%address, "the TLS handshake took too long"),
        };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let busy_poll = BusyPoll::new(self.pace.clone());
        let (lanes, placement) = (self.lanes.clone(), self.placement.clone());
        let served = if is_http2 {
            lanes.run(InOneTurn::new(multiplexed::serve(self, stream, watcher), busy_poll), placement).await
        } else {
            lanes.run(InOneTurn::new(self.one_by_one(stream, watcher), busy_poll), placement).await
        };
        if let Err(error) = served {
            tracing::debug!(%address, %error, "the connection broke");
        }
    }

    /// HTTP/1.1: one request after the other; the only protocol that can be upgraded.
    async fn one_by_one(self, stream: TlsStream, watcher: Watcher) -> Result<(), BoxError> {
        let Self { server, http1, address, pace, lanes, placement, .. } = self;
        let peer = peer_of(&stream, address);
        let unread = UnreadAnswers::new(server.unread());
        let answers = unread.clone();
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            let (server, peer, in_work) = (server.clone(), peer.clone(), pace.begin());
            let answers = answers.clone();
            let (lanes, placement) = (lanes.clone(), placement.clone());
            async move {
                let _in_work = in_work;
                let answer = match ambiguity(&request) {
                    Some(reason) => refused(reason),
                    None if request.method().is_safe() => {
                        request.extensions_mut().insert(RequestPlacement::of_connection(placement));
                        server.answer(with_body(request), Some(peer), None).await
                    }
                    None => {
                        // Where a list was answered before, it may have to come back.
                        RequestPlacement::of_connection(placement).take_place(false).await;
                        let place = lanes.other_place_of(request.body()).cloned();
                        let work = |it| {
                            let (server, request) = (server.clone(), with_body(attended(request, it)));
                            async move { server.answer(request, Some(peer), None).await }
                        };
                        match place {
                            Some(place) => server.unattended().finish(&place, work).await,
                            None => server.unattended().finish_here(work).await,
                        }
                    }
                };
                Ok::<_, std::convert::Infallible>(answers.add(answer))
            }
        });
        let served = http1.serve_connection_with_upgrades(TokioIo::new(stream), service);
        EndsUnread::new(watcher.watch(served), unread).await
    }
}

/// The answer to a request that could be read as another; the connection ends with it.
fn refused(reason: String) -> Response {
    let mut response = answer::status(&Status::bad_request(reason));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A write, which knows whether its client is there: see [`crate::filters::deadline`].
fn attended(mut request: http::Request<Incoming>, attendance: Attendance) -> http::Request<Incoming> {
    request.extensions_mut().insert(attendance);
    request
}

fn peer_of(stream: &TlsStream, address: SocketAddr) -> Peer {
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    Peer { address, certificates: chain.iter().map(|it| it.clone().into_owned()).collect() }
}

fn with_body(request: http::Request<Incoming>) -> http::Request<corten_cacher::body::Body> {
    request.map(|it| it.map_err(Into::into).boxed_unsync())
}
