//! The default engine: all live keys in memory, and on disk a log of what changed since the last checkpoint.
//!
//! ```text
//! DIR/lock                            held while open; not empty once there is a log: one that is lost is missed
//! DIR/<revision>.checkpoint           every live key at that revision
//! DIR/<revision>.log                  every change after that revision, in order
//! DIR/reserve                         room held back for the next checkpoint; empty of content
//! ```
//! One writes at a time. A thread takes all that is queued, tries it in order against a draft of the newest snapshot,
//! appends one frame, makes it durable with one `fdatasync`, and only then lets anyone see or be told of it. A caller who
//! has long been alone does that on the spot: two threads need not be woken for it. When the log has
//! outgrown the data a new one is begun and another thread writes a checkpoint, after which the old log is deleted. No
//! B-tree is needed on disk since nothing is ever read from it but at the start, whole and in order.

mod archive;
mod checkpoint;
mod contention;
mod disk;
mod frame;
mod log;
mod recover;
mod reserve;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

pub use archive::{Archive, ArchiveError};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use self::{
    contention::Contention,
    disk::Disk,
    writer::{Request, Writer},
};
use crate::{
    BoxFuture, Changes, DiskUse, Entry, Error, Limits, LocalStore, Outcome, Page, Range, Revision, Store, Transaction,
    Txn, View, mvcc::Mvcc, work::Work,
};

/// Stands in the lock of a store that has a log.
const BEGUN: &[u8] = b"begun\n";
/// Stands there while a copy is made a store again: what is there besides is not whole, and was never served.
const RESTORING: &[u8] = b"restoring\n";
/// A lock may outlive its holder for a moment: a process that is just being forked has a copy of every open file until it
/// runs its own program.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How much of the past is kept for watches and reads, in memory.
    pub history: Limits,
    /// A checkpoint is made when the log is larger than this and than the live data.
    pub log_bytes_min: u64,
    /// How far ahead the log is allocated.
    pub log_ahead: u64,
    /// Transactions that wait for the writer; further ones wait to be queued.
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { history: Limits::default(), log_bytes_min: 16 << 20, log_ahead: 4 << 20, queue: 1_024 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the store in {} is in use by another process", dir.display())]
    Locked { dir: PathBuf },
    /// Not the torn end that a crash leaves behind, which is repaired without a word: something that was answered is
    /// gone or altered.
    #[error("the store is damaged: {}: {reason}", file.display())]
    Damaged { file: PathBuf, reason: String },
    #[error(
        "the restore of the store in {} was interrupted, and nothing of it was served yet: restore it again \
         (corten snapshot restore), or remove that folder for a new cluster",
        dir.display()
    )]
    HalfRestored { dir: PathBuf },
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

pub struct Embedded {
    disk: Disk,
    mvcc: Arc<Mvcc>,
    writer: Arc<Mutex<Writer>>,
    crowd: Contention,
    requests: Mutex<Option<mpsc::Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Ready once the writer has closed its files.
    finished: tokio::sync::watch::Receiver<bool>,
}

impl Embedded {
    /// Opens the store in a directory, which is made if it is not there.
    ///
    /// # Errors
    /// If another process has it open, the disk fails, or what lies there cannot be what a store left behind.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_on(Disk::new(dir), options)
    }

    fn open_on(disk: Disk, options: Options) -> Result<Self, OpenError> {
        let lock = lock(&disk)?;
        let failed = |cause| OpenError::Io { path: disk.dir().into(), cause };
        if disk.is_half_restored().map_err(failed)? {
            return Err(OpenError::HalfRestored { dir: disk.dir().into() });
        }
        let has_begun = lock.metadata().map_err(failed)?.len() > 0;
        let recovered = recover::recover(&disk, has_begun, options.history, options.log_ahead)?;
        if !has_begun {
            // A full disk must not keep what is there from being read: the next start notes it.
            let _ = (&lock).write_all(BEGUN).and_then(|()| lock.sync_all());
        }
        let mvcc = Arc::new(Mvcc::resume(recovered.newest, recovered.window));

        let (requests, queue) = mpsc::channel(options.queue);
        let (finish, finished) = tokio::sync::watch::channel(false);
        let writer = Writer::new(mvcc.clone(), disk.clone(), recovered.log, options);
        let writer = Arc::new(Mutex::new(writer));
        let queued = writer.clone();
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || {
                writer::run(&queued, queue);
                drop(lock);
                finish.send_replace(true);
            })
            .map_err(|cause| OpenError::Io { path: disk.dir().into(), cause })?;
        let (requests, thread) = (Mutex::new(Some(requests)), Mutex::new(Some(thread)));
        Ok(Self { disk, mvcc, writer, crowd: Contention::default(), requests, thread, finished })
    }

    async fn commit_in_turn(&self, work: Work) -> Result<Outcome, Error> {
        // While it is held the writer is not finished.
        let requests = self.requests.lock().clone().ok_or(Error::Closed)?;
        let place = self.crowd.enter();
        if place.is_lonely() {
            // Others of the same task, who would come right behind, get the chance to be company.
            tokio::task::yield_now().await;
            if place.is_alone()
                && let Some(mut writer) = self.writer.try_lock()
                && let Some(outcome) = writer.commit_at_once(&work)
            {
                return outcome;
            }
        }
        let (answer, answered) = oneshot::channel();
        requests.send(Request { work, answer }).await.map_err(|_| Error::Closed)?;
        drop(requests);
        answered.await.map_err(|_| Error::Closed)?
    }

    fn join(&self) {
        // The writer ends once nobody can send to it any more.
        self.requests.lock().take();
        let thread = self.thread.lock().take();
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            tracing::error!("the store's writer panicked");
        }
    }
}

fn lock(disk: &Disk) -> Result<File, OpenError> {
    let failed = |cause| OpenError::Io { path: disk.dir().into(), cause };
    disk.create_dir().map_err(failed)?;
    let lock = disk.open_lock().map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(std::fs::TryLockError::WouldBlock) => thread::park_timeout(LOCK_PAUSE),
            Err(std::fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    Err(OpenError::Locked { dir: disk.dir().into() })
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.join();
        self.mvcc.close();
    }
}

impl Store for Embedded {
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
        Box::pin(self.commit_in_turn(Work::Txn(txn)))
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(async move { self.mvcc.watch(range, after) })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.mvcc.compact(revision) })
    }

    fn writable(&self) -> Result<(), Error> {
        // A writer at work finds out by itself.
        self.writer.try_lock().map_or(Ok(()), |writer| writer.check())
    }

    fn must_be_reopened(&self) -> bool {
        self.writer.try_lock().is_some_and(|it| it.must_be_reopened())
    }

    fn disk_use(&self) -> Option<DiskUse> {
        let is_refused = self.writer.try_lock().is_some_and(|it| it.is_tight());
        self.disk.disk_use(is_refused).ok()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.requests.lock().take();
            // An error says that the writer is gone, which is as good.
            let _ = self.finished.clone().wait_for(|it| *it).await;
            self.mvcc.close();
            self.join();
        })
    }
}

impl LocalStore for Embedded {
    fn transact(&self, transaction: Transaction) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(async move { self.commit_in_turn(Work::Transaction(transaction)).await.map(Outcome::revision) })
    }

    fn view(&self, range: &Range, revision: Option<Revision>) -> Result<View, Error> {
        self.mvcc.view(range, revision)
    }

    fn oldest(&self) -> Revision {
        self.mvcc.oldest()
    }
}
