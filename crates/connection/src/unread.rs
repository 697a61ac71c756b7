//! Answers that clients ask for and do not read. What is kept for them would fill the memory: so each has its time, and all together
//! have their room; a connection with one that is not read in time ends, and where there is no room, one of whoever takes most of it.
//!
//! An answer is read when the last piece of it has left hyper: each piece is a [`Bytes`] that knows when it is dropped.

mod body;
mod progress;
mod room;

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::Response;
use http_body::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use self::{
    body::Unread,
    progress::{PATIENCE, Progress},
};
pub use body::UnreadBody;
pub use room::UnreadRoom;

const LARGE_BYTES: u64 = 64 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// In the extensions of a response: it goes on for as long as its client likes.
#[derive(Clone, Copy)]
pub struct GoesOn;

/// In the extensions of a response: who asked.
#[derive(Clone)]
pub struct AnswerTo(pub Arc<str>);

impl AnswerTo {
    /// Is it large, or may it become so? Whose it is must then be known, so that room is made where most of it is taken.
    pub fn matters<B: Body>(response: &Response<B>) -> bool {
        response.body().size_hint().exact().is_none_or(|it| it >= LARGE_BYTES)
    }
}

/// The answers of one connection that have not been read yet. Clones are the same.
#[derive(Clone)]
pub struct UnreadAnswers(Arc<Answers>);

struct Answers {
    id: u64,
    room: Arc<UnreadRoom>,
    table: Mutex<Table>,
    /// Of who serves the connection.
    waker: AtomicWaker,
}

#[derive(Default)]
struct Table {
    next: u64,
    answers: BTreeMap<u64, Progress>,
    asker: Option<Arc<str>>,
    /// With all of its frames, those too that others hold as well.
    bytes: u64,
    /// The frames in it, by where each is in memory: how large it is, and how many of the answers hold it.
    frames: HashMap<usize, (u64, usize)>,
    /// Nothing of it counts any more.
    is_ended: bool,
}

impl Table {
    /// False where nothing counts any more.
    fn take_in(&mut self, bytes: u64) -> bool {
        if !self.is_ended {
            self.bytes += bytes;
        }
        !self.is_ended
    }
}

impl UnreadAnswers {
    pub fn new(room: &Arc<UnreadRoom>) -> Self {
        Self(Arc::new_cyclic(|this| Answers {
            id: room.enter(this.clone()),
            room: room.clone(),
            table: Mutex::default(),
            waker: AtomicWaker::new(),
        }))
    }

    /// Counts the answer until it has been read. One that [goes on](GoesOn) has no time, and of it what is large is counted.
    pub fn add<B: Body<Data = Bytes>>(&self, mut response: Response<B>) -> Response<UnreadBody<B>> {
        let goes_on = response.extensions_mut().remove::<GoesOn>().is_some();
        let asker = response.extensions_mut().remove::<AnswerTo>();
        let whole_bytes = response.body().size_hint().exact().filter(|_| !goes_on);
        let unread = self.begin(asker, whole_bytes, goes_on);
        response.map(|body| UnreadBody { body, rest: Bytes::new(), frame: None, unread })
    }

    fn begin(&self, asker: Option<AnswerTo>, whole_bytes: Option<u64>, goes_on: bool) -> Arc<Unread> {
        let id = {
            let mut table = self.0.table.lock();
            let id = table.next;
            table.next += 1;
            if !goes_on {
                table.answers.insert(id, Progress::begin(Instant::now()));
            }
            if let Some(AnswerTo(asker)) = asker {
                table.asker = Some(asker);
            }
            id
        };
        self.0.hold(whole_bytes.unwrap_or_default());
        Arc::new(Unread { id, answers: self.0.clone(), whole_bytes, goes_on })
    }
}

impl Answers {
    fn hold(&self, bytes: u64) {
        if self.table.lock().take_in(bytes) {
            self.room.add(bytes);
        }
    }

    fn hold_frame(&self, frame: &Bytes) {
        let (at, bytes) = (frame.as_ptr() as usize, frame.len() as u64);
        let is_over = {
            let mut table = self.table.lock();
            let (_, n_holders) = table.frames.entry(at).or_insert((bytes, 0));
            *n_holders += 1;
            // Under the lock: whoever ends the connection meanwhile takes back what is counted here.
            *n_holders == 1 && table.take_in(bytes) && self.room.count_frame(at, bytes)
        };
        if is_over {
            self.room.make_room();
        }
    }

    fn release_frame(&self, frame: &Bytes) {
        let at = frame.as_ptr() as usize;
        let mut table = self.table.lock();
        let Some((bytes, n_holders)) = table.frames.get_mut(&at) else { return };
        *n_holders -= 1;
        if *n_holders > 0 {
            return;
        }
        let bytes = *bytes;
        table.frames.remove(&at);
        if !table.is_ended {
            table.bytes -= bytes;
            self.room.remove_frame(at, bytes);
        }
    }

    fn release(&self, bytes: u64) {
        let mut table = self.table.lock();
        if !table.is_ended {
            table.bytes -= bytes;
            self.room.remove(bytes);
        }
    }

    fn forget(&self, id: u64, bytes: u64) {
        self.table.lock().answers.remove(&id);
        self.release(bytes);
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Progress)) {
        if let Some(answer) = self.table.lock().answers.get_mut(&id) {
            change(answer);
        }
    }

    /// With its part of what others hold as well: that is not free when this one lets go.
    fn held(&self, n_holders: &HashMap<usize, usize>) -> (Option<Arc<str>>, u64) {
        let table = self.table.lock();
        let part = |at: &usize, bytes: u64| bytes / n_holders.get(at).map_or(1, |it| (*it).max(1) as u64);
        let of_others = table.frames.iter().map(|(at, (bytes, _))| bytes - part(at, *bytes));
        (table.asker.clone(), table.bytes - of_others.sum::<u64>().min(table.bytes))
    }

    fn end(&self) {
        let mut table = self.table.lock();
        if std::mem::replace(&mut table.is_ended, true) {
            return;
        }
        let mut bytes = std::mem::take(&mut table.bytes);
        for (at, (of_frame, _)) in &table.frames {
            self.room.remove_frame(*at, *of_frame);
            bytes -= of_frame;
        }
        self.room.remove(bytes);
        self.waker.wake();
    }

    /// `None` where there is no answer to wait for.
    fn next_look(&self) -> Option<Instant> {
        let table = self.table.lock();
        let deadlines = table.answers.values().filter_map(Progress::deadline);
        // One whose time rests begins to wait for its client unseen.
        (!table.answers.is_empty()).then(|| deadlines.min().unwrap_or_else(|| Instant::now() + PATIENCE))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.room.leave(self.id);
    }
}

/// A connection that ends with an error when one of its answers is not read in time, or others need the room.
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
        let answers = &*this.answers.0;
        answers.waker.register(context.waker());
        if let Poll::Ready(ended) = this.connection.as_mut().poll(context) {
            return Poll::Ready(ended.map_err(Into::into));
        }
        let (is_ended, is_idle) = {
            let table = answers.table.lock();
            (table.is_ended, table.answers.is_empty())
        };
        if is_ended {
            return Poll::Ready(Err("its unread answers took room that others need".into()));
        }
        if this.timer.is_none() && is_idle {
            return Poll::Pending;
        }
        // None of these answers has less time than that.
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + PATIENCE)));
        while timer.as_mut().poll(context).is_ready() {
            match answers.next_look() {
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
