//! One HTTP/1.1 connection, driven by who asks over it.

use std::{
    error::Error,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};
use corten_cacher::body::BoxFuture;
use http::{Request, response::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::{
    idle::{Reusable, Reuse},
    stream::Stream,
};

/// How an address is reached.
pub type Dial = Arc<dyn Fn(SocketAddr) -> BoxFuture<'static, io::Result<TcpStream>> + Send + Sync>;

/// Of an answer's head.
pub const HEADERS_BYTES_MAX: usize = 64 * 1024;

type Driver = Pin<Box<http1::Connection<TokioIo<Stream>, Full<Bytes>>>>;

pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Reads and writes; nothing once it has ended. A task of its own would have to be woken for each, by another thread at times.
    driver: Option<Driver>,
    reuse: Reuse,
}

/// Why a request was not answered.
pub(crate) struct Failed {
    pub(crate) reason: String,
    /// The request, where nothing of it was sent.
    pub(crate) unsent: Option<Request<Full<Bytes>>>,
}

impl Failed {
    fn midway(reason: String) -> Self {
        Self { reason, unsent: None }
    }
}

impl Connection {
    pub(crate) async fn over(stream: Stream) -> Result<Self, String> {
        let reuse = Reuse::over(stream.socket().ok());
        let handshake = http1::Builder::new().max_buf_size(HEADERS_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|it| it.to_string())?;
        Ok(Self { sender, driver: Some(Box::pin(driver)), reuse })
    }

    /// The answer, whole.
    pub(crate) async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<(Parts, Bytes), Failed> {
        let Self { sender, driver, .. } = self;
        let mut asking = pin!(asked(sender, request, bytes_max));
        poll_fn(|context| {
            if let Poll::Ready(answer) = asking.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            drive(driver, context);
            // What was read just now.
            asking.as_mut().poll(context)
        })
        .await
    }
}

impl Reusable for Connection {
    fn reuse(&mut self) -> &mut Reuse {
        &mut self.reuse
    }

    fn is_open(&mut self) -> bool {
        // Whoever closed it meanwhile is heard of here.
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && !self.sender.is_closed()
    }

    fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }
}

/// Who waits for an answer over one that ends is told by its end.
fn drive(driver: &mut Option<Driver>, context: &mut Context<'_>) {
    let Some(Poll::Ready(outcome)) = driver.as_mut().map(|it| it.as_mut().poll(context)) else { return };
    *driver = None;
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection to a webhook ended");
    }
}

async fn asked(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(Parts, Bytes), Failed> {
    if let Err(error) = sender.ready().await {
        return Err(Failed { reason: in_gos_words(&error), unsent: Some(request) });
    }
    let response = sender.try_send_request(request).await.map_err(|mut failure| {
        let reason = in_gos_words(failure.error());
        Failed { reason, unsent: failure.take_message() }
    })?;
    let (head, body) = response.into_parts();
    // Who is asked for no other protocol has no body in it.
    if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
        return Ok((head, Bytes::new()));
    }
    let body = collected(body, bytes_max).await.map_err(Failed::midway)?;
    Ok((head, body))
}

async fn collected(mut body: Incoming, bytes_max: usize) -> Result<Bytes, String> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|it| format!("the answer broke off: {it}"))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            return Err(format!("the answer is larger than {bytes_max} bytes"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Why a request was not answered, as Go's client says it.
pub fn in_gos_words(error: &hyper::Error) -> String {
    // Whoever ends the connection below TLS ends it, too, without an answer.
    let below = error.source().and_then(|it| it.downcast_ref::<io::Error>());
    let is_ended = below.is_some_and(|it| it.kind() == io::ErrorKind::UnexpectedEof);
    if error.is_incomplete_message() || error.is_canceled() || is_ended { "EOF".into() } else { error.to_string() }
}
