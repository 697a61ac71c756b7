//! What the sample answers, as the crate `grpc` sends it.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use corten_grpc::{Answer, Code as Theirs, Service, Status};
use futures_util::stream;
use prost::Message;

use super::SampleDriver;
use crate::{Code, Fault};

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

/// The sample at its socket.
pub(super) struct Answers(pub(super) Arc<SampleDriver>);

impl Service for Answers {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        question: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
        Box::pin(async move {
            let answered = self.0.clone().answer(method.to_owned(), question).await;
            let message = answered.map_err(|it| Status::new(code(it.code), it.message))?;
            Ok(Box::pin(stream::iter([Bytes::from(message)])) as Answer)
        })
    }
}

pub(super) fn read<M: Message + Default>(question: &[u8]) -> Result<M, Fault> {
    M::decode(question).map_err(|it| Fault::new(Code::InvalidArgument, it.to_string()))
}

fn code(code: Code) -> Theirs {
    match code {
        Code::Unknown => Theirs::Unknown,
        Code::InvalidArgument => Theirs::InvalidArgument,
        Code::DeadlineExceeded => Theirs::DeadlineExceeded,
        Code::NotFound => Theirs::NotFound,
        Code::AlreadyExists => Theirs::AlreadyExists,
        Code::PermissionDenied => Theirs::PermissionDenied,
        Code::ResourceExhausted => Theirs::ResourceExhausted,
        Code::FailedPrecondition => Theirs::FailedPrecondition,
        Code::Aborted => Theirs::Aborted,
        Code::OutOfRange => Theirs::OutOfRange,
        Code::Unimplemented => Theirs::Unimplemented,
        Code::Internal => Theirs::Internal,
        Code::Unavailable => Theirs::Unavailable,
        Code::Canceled => Theirs::Cancelled,
    }
}
