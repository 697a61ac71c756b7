//! The way between one API server and the store that several share. It can be cut, slowed, and cut in one direction.
//!
//! As the client of an etcd it does not know what became of a write that was not answered in time, which may still arrive; what is known
//! of the store's newest revision is what answers say; and streams come late, stall, break, and go on where they were.

mod levers;
mod streams;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use corten_store::{BoxFuture, Changes, Entry, Error, Outcome, Page, Range, Revision, Store, Txn, memory::Memory};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

pub(crate) use levers::{Levers, Trouble};

use crate::{
    author::{Author, Authors},
    seeded_rng::SeededRng,
    signal::Signal,
};

/// An answer is waited for so long.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Of what is lost on its way there, so much arrives once the way is open again.
const LATE_PERCENT: u64 = 60;

/// A store at the other end of a link.
pub(crate) struct LinkedStore(Arc<Link>);

/// What an API server has of it, from its start to its end.
pub(crate) struct Link {
    store: Arc<Memory>,
    levers: Levers,
    dice: SeededRng,
    authors: Authors,
    /// The newest revision that an answer named.
    newest: Signal<Revision>,
    /// The last request had no answer.
    is_troubled: AtomicBool,
    is_closed: Signal<bool>,
}

/// Why there is no answer.
enum Silence {
    /// The request was not sent.
    Refused,
    /// It may have arrived, or may still arrive.
    Unanswered,
}

impl LinkedStore {
    pub(crate) fn new(store: Arc<Memory>, levers: Levers, dice: SeededRng, authors: Authors) -> Self {
        let (newest, is_closed, is_troubled) = (Signal::default(), Signal::default(), AtomicBool::new(false));
        Self(Arc::new(Link { store, levers, dice, authors, newest, is_troubled, is_closed }))
    }

    fn open(&self) -> Result<(), Error> {
        if self.0.is_closed.get() { Err(Error::Closed) } else { Ok(()) }
    }

    /// A question that may be asked again without harm.
    async fn read<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.open()?;
        self.0.ask(question).await.unwrap_or_else(|silence| Err(Error::Unavailable(silence.to_string())))
    }
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Refused => "nothing listens behind the link",
            Self::Unanswered => "the link is silent",
        })
    }
}

impl Link {
    /// Asks in a task of its own: what is on its way arrives, though nobody waits for it any more.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Silence> {
        let answered = self.answered(question).await;
        self.is_troubled.store(answered.is_err(), Ordering::Relaxed);
        let (answer, revision) = answered?;
        if revision > self.newest.get() {
            self.newest.set(revision);
        }
        Ok(answer)
    }

    /// The answer, and the revision of the store that it names.
    async fn answered<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl Future<Output = T> + Send + 'static,
    ) -> Result<(T, Revision), Silence> {
        if self.levers.trouble() == Trouble::Refused {
            sleep(self.latency()).await;
            return Err(Silence::Refused);
        }
        let (tell, told) = oneshot::channel();
        let link = self.clone();
        tokio::spawn(async move {
            link.there().await;
            let before = link.store.revision();
            let answer = question.await;
            let revision = link.store.revision();
            if revision > before && tell.is_closed() {
                link.authors.note_late(revision);
            }
            link.back().await;
            // Who asked may have given up.
            let _ = tell.send((answer, revision));
        });
        // Where the process stands still, an answer that has come is there when it goes on, however late that is.
        let answer = self.levers.freezer.task(timeout(ANSWER_WAIT, told)).await;
        answer.ok().and_then(Result::ok).ok_or(Silence::Unanswered)
    }

    async fn there(&self) {
        sleep(self.latency()).await;
        if self.levers.trouble().passes_there() {
            return;
        }
        if !self.dice.percent(LATE_PERCENT) {
            return std::future::pending().await;
        }
        self.levers.until(Trouble::passes_there).await;
    }

    async fn back(&self) {
        sleep(self.latency()).await;
        self.levers.until(Trouble::passes_back).await;
    }

    fn latency(&self) -> Duration {
        if self.levers.trouble() == Trouble::Slow { self.dice.millis(20, 1500) } else { self.dice.millis(1, 3) }
    }

    /// Notes who wrote before anybody can look at what was written.
    async fn commit(&self, txn: Txn, author: Option<Author>) -> Result<Outcome, Error> {
        let before = self.store.revision();
        let outcome = self.store.commit(txn).await;
        let after = self.store.revision();
        if let Some(author) = author.filter(|_| after > before) {
            self.authors.note(after, author);
        }
        outcome
    }
}

impl Store for LinkedStore {
    /// The newest that is known here.
    fn revision(&self) -> Revision {
        self.0.newest.get()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        let store = self.0.store.clone();
        Box::pin(self.read(async move { Ok(store.revision()) }))
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        let (store, key) = (self.0.store.clone(), Bytes::copy_from_slice(key));
        Box::pin(self.read(async move { store.get(&key).await }))
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        let store = self.0.store.clone();
        Box::pin(self.read(async move { store.range(range, revision, limit).await }))
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        let (link, author) = (self.0.clone(), Author::of_this_request());
        Box::pin(async move {
            self.open()?;
            let committing = async move { link.commit(txn, author).await };
            match self.0.ask(committing).await {
                Ok(outcome) => outcome,
                Err(silence @ Silence::Refused) => Err(Error::Unavailable(silence.to_string())),
                Err(silence) => Err(Error::Io(format!("{silence}; it is not known whether it was written"))),
            }
        })
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(async move {
            self.open()?;
            if after > self.revision() {
                let newest = self.newest().await?;
                if after > newest {
                    return Err(Error::Future { asked: after, newest });
                }
            }
            Ok(streams::begin(self.0.clone(), range, after))
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        let store = self.0.store.clone();
        Box::pin(self.read(async move { store.compact(revision).await }))
    }

    fn writable(&self) -> Result<(), Error> {
        self.open()?;
        if self.0.is_troubled.load(Ordering::Relaxed) {
            return Err(Error::Unavailable(Silence::Unanswered.to_string()));
        }
        Ok(())
    }

    /// The store itself goes on: others share it.
    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.is_closed.set(true);
        Box::pin(async {})
    }
}
