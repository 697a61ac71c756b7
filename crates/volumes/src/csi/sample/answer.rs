//! gRPC as one answers it: a message in, a message or a fault out.

use std::convert::Infallible;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixStream;

use crate::{Code, Fault};

/// Longer requests are refused.
const QUESTION_BYTES_MAX: usize = 4 << 20;

pub(super) type Answer = Response<StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>>;

/// What was done, in a word for who looks at it later, and what is answered.
pub(super) struct Served {
    pub(super) about: String,
    pub(super) message: Vec<u8>,
}

impl Served {
    pub(super) fn of(about: &str, message: &impl Message) -> Self {
        Self { about: about.to_owned(), message: message.encode_to_vec() }
    }
}

pub(super) async fn serve_connection<A, F>(stream: UnixStream, answer: A)
where
    A: Fn(String, Vec<u8>) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer.clone();
        async move {
            let path = request.uri().path().to_owned();
            let Ok(body) = Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect().await else {
                return Ok::<_, Infallible>(fail(&Fault::new(Code::ResourceExhausted, "the request is too long")));
            };
            // A byte that says whether it is compressed, and four of its length.
            let question = body.to_bytes().get(5..).unwrap_or_default().to_vec();
            Ok(answer(path, question).await)
        }
    });
    // How a connection ends concerns its client alone.
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

pub(super) fn read<M: Message + Default>(question: &[u8]) -> Result<M, Fault> {
    M::decode(question).map_err(|it| Fault::new(Code::InvalidArgument, it.to_string()))
}

pub(super) fn reply(message: &[u8]) -> Answer {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put(message);
    answer(Some(framed.freeze()), 0, "")
}

pub(super) fn fail(fault: &Fault) -> Answer {
    answer(None, number(fault.code), &fault.message)
}

fn answer(data: Option<Bytes>, code: u16, message: &str) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    if let Ok(it) = HeaderValue::from_str(message) {
        trailers.insert("grpc-message", it);
    }
    let frames: Vec<_> =
        data.map(|it| Ok(Frame::data(it))).into_iter().chain([Ok(Frame::trailers(trailers))]).collect();
    let mut response = Response::new(StreamBody::new(stream::iter(frames)));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

fn number(code: Code) -> u16 {
    match code {
        Code::Unknown => 2,
        Code::InvalidArgument => 3,
        Code::DeadlineExceeded => 4,
        Code::NotFound => 5,
        Code::AlreadyExists => 6,
        Code::PermissionDenied => 7,
        Code::ResourceExhausted => 8,
        Code::FailedPrecondition => 9,
        Code::Aborted => 10,
        Code::OutOfRange => 11,
        Code::Unimplemented => 12,
        Code::Internal => 13,
        Code::Unavailable => 14,
    }
}
