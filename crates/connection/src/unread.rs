//! Answers that clients ask for and do not read. What is kept for them would fill the memory: so each has its time, and a connection
//! with one that is not read in time ends.
//!
//! An answer is read when the last piece of it has left hyper: each piece is a [`Bytes`] that knows when it is dropped.

use std::{
    any::Any,
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

/// What any answer may take to be read, beside what its size gives it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who reads slower than this does not read.
const BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// In the extensions of a response: held until it has been read.
#[derive(Clone)]
pub struct UntilRead(pub Arc<dyn Any + Send + Sync>);

/// In the extensions of a response: it goes on for as long as its client likes.
#[derive(Clone, Copy)]
pub struct GoesOn;

/// The answers of one connection that have not been read yet.
#[derive(Clone, Default)]
pub struct UnreadAnswers(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    next: u64,
    answers: BTreeMap<u64, Progress>,
}

struct Progress {
    begun: Instant,
    /// What hyper has taken of it.
    bytes: u64,
}

impl Progress {
    fn deadline(&self) -> Instant {
        self.begun + PATIENCE + Duration::from_secs(self.bytes / BYTES_PER_SECOND_MIN)
    }
}

impl UnreadAnswers {
    /// Counts the answer until it has been read, unless it [goes on](GoesOn).
    pub fn add<B>(&self, mut response: Response<B>) -> Response<UnreadBody<B>> {
        let held = response.extensions_mut().remove::<UntilRead>();
        let unread = response.extensions_mut().remove::<GoesOn>().is_none().then(|| self.begin(held));
        response.map(|body| UnreadBody { body, unread })
    }

    fn begin(&self, held: Option<UntilRead>) -> Arc<Unread> {
        let mut table = self.0.lock();
        let id = table.next;
        table.next += 1;
        table.answers.insert(id, Progress { begun: Instant::now(), bytes: 0 });
        Arc::new(Unread { id, answers: self.clone(), _held: held })
    }

    fn is_empty(&self) -> bool {
        self.0.lock().answers.is_empty()
    }

    fn first_deadline(&self) -> Option<Instant> {
        self.0.lock().answers.values().map(Progress::deadline).min()
    }
}

struct Unread {
    id: u64,
    answers: UnreadAnswers,
    _held: Option<UntilRead>,
}

impl Unread {
    fn took(&self, bytes: usize) {
        if let Some(progress) = self.answers.0.lock().answers.get_mut(&self.id) {
            progress.bytes += bytes as u64;
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.answers.0.lock().answers.remove(&self.id);
    }
}

struct Piece {
    bytes: Bytes,
    _unread: Arc<Unread>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer that is counted until it has been read.
pub struct UnreadBody<B> {
    body: B,
    unread: Option<Arc<Unread>>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for UnreadBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(unread) = &self.unread else { return Poll::Ready(polled) };
        Poll::Ready(polled.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| {
                    unread.took(bytes.len());
                    Bytes::from_owner(Piece { bytes, _unread: unread.clone() })
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that ends with an error when one of its answers is not read in time.
pub struct EndsUnread<C> {
    connection: Pin<Box<C>>,
    answers: UnreadAnswers,
    /// From the first answer on until a look finds none.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<C> EndsUnread<C> {
    pub fn new(connection: C, answers: UnreadAnswers) -> Self {
        Self { connection: Box::pin(connection), answers, timer: None }
    }
}

impl<C, E> Future for EndsUnread<C>
where
    C: Future<Output = Result<(), E>>,
    E: Into<BoxError>,
{
    type Output = Result<(), BoxError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(ended) = this.connection.as_mut().poll(context) {
            return Poll::Ready(ended.map_err(Into::into));
        }
        if this.timer.is_none() && this.answers.is_empty() {
            return Poll::Pending;
        }
        // None of these answers has less time than that.
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + PATIENCE)));
        while timer.as_mut().poll(context).is_ready() {
            match this.answers.first_deadline() {
                Some(at) if at <= Instant::now() => return Poll::Ready(Err("an answer was not read in time".into())),
                Some(at) => timer.as_mut().reset(at),
                None => {
                    this.timer = None;
                    break;
                }
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
