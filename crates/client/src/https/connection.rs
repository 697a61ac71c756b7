//! One connection: dialled, negotiated, driven by tasks that it owns.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::Patience;
use crate::{Body, TransportError};

const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// What [`super::HttpsTransport::upgrade`] gives: a byte stream, with the task that carries it.
pub struct Upgraded {
    pub io: TokioIo<hyper::upgrade::Upgraded>,
    /// Ends by itself once both sides have closed; dropping it ends the connection.
    pub driver: JoinSet<()>,
}

/// Everything that is needed to connect once more.
pub(super) struct Dial {
    pub(super) address: (String, u16),
    pub(super) name: ServerName<'static>,
    /// Offers both protocols.
    pub(super) any: Arc<ClientConfig>,
    pub(super) http1: Arc<ClientConfig>,
}

pub(super) enum Connected {
    Http2(Connection),
    /// The server speaks nothing newer.
    Http1(Single),
}

/// A living HTTP/2 connection. Dropping it ends its tasks and with them every stream.
pub(super) struct Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    tasks: Tasks,
}

/// An HTTP/1.1 connection, good for one request.
pub(super) struct Single {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: JoinSet<()>,
}

impl Dial {
    pub(super) async fn any(&self, patience: Patience) -> Result<Connected, TransportError> {
        let stream = self.stream(&self.any).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return self.single(stream).await.map(Connected::Http1);
        }
        let mut tasks = Tasks::default();
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(patience.silent)
            .keep_alive_timeout(patience.unanswered)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failed("greet", &error))?;
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the API server ended");
            }
        });
        Ok(Connected::Http2(Connection { sender, tasks }))
    }

    pub(super) async fn http1(&self) -> Result<Single, TransportError> {
        let stream = self.stream(&self.http1).await?;
        self.single(stream).await
    }

    async fn single(&self, stream: TlsStream<TcpStream>) -> Result<Single, TransportError> {
        Single::over(stream).await.map_err(|error| self.failed("greet", &error))
    }

    async fn stream(&self, config: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>, TransportError> {
        let (host, port) = &self.address;
        let stream = TcpStream::connect((&**host, *port)).await.map_err(|error| self.failed("connect to", &error))?;
        stream.set_nodelay(true).map_err(|error| self.failed("connect to", &error))?;
        let connector = TlsConnector::from(config.clone());
        connector.connect(self.name.clone(), stream).await.map_err(|error| self.failed("trust", &error))
    }

    fn failed(&self, what: &str, error: &dyn std::error::Error) -> TransportError {
        TransportError(format!("cannot {what} {}:{}: {error}", self.address.0, self.address.1))
    }
}

impl Connection {
    pub(super) fn sender(&self) -> Option<http2::SendRequest<Full<Bytes>>> {
        (!self.sender.is_closed()).then(|| self.sender.clone())
    }

    pub(super) async fn close(self) {
        let mut tasks = std::mem::take(&mut *self.tasks.0.lock());
        tasks.shutdown().await;
    }
}

impl Single {
    pub(super) async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to a server ended");
            }
        });
        Ok(Self { sender, driver })
    }

    pub(super) async fn send(mut self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let response = self.exchange(request).await?;
        // The driver lives exactly as long as the body that it feeds.
        let driver = self.driver;
        Ok(response.map(|body| {
            let body = body.map_err(Into::into).map_frame(move |frame| {
                let _owned = &driver;
                frame
            });
            body.boxed_unsync()
        }))
    }

    pub(super) async fn upgrade(
        mut self,
        request: Request<Bytes>,
    ) -> Result<(Response<Body>, Option<Upgraded>), TransportError> {
        let mut response = self.exchange(request).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let (head, body) = response.into_parts();
            let body =
                body.collect().await.map_err(|error| TransportError(format!("the answer broke off: {error}")))?;
            let body = Full::new(body.to_bytes()).map_err(|never| match never {}).boxed_unsync();
            return Ok((Response::from_parts(head, body), None));
        }
        let io = hyper::upgrade::on(&mut response)
            .await
            .map_err(|error| TransportError(format!("the upgrade failed: {error}")))?;
        let response = response.map(|it| it.map_err(Into::into).boxed_unsync());
        Ok((response, Some(Upgraded { io: TokioIo::new(io), driver: self.driver })))
    }

    async fn exchange(&mut self, request: Request<Bytes>) -> Result<Response<hyper::body::Incoming>, TransportError> {
        let (mut head, body) = request.into_parts();
        if let Some(host) = head.uri.authority().and_then(|it| it.as_str().parse().ok()) {
            head.headers.insert(http::header::HOST, host);
        }
        // HTTP/1.1 names the server in a header, and only the path on the first line.
        head.uri =
            head.uri.path_and_query().map(|it| it.as_str().parse()).transpose().ok().flatten().unwrap_or_default();
        let request = Request::from_parts(head, Full::new(body));
        self.sender.send_request(request).await.map_err(|error| TransportError(format!("{error}")))
    }
}

/// Runs what a connection needs to have run, and ends it all with the connection.
#[derive(Clone, Default)]
struct Tasks(Arc<parking_lot::Mutex<JoinSet<()>>>);

impl Tasks {
    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        self.clone().spawn(work);
    }
}
