//! Revisioned key-value storage with watch: etcd's data model behind one trait.
//!
//! Every commit gets the next revision of one counter; a key's value carries the revision that created and that last
//! changed it. Only the API server speaks to a store.

pub mod backend;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod local;
mod mvcc;
pub mod registry;
mod snapshot;
mod window;
mod work;

use std::{
    future::Future,
    ops::{Bound, RangeBounds},
    pin::Pin,
    sync::Arc,
};

pub use backend::{embedded, memory};
use bytes::Bytes;
pub use local::{Body, Draft, LocalStore, Transaction, View};
pub use window::Limits;

pub type Revision = u64;
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One key at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Bytes,
    pub value: Bytes,
    pub create_revision: Revision,
    pub mod_revision: Revision,
    /// How often it was written since it was created, that included.
    pub version: u64,
    /// The lease that it ends with; 0: none.
    pub lease: i64,
    /// Why the value is not the one that was written: it is stored encrypted, and nothing decrypts it. The value then is as it is
    /// stored.
    pub unreadable: Option<Arc<str>>,
}

/// All comparisons hold, then all operations are done, or nothing is. Of several operations on one key the last counts.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    pub compares: Vec<Compare>,
    pub operations: Vec<Operation>,
}

/// `key` was last changed at `mod_revision`; 0 says it must not exist.
#[derive(Clone, Debug)]
pub struct Compare {
    pub key: Bytes,
    pub mod_revision: Revision,
}

#[derive(Clone, Debug)]
pub enum Operation {
    Put { key: Bytes, value: Bytes },
    Delete { key: Bytes },
}

/// What became of a transaction. A commit is durable before it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, at this revision. What changes nothing (deleting what is not there) takes no revision of its own and
    /// answers with the newest.
    Committed(Revision),
    /// A comparison failed; nothing was changed. The entry that stands there now, if any.
    Conflict(Option<Entry>),
}

impl Outcome {
    /// Of what was done, or of what stands in its way.
    pub(crate) fn revision(self) -> Revision {
        match self {
            Self::Committed(revision) => revision,
            Self::Conflict(entry) => entry.map_or(0, |it| it.mod_revision),
        }
    }
}

/// Keys from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Debug)]
pub struct Range {
    pub start: Bytes,
    pub end: Bound<Bytes>,
}

impl Range {
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        let mut end = start.to_vec();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return Self { start, end: Bound::Excluded(end.into()) };
            }
        }
        Self { start, end: Bound::Unbounded }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..]
            && match &self.end {
                Bound::Included(end) => key <= &end[..],
                Bound::Excluded(end) => key < &end[..],
                Bound::Unbounded => true,
            }
    }

    /// No key can be in it.
    pub fn is_empty(&self) -> bool {
        match &self.end {
            Bound::Included(end) => *end < self.start,
            Bound::Excluded(end) => *end <= self.start,
            Bound::Unbounded => false,
        }
    }

    /// Its bounds, as maps of keys take them; `None` where no key can be in it.
    pub(crate) fn bounds(&self) -> Option<impl RangeBounds<[u8]>> {
        let end = self.end.as_ref().map(|it| &it[..]);
        (!self.is_empty()).then_some((Bound::Included(&self.start[..]), end))
    }
}

/// The entries of a range at one revision, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// The store's revision the page was read at.
    pub revision: Revision,
    /// There are more keys in the range.
    pub more: bool,
}

/// One change, in commit order. Changes of one transaction share a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub revision: Revision,
    pub key: Bytes,
    /// The new entry; `None` for a deletion.
    pub entry: Option<Entry>,
    /// What stood there before this change, if anything.
    pub previous: Option<Entry>,
}

/// A stream of changes in batches, each in revision order. Dropping it ends the watch.
pub trait Changes: Send {
    /// The next changes. A transaction's changes are never split over two batches.
    ///
    /// # Errors
    /// [`Error::Compacted`] once the watch has fallen behind what the store keeps; [`Error::Closed`] at shutdown.
    /// Either is the end: the same answer comes again.
    ///
    /// Dropping the future before it is ready loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Change>, Error>>;

    /// As [`Changes::next`], without waiting; `None` where there is nothing yet.
    fn ready(&mut self) -> Option<Result<Vec<Change>, Error>>;

    /// Becomes ready when there may be more. What came since the last one was waited for counts.
    fn woken(&self) -> BoxFuture<'static, ()>;

