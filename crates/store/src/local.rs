//! Stores that one process alone keeps, in its memory: a transaction may read before it decides what to write, and nothing else is
//! written meanwhile.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use bytes::Bytes;

use crate::{BoxFuture, Change, Entry, Error, Outcome, Range, Revision, Store, snapshot::Snapshot};

/// What a transaction does with the draft that it is given. It may be called again with another draft where the first was not
/// written; after `Break` nothing of it is.
pub type Body = Arc<dyn Fn(&mut Draft<'_>) -> ControlFlow<()> + Send + Sync>;

/// A transaction that reads what it is about.
#[derive(Clone)]
pub struct Transaction {
    /// About so many bytes of keys and values are written.
    pub bytes: usize,
    pub body: Body,
}

impl Transaction {
    /// Does it, or nothing where it gives up.
    pub(crate) fn apply(&self, snapshot: &mut Snapshot, changes: &mut Vec<Change>) -> Outcome {
        let (before, n_before) = (snapshot.clone(), changes.len());
        let mut draft = Draft::new(snapshot, changes);
        match (self.body)(&mut draft) {
            ControlFlow::Continue(()) => draft.end(),
            ControlFlow::Break(()) => {
                changes.truncate(n_before);
                *snapshot = before;
            }
        }
        Outcome::Committed(snapshot.revision)
    }
}

/// What [`Store`] does not say of a store that is in this process.
pub trait LocalStore: Store {
    /// Answers after what is written is durable: the revision it was written at, or the newest where nothing was.
    fn transact(&self, transaction: Transaction) -> BoxFuture<'_, Result<Revision, Error>>;

    /// A range at one revision (`None`: the newest), which does not change any more. Copies nothing of what is the newest.
    ///
    /// # Errors
    /// [`Error::Compacted`], [`Error::Future`], [`Error::Closed`].
    fn view(&self, range: &Range, revision: Option<Revision>) -> Result<View, Error>;

    /// The oldest revision that is kept.
    fn oldest(&self) -> Revision;
}

/// The keys of a range at one revision.
pub struct View {
    snapshot: Snapshot,
    range: Range,
    newest: Revision,
}

impl View {
    pub(crate) fn new(snapshot: Snapshot, range: Range, newest: Revision) -> Self {
        Self { snapshot, range, newest }
    }

    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.snapshot.within(&self.range)
    }

    /// One of the range.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.snapshot.get(key)
    }

    pub fn revision(&self) -> Revision {
        self.snapshot.revision
    }

    /// The store's newest revision when this was read.
    pub fn newest(&self) -> Revision {
        self.newest
    }
}

/// A transaction under way: it reads what it has written.
pub struct Draft<'a> {
    snapshot: &'a mut Snapshot,
    /// The revision of what is written.
    revision: Revision,
    changes: &'a mut Vec<Change>,
    /// How many of them are of other transactions.
    n_before: usize,
    /// Where the change of each key that this transaction has written lies.
    own: HashMap<Bytes, usize>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(snapshot: &'a mut Snapshot, changes: &'a mut Vec<Change>) -> Self {
        let (revision, n_before) = (snapshot.revision + 1, changes.len());
        Self { snapshot, revision, changes, n_before, own: HashMap::new() }
    }

    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.snapshot.get(key)
    }

    pub fn entries(&self, range: &Range) -> impl DoubleEndedIterator<Item = &Entry> {
        self.snapshot.within(range)
    }

    /// The newest revision; with something written it is this transaction's own.
    pub fn revision(&self) -> Revision {
        if self.has_written() { self.revision } else { self.snapshot.revision }
    }

    pub fn has_written(&self) -> bool {
        self.changes.len() > self.n_before
    }

    /// Answers what stood there before.
    pub fn put(&mut self, key: Bytes, value: Bytes, lease: i64) -> Option<Entry> {
        let before = self.snapshot.get(&key).cloned();
        let entry = Entry::after(before.as_ref(), key.clone(), value, self.revision, lease);
        self.note(key, Some(entry), before.clone());
        before
    }

    /// Answers what stood there before.
    pub fn delete(&mut self, key: &Bytes) -> Option<Entry> {
        let before = self.snapshot.get(key).cloned()?;
        self.note(key.clone(), None, Some(before.clone()));
        Some(before)
    }

    fn note(&mut self, key: Bytes, entry: Option<Entry>, before: Option<Entry>) {
        self.snapshot.set(&key, entry.clone());
        if let Some(earlier) = self.own.get(&key) {
            self.changes[*earlier].entry = entry;
            return;
        }
        self.own.insert(key.clone(), self.changes.len());
        self.changes.push(Change { revision: self.revision, key, entry, previous: before });
    }

    /// Takes the revision, where something was written.
    pub(crate) fn end(self) {
        let mut n_own = 0;
        // What was not there before and is not there after has not changed.
        self.changes.retain(|it| {
            n_own += 1;
            n_own <= self.n_before || it.entry.is_some() || it.previous.is_some()
        });
        if self.changes.len() > self.n_before {
            self.snapshot.revision = self.revision;
        }
    }
}
