//! What one controller has not looked at yet of one table.

use std::task::Waker;

use corten_meta::ObjectMeta;
use corten_reconcile::{Object, Table};

/// Changes an inbox holds before it only says that everything may have changed.
const INBOX_MAX: usize = 4096;

/// A table after `n_lists` whole lists.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) table: Table,
    pub(crate) n_lists: u64,
    /// The others have gone on without it: it is not of the revision that is shown.
    pub(crate) is_behind: bool,
    /// Up to where it has come, where it is shown apart from the others.
    pub(crate) version: Option<u64>,
}

/// One key at which the table is another; at least one of both is there.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) old: Option<Object>,
    pub(crate) new: Option<Object>,
}

impl Change {
    pub(crate) fn meta(&self) -> &ObjectMeta {
        self.new.as_ref().or(self.old.as_ref()).expect("something is there, before or after").meta()
    }
}

/// What one controller has not looked at yet.
pub(super) struct Inbox {
    pub(super) changes: Vec<Change>,
    /// There were too many changes to keep.
    pub(super) is_everything: bool,
    pub(super) is_news: bool,
    pub(super) state: State,
    pub(super) waker: Option<Waker>,
}

/// What is new since the last look.
pub(crate) struct InboxChanges {
    pub(crate) state: State,
    /// `None`: anything may have changed.
    pub(crate) changes: Option<Vec<Change>>,
}

impl Inbox {
    pub(super) fn put(&mut self, changes: &[Change], state: &State) {
        if self.changes.len() + changes.len() > INBOX_MAX {
            self.is_everything = true;
            self.changes = Vec::new();
        }
        if !self.is_everything {
            self.changes.extend_from_slice(changes);
        }
        self.state = state.clone();
        self.is_news = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