    /// Up to this revision every change of the range has been given, where that is more than the last change says: the commits
    /// after it were of other keys. Only shared stores tell it.
    fn progress(&self) -> Option<Revision> {
        None
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The revision asked for is no longer kept.
    #[error("revision {asked} has been compacted, the oldest is {oldest}")]
    Compacted { asked: Revision, oldest: Revision },
    /// The revision asked for has not been reached.
    #[error("revision {asked} is in the future, the newest is {newest}")]
    Future { asked: Revision, newest: Revision },
    #[error("the store is closed")]
    Closed,
    /// The medium failed (disk full, I/O error). It is not known whether the write is durable.
    #[error("the store cannot write: {0}")]
    Io(String),
    /// What keeps the store does not answer, or takes no writes. Nothing was written.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    #[error("a transaction of {bytes} bytes is larger than the limit of {max}")]
    TooLarge { bytes: usize, max: usize },
    /// What is to be stored is to be encrypted, and the key for that is not to be had.
    #[error("unable to encrypt what is to be stored: {0}")]
    Encryption(String),
}

/// The disk that a store lies on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUse {
    /// By the store, with what it holds back.
    pub used: u64,
    /// To whoever writes there.
    pub available: u64,
    pub total: u64,
    /// The last write that needed more room did not get it.
    pub is_refused: bool,
    /// `total` is what etcd lets itself take (`--quota-backend-bytes`), and not the size of a disk.
    pub is_quota: bool,
}

impl DiskUse {
    /// What there is to say before writes are refused, or when they are.
    pub fn concern(&self) -> Option<String> {
        let mib = |bytes: u64| bytes >> 20;
        let what = if self.is_quota { "etcd's quota" } else { "its disk" };
        if self.is_refused && self.is_quota {
            return Some(format!(
                "{what} of {} MiB is full: what makes the data larger is refused, deletions are not",
                mib(self.total)
            ));
        }
        if self.is_refused {
            return Some(format!(
                "{what} is full ({} of {} MiB are free): what makes the data larger is refused, deletions are not",
                mib(self.available),
                mib(self.total)
            ));
        }
        let low = (self.total / LOW).min(ENOUGH.max(self.used.saturating_mul(4)));
        (self.available < low)
            .then(|| format!("{what} is nearly full: {} of {} MiB are free", mib(self.available), mib(self.total)))
    }
}

/// A disk is nearly full with less than such a part of it free: what a kubelet calls pressure.
const LOW: u64 = 10;

/// A store is never short with so many bytes free and four times what it holds: a tenth of a large disk is more than it ever needs.
const ENOUGH: u64 = 2 << 30;

/// One contract, many engines; `conformance` holds the suite that each must pass.
pub trait Store: Send + Sync + 'static {
    /// The newest committed revision, of a shared store the newest that is known here. A new store is at revision 1, as etcd is.
    fn revision(&self) -> Revision;

    /// Others write to it, too: what this process has seen of it is not known to be all, and what it forgets is decided
    /// among all of them.
    fn is_shared(&self) -> bool {
        false
    }

    /// The newest revision that anybody has committed when it is asked for.
    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        let revision = self.revision();
        Box::pin(async move { Ok(revision) })
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>>;

    /// At most `limit` entries (0: all) of a range, at `revision` (`None`: the newest).
    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>>;

    /// Answers after the commit is durable and every later read sees it. A transaction without operations is refused
    /// as a conflict or answered with the current revision. Dropping the future does not undo what it has begun.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Changes in a range after (not at) `revision`.
    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>>;

    /// Would the value that stands at `key` be stored in another form today, if it were written again unchanged?
    fn is_stale(&self, _key: &[u8]) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(false) })
    }

    /// Forgets history before `revision`; live keys stay, and so do reads at `revision` and watches after it.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>>;

    /// What keeps the next write from being durable, as far as that can be told without one.
    ///
    /// # Errors
    /// Writes are refused, with this error.
    fn writable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Writes are refused for good, since one failed half way: only a store that is opened anew knows what is durable.
    fn must_be_reopened(&self) -> bool {
        false
    }

    /// What it has of its disk; none where it has no disk of its own. Asks the system: not for every request.
    fn disk_use(&self) -> Option<DiskUse> {
        None
    }

    /// Ends every watch, finishes what is queued, and closes the files.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_disk_is_nearly_full_by_its_size_and_by_what_the_store_may_need() {
        let cases = [
            ("small, half free", 24 << 20, 1 << 20, 12 << 20, false),
            ("small, a twelfth free", 24 << 20, 1 << 20, 2 << 20, true),
            ("large, a fourteenth free, which is 19 GiB", 252 * GIB, 30 << 20, 19 * GIB, false),
            ("large, not two GiB free", 252 * GIB, 30 << 20, 2 * GIB - 1, true),
            ("large, and the store is a quarter of what is free", 252 * GIB, 4 * GIB, 15 * GIB, true),
        ];
        for (name, total, used, available, is_low) in cases {
            let disk = DiskUse { used, available, total, is_refused: false, is_quota: false };
            assert_eq!(disk.concern().is_some(), is_low, "{name}: {:?}", disk.concern());
        }
    }
}
