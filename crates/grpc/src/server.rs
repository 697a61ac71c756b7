//! Answers at a socket: one message for one, or a stream of them.

use std::{
    convert::Infallible,
    fs, io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;
use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinSet,
};
use tonic::{Code, Status};

/// A plugin has a handful of connections at most.
const CONNECTIONS_MAX: usize = 64;
const STREAMS_MAX: u32 = 32;
const QUESTION_BYTES_MAX: usize = 4 << 20;
/// So long a question may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
const NOT_IN_HEADERS: &AsciiSet = &CONTROLS.add(b'%');

/// The messages of an answer, encoded.
pub type Answer = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>>;

/// What answers at a socket.
pub trait Service: Send + Sync + 'static {
    /// Answers a question of a method, `/package.Service/Method`.
    fn answer<'a>(&'a self, method: &'a str, question: Bytes) -> Answering<'a>;
}

/// An answer of one message.
pub fn one(message: &impl Message) -> Answer {
    Box::pin(stream::iter([Bytes::from(message.encode_to_vec())]))
}

/// The message that a question is.
///
/// # Errors
/// `InvalidArgument`: it is none.
pub fn read<T: Message + Default>(question: Bytes) -> Result<T, Status> {
    T::decode(question).map_err(|it| Status::invalid_argument(it.to_string()))
}

/// Listens at a path, which a socket that somebody left there gives way to. Only this user may connect.
///
/// # Errors
/// Its folder cannot be made, or something else than a socket is there.
pub fn listen(socket: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = socket.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::symlink_metadata(socket).is_ok_and(|it| it.file_type().is_socket()) {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers whoever connects, for ever.
pub async fn serve(listener: UnixListener, service: Arc<dyn Service>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, service.clone()));
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection at a socket");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: UnixStream, service: Arc<dyn Service>) {
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(respond(&*service, request).await) }
    });
    let mut connection = http2::Builder::new(TokioExecutor::new());
    connection.max_concurrent_streams(STREAMS_MAX);
    if let Err(error) = connection.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a connection at a socket broke");
    }
}

type Frames = StreamBody<Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>>;

async fn respond(service: &dyn Service, request: Request<Incoming>) -> Response<Frames> {
    let answered = match question(request).await {
        Ok((method, question)) => service.answer(&method, question).await,
        Err(status) => Err(status),
    };
    let frames: Pin<Box<dyn Stream<Item = _> + Send>> = match answered {
        Ok(messages) => {
            let ok = Ok(Frame::trailers(trailers(&Status::new(Code::Ok, ""))));
            Box::pin(messages.map(|it| Ok(Frame::data(framed(&it)))).chain(stream::iter([ok])))
        }
        Err(status) => Box::pin(stream::iter([Ok(Frame::trailers(trailers(&status)))])),
    };
    let mut response = Response::new(StreamBody::new(frames));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

async fn question(request: Request<Incoming>) -> Result<(String, Bytes), Status> {
    let method = request.uri().path().to_owned();
    let reading = Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect();
    let read = tokio::time::timeout(PATIENCE, reading).await;
    let read = read.map_err(|_| Status::deadline_exceeded("the question does not arrive"))?;
    let body = read.map_err(|it| Status::resource_exhausted(it.to_string()))?.to_bytes();
    let is_whole = body.len() >= PREFIX_BYTES && body[0] == 0;
    let length = body.get(1..PREFIX_BYTES).and_then(|it| it.try_into().ok()).map(u32::from_be_bytes);
    match length.and_then(|it| usize::try_from(it).ok()) {
        Some(length) if is_whole && body.len() == PREFIX_BYTES + length => Ok((method, body.slice(PREFIX_BYTES..))),
        _ => Err(Status::internal("the question is not one message without compression")),
    }
}

fn framed(message: &Bytes) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status.code() as i32));
    let message = utf8_percent_encode(status.message(), NOT_IN_HEADERS).to_string();
    if let Some(message) = HeaderValue::from_str(&message).ok().filter(|it| !it.is_empty()) {
        trailers.insert("grpc-message", message);
    }
    trailers
}
