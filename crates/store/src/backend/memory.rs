//! Everything in memory, done in the caller's own task: deterministic, for tests and the simulator.
//!
//! [`Faults`] makes it as unreliable as a test needs it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    BoxFuture, Changes, Entry, Error, Limits, LocalStore, Outcome, Page, Range, Revision, Store, Transaction, Txn,
    View, mvcc::Mvcc, work::Work,
};

pub struct Memory {
    mvcc: Arc<Mvcc>,
    faults: Arc<Faults>,
    /// Held while a transaction is compared and published, so that commits follow each other.
    writing: Mutex<()>,
}

/// Called before each commit; the commit goes on when its future is ready.
pub type Delay = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What shall go wrong. Shared: a test keeps a handle while the store is in use.
#[derive(Default)]
pub struct Faults {
    failing: Mutex<InjectedFailures>,
    delay: Mutex<Option<Delay>>,
}

#[derive(Default)]
struct InjectedFailures {
    refused: usize,
    unanswered: usize,
}

impl Faults {
    /// The next `n` commits fail with [`Error::Io`] and are not done.
    pub fn refuse(&self, n: usize) {
        self.failing.lock().refused = n;
    }

    /// The next `n` commits are done, but answered with [`Error::Io`]: the writer cannot know.
    pub fn lose_answers(&self, n: usize) {
        self.failing.lock().unanswered = n;
    }

    pub fn delay(&self, delay: Delay) {
        *self.delay.lock() = Some(delay);
    }

    pub fn no_delay(&self) {
        *self.delay.lock() = None;
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        Self { mvcc: Arc::new(Mvcc::new(limits)), faults: Arc::default(), writing: Mutex::new(()) }
    }

    pub fn faults(&self) -> Arc<Faults> {
        self.faults.clone()
    }

    /// Ends every watch with [`Error::Compacted`], as if it had fallen behind.
    pub fn drop_watches(&self) {
        self.mvcc.drop_watches();
    }

    async fn commit_later(&self, work: Work) -> Result<Outcome, Error> {
        let delay = self.faults.delay.lock().clone();
        if let Some(delay) = delay {
            delay().await;
        }
        self.commit_now(work)
    }

    fn commit_now(&self, work: Work) -> Result<Outcome, Error> {
        let refused = take_one(&mut self.faults.failing.lock().refused);
        if refused {
            return Err(Error::Io("a fault was injected before the write".into()));
        }
        let _writing = self.writing.lock();
        // Refuses when closed.
        self.mvcc.get(b"")?;
        let mut draft = self.mvcc.newest();
        let mut changes = Vec::new();
        let outcome = work.apply(&mut draft, &mut changes)?;
        if !changes.is_empty() {
            self.mvcc.publish(draft, changes);
        }
        if take_one(&mut self.faults.failing.lock().unanswered) {
            return Err(Error::Io("a fault was injected after the write".into()));
        }
        Ok(outcome)
    }
}

fn take_one(n: &mut usize) -> bool {
    let any = *n > 0;
    *n = n.saturating_sub(1);
    any
}

impl Store for Memory {
    fn revision(&self) -> Revision {
        self.mvcc.revision()
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        let entry = self.mvcc.get(key);
        Box::pin(async move { entry })
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        Box::pin(async move { self.mvcc.range(&range, revision, limit) })
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.commit_later(Work::Txn(txn)))
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(async move { self.mvcc.watch(range, after) })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.mvcc.compact(revision) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.mvcc.close() })
    }
}

impl LocalStore for Memory {
    fn transact(&self, transaction: Transaction) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(async move { self.commit_later(Work::Transaction(transaction)).await.map(Outcome::revision) })
    }

    fn view(&self, range: &Range, revision: Option<Revision>) -> Result<View, Error> {
        self.mvcc.view(range, revision)
    }

    fn oldest(&self) -> Revision {
        self.mvcc.oldest()
    }
}

#[cfg(test)]
mod tests;
