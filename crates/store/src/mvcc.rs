//! What every engine that keeps its keys in memory shares: the newest snapshot, the window of changes that led to it,
//! and the cursors of those who watch, behind one lock that is never held across I/O.

mod watch;

use std::{collections::BTreeMap, mem, sync::Arc};

use bytes::Bytes;
use parking_lot::RwLock;

use crate::{
    Change, Changes, Entry, Error, Limits, Page, Range, Revision,
    local::View,
    mvcc::watch::{Cursors, Watch},
    snapshot::Snapshot,
    window::Window,
};

pub(crate) struct Mvcc {
    state: RwLock<State>,
}

struct State {
    newest: Snapshot,
    window: Window,
    cursors: Cursors,
    closed: bool,
}

impl Mvcc {
    pub(crate) fn new(limits: Limits) -> Self {
        let newest = Snapshot::new();
        let window = Window::new(newest.revision, limits);
        Self::resume(newest, window)
    }

    pub(crate) fn resume(newest: Snapshot, window: Window) -> Self {
        Self { state: RwLock::new(State { newest, window, cursors: Cursors::default(), closed: false }) }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.state.read().newest.revision
    }

    pub(crate) fn newest(&self) -> Snapshot {
        self.state.read().newest.clone()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Entry>, Error> {
        let state = self.state.read();
        if state.closed { Err(Error::Closed) } else { Ok(state.newest.get(key).cloned()) }
    }

    pub(crate) fn range(&self, range: &Range, revision: Option<Revision>, limit: usize) -> Result<Page, Error> {
        Ok(self.read(range, revision)?.0.range(range, limit))
    }

    pub(crate) fn view(&self, range: &Range, revision: Option<Revision>) -> Result<View, Error> {
        let (snapshot, newest) = self.read(range, revision)?;
        Ok(View::new(snapshot, range.clone(), newest))
    }

    pub(crate) fn oldest(&self) -> Revision {
        self.state.read().window.floor()
    }

    /// A snapshot that is of `revision` within the range, and the newest revision.
    fn read(&self, range: &Range, revision: Option<Revision>) -> Result<(Snapshot, Revision), Error> {
        let (mut snapshot, undo) = {
            let state = self.state.read();
            let undo = match revision {
                Some(revision) => state.undo(range, revision)?,
                None if state.closed => return Err(Error::Closed),
                None => BTreeMap::new(),
            };
            (state.newest.clone(), undo)
        };
        let newest = snapshot.revision;
        for (key, entry) in undo {
            snapshot.set(&key, entry);
        }
        snapshot.revision = revision.unwrap_or(newest);
        Ok((snapshot, newest))
    }

    /// Makes durable changes visible, and wakes whom they concern.
    pub(crate) fn publish(&self, newest: Snapshot, changes: Vec<Change>) {
        let old = {
            let mut guard = self.state.write();
            let state = &mut *guard;
            state.cursors.notice(&changes);
            state.window.extend(changes);
            mem::replace(&mut state.newest, newest)
        };
        // Freed here: nobody waits for the lock meanwhile.
        drop(old);
    }

    pub(crate) fn watch(self: &Arc<Self>, range: Range, after: Revision) -> Result<Box<dyn Changes>, Error> {
        let (id, wake) = {
            let mut guard = self.state.write();
            let state = &mut *guard;
            state.check(after)?;
            let pending = state.window.next_match(&range, after);
            state.cursors.add(range, pending)
        };
        Ok(Box::new(Watch { mvcc: self.clone(), id, wake }))
    }

    pub(crate) fn take(&self, id: u64) -> Option<Result<Vec<Change>, Error>> {
        let mut guard = self.state.write();
        let state = &mut *guard;
        state.cursors.take(id, &state.window)
    }

    pub(crate) fn unwatch(&self, id: u64) {
        self.state.write().cursors.remove(id);
    }

    pub(crate) fn compact(&self, revision: Revision) -> Result<(), Error> {
        let mut state = self.state.write();
        match state.check(revision) {
            // Already done.
            Err(Error::Compacted { .. }) => return Ok(()),
            checked => checked?,
        }
        state.window.forget(revision);
        Ok(())
    }

    /// Every watch ends as if it had fallen behind.
    pub(crate) fn drop_watches(&self) {
        let mut state = self.state.write();
        let newest = state.newest.revision;
        state.cursors.end(&Error::Compacted { asked: newest, oldest: newest });
    }

    /// Watches still get what was committed, then end.
    pub(crate) fn close(&self) {
        let mut state = self.state.write();
        state.closed = true;
        state.cursors.end(&Error::Closed);
    }
}

impl State {
    fn check(&self, revision: Revision) -> Result<(), Error> {
        let (oldest, newest) = (self.window.floor(), self.newest.revision);
        if self.closed {
            Err(Error::Closed)
        } else if revision > newest {
            Err(Error::Future { asked: revision, newest })
        } else if revision < oldest {
            Err(Error::Compacted { asked: revision, oldest })
        } else {
            Ok(())
        }
    }

    /// What stood at `revision` for each key of a range that was changed since.
    fn undo(&self, range: &Range, revision: Revision) -> Result<BTreeMap<Bytes, Option<Entry>>, Error> {
        self.check(revision)?;
        let mut undo = BTreeMap::new();
        for change in self.window.after(revision).filter(|it| range.contains(&it.key)) {
            undo.entry(change.key.clone()).or_insert_with(|| change.previous.clone());
        }
        Ok(undo)
    }
}
