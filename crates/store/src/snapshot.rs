//! The live keys at one revision: a persistent map, so that a copy costs a reference count and never changes.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

use crate::{Change, Compare, Entry, Error, Operation, Outcome, Page, Range, Revision, Txn};

/// No transaction is larger; an engine may write one to its log in one piece.
const TXN_BYTES_MAX: usize = 64 << 20;

#[derive(Clone)]
pub(crate) struct Snapshot {
    map: OrdMap<Bytes, Arc<Entry>>,
    pub(crate) revision: Revision,
    /// Keys and values, without what the map itself needs.
    pub(crate) bytes: u64,
}

impl Snapshot {
    /// A new store is at revision 1, as etcd is.
    pub(crate) fn new() -> Self {
        Self { map: OrdMap::new(), revision: 1, bytes: 0 }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.map.get(key).map(|it| &**it)
    }

    pub(crate) fn n_entries(&self) -> u64 {
        self.map.len() as u64
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.map.values().map(|it| &**it)
    }

    pub(crate) fn range(&self, range: &Range, limit: usize) -> Page {
        let mut page = Page { entries: Vec::new(), revision: self.revision, more: false };
        for entry in self.within(range) {
            if limit > 0 && page.entries.len() == limit {
                page.more = true;
                break;
            }
            page.entries.push(entry.clone());
        }
        page
    }

    pub(crate) fn within(&self, range: &Range) -> impl DoubleEndedIterator<Item = &Entry> {
        let found = range.bounds().map(|it| self.map.range::<_, [u8]>(it));
        found.into_iter().flatten().map(|(_, entry)| &**entry)
    }

    /// Does a transaction, or nothing if a comparison fails. What it changed is appended to `changes`.
    pub(crate) fn apply(&mut self, txn: Txn, changes: &mut Vec<Change>) -> Result<Outcome, Error> {
        let bytes = txn.size();
        if bytes > TXN_BYTES_MAX {
            return Err(Error::TooLarge { bytes, max: TXN_BYTES_MAX });
        }
        if let Some(failed) = txn.compares.iter().find(|it| !self.holds(it)) {
            return Ok(Outcome::Conflict(self.get(&failed.key).cloned()));
        }

        let revision = self.revision + 1;
        let n_before = changes.len();
        for operation in txn.operations {
            self.plan(operation, revision, changes, n_before);
        }
        // What was not there before and is not there after has not changed.
        let mut n_own = 0;
        changes.retain(|it| {
            n_own += 1;
            n_own <= n_before || it.entry.is_some() || it.previous.is_some()
        });
        for change in &changes[n_before..] {
            self.set(&change.key, change.entry.clone());
        }
        if changes.len() > n_before {
            self.revision = revision;
        }
        Ok(Outcome::Committed(self.revision))
    }

    fn holds(&self, compare: &Compare) -> bool {
        self.get(&compare.key).map_or(0, |it| it.mod_revision) == compare.mod_revision
    }

    fn plan(&self, operation: Operation, revision: Revision, changes: &mut Vec<Change>, n_before: usize) {
        let (key, value) = match operation {
            Operation::Put { key, value } => (key, Some(value)),
            Operation::Delete { key } => (key, None),
        };
        let previous = self.get(&key).cloned();
        let entry = value.map(|value| Entry::after(previous.as_ref(), key.clone(), value, revision, 0));
        match changes[n_before..].iter_mut().find(|it| it.key == key) {
            Some(earlier) => earlier.entry = entry,
            None => changes.push(Change { revision, key, entry, previous }),
        }
    }

    /// Takes over a change of the log, which does not say how often a key has been written. Answers what stood there, and what
    /// stands there now.
    pub(crate) fn replay(&mut self, revision: Revision, key: &Bytes, entry: Option<Entry>) -> [Option<Entry>; 2] {
        let previous = self.get(key).cloned();
        let version = |it: &Entry| match &previous {
            Some(previous) if it.create_revision < revision => previous.version + 1,
            _ => 1,
        };
        let entry = entry.map(|it| Entry { version: version(&it), ..it });
        self.set(key, entry.clone());
        self.revision = revision;
        [previous, entry]
    }

    /// Takes over a change that has been made already: from the log, or to go back to what stood there before.
    pub(crate) fn set(&mut self, key: &Bytes, entry: Option<Entry>) {
        let after = entry.as_ref().map_or(0, Entry::size);
        let before = match entry {
            Some(entry) => self.map.insert(key.clone(), Arc::new(entry)),
            None => self.map.remove(&key[..]),
        };
        self.bytes = self.bytes + after as u64 - before.map_or(0, |it| it.size()) as u64;
    }
}

impl Txn {
    pub(crate) fn size(&self) -> usize {
        self.operations.iter().map(Operation::size).sum()
    }
}

impl Operation {
    fn size(&self) -> usize {
        match self {
            Self::Put { key, value } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

impl Entry {
    /// What is put where `before` stands.
    pub(crate) fn after(before: Option<&Self>, key: Bytes, value: Bytes, revision: Revision, lease: i64) -> Self {
        let (create_revision, version) = before.map_or((revision, 1), |it| (it.create_revision, it.version + 1));
        Self { key, value, create_revision, mod_revision: revision, version, lease, unreadable: None }
    }

    pub(crate) fn size(&self) -> usize {
        self.key.len() + self.value.len()
    }
}
