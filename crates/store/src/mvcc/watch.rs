//! Watches are cursors into the window: an event is kept once however many watch it, and wakes only those it concerns.
//!
//! A cursor that waits for nothing has no place in the window, so a quiet range never falls behind, however much
//! happens elsewhere.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::Notify;

use crate::{BoxFuture, Change, Changes, Error, Range, Revision, mvcc::Mvcc, window::Window};

/// A batch ends with the transaction that reaches this many changes.
const BATCH_CHANGES: usize = 1_024;

pub(crate) struct Cursor {
    range: Range,
    /// The first change not delivered yet is of this revision; `None`: all that concern the range have been.
    pending: Option<Revision>,
    ended: Option<Error>,
    wake: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct Cursors {
    by_id: BTreeMap<u64, Cursor>,
    n_made: u64,
}

impl Cursors {
    pub(crate) fn add(&mut self, range: Range, pending: Option<Revision>) -> (u64, Arc<Notify>) {
        let wake = Arc::new(Notify::new());
        self.n_made += 1;
        self.by_id.insert(self.n_made, Cursor { range, pending, ended: None, wake: wake.clone() });
        (self.n_made, wake)
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.by_id.remove(&id);
    }

    /// Marks and wakes whom these changes concern.
    pub(crate) fn notice(&mut self, changes: &[Change]) {
        for cursor in self.by_id.values_mut().filter(|it| it.pending.is_none()) {
            if let Some(first) = changes.iter().find(|it| cursor.range.contains(&it.key)) {
                cursor.pending = Some(first.revision);
                cursor.wake.notify_one();
            }
        }
    }

    pub(crate) fn end(&mut self, error: &Error) {
        for cursor in self.by_id.values_mut() {
            cursor.ended = Some(error.clone());
            cursor.wake.notify_one();
        }
    }

    /// What is ready for a watch; `None` if it has to wait.
    pub(crate) fn take(&mut self, id: u64, window: &Window) -> Option<Result<Vec<Change>, Error>> {
        let cursor = self.by_id.get_mut(&id).expect("a cursor stays until its watch is dropped");
        match (cursor.pending, &cursor.ended) {
            (_, Some(error @ Error::Compacted { .. })) => Some(Err(error.clone())),
            (None, Some(error)) => Some(Err(error.clone())),
            (None, None) => None,
            (Some(pending), _) if pending <= window.floor() => {
                let error = Error::Compacted { asked: pending - 1, oldest: window.floor() };
                cursor.ended = Some(error.clone());
                Some(Err(error))
            }
            (Some(pending), _) => Some(Ok(cursor.batch(pending, window))),
        }
    }
}

impl Cursor {
    fn batch(&mut self, pending: Revision, window: &Window) -> Vec<Change> {
        let mut batch: Vec<Change> = Vec::new();
        self.pending = None;
        for change in window.after(pending - 1).filter(|it| self.range.contains(&it.key)) {
            let begins_transaction = batch.last().is_none_or(|it| it.revision < change.revision);
            if batch.len() >= BATCH_CHANGES && begins_transaction {
                self.pending = Some(change.revision);
                break;
            }
            batch.push(change.clone());
        }
        batch
    }
}

pub(crate) struct Watch {
    pub(crate) mvcc: Arc<Mvcc>,
    pub(crate) id: u64,
    pub(crate) wake: Arc<Notify>,
}

impl Changes for Watch {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Change>, Error>> {
        Box::pin(async move {
            loop {
                if let Some(ready) = self.ready() {
                    return ready;
                }
                self.wake.notified().await;
            }
        })
    }

    fn ready(&mut self) -> Option<Result<Vec<Change>, Error>> {
        self.mvcc.take(self.id)
    }

    fn woken(&self) -> BoxFuture<'static, ()> {
        let wake = self.wake.clone();
        Box::pin(async move { wake.notified().await })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.mvcc.unwatch(self.id);
    }
}
