//! The last changes, in commit order: one log that all watches read, and out of which the recent past is rebuilt.
//!
//! ```text
//! revision    5     6     6     7
//! change    [a=1] [b=1] [c=1] [-a]     floor = 4: a read at 4 or a watch after 4 is the oldest that can be answered
//! ```

use std::collections::VecDeque;

use crate::{Change, Entry, Range, Revision};

/// What a window keeps at most. At least the newest transaction stays.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub changes: usize,
    /// Keys and values, before and after each change.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { changes: 100_000, bytes: 128 << 20 }
    }
}

pub(crate) struct Window {
    changes: VecDeque<Change>,
    bytes: usize,
    limits: Limits,
    floor: Revision,
}

impl Window {
    pub(crate) fn new(floor: Revision, limits: Limits) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, limits, floor }
    }

    /// Everything after this revision is known.
    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    pub(crate) fn extend(&mut self, changes: Vec<Change>) {
        for change in changes {
            self.bytes += size(&change);
            self.changes.push_back(change);
        }
        while self.changes.len() > self.limits.changes || self.bytes > self.limits.bytes {
            let newest = self.changes.back().map_or(0, |it| it.revision);
            match self.changes.front().map(|it| it.revision) {
                Some(oldest) if oldest < newest => self.forget(oldest),
                _ => break,
            }
        }
    }

    /// Drops changes up to and including `revision`.
    pub(crate) fn forget(&mut self, revision: Revision) {
        while self.changes.front().is_some_and(|it| it.revision <= revision) {
            self.bytes -= self.changes.pop_front().as_ref().map_or(0, size);
        }
        self.floor = self.floor.max(revision);
    }

    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Change> {
        let first = self.changes.partition_point(|it| it.revision <= revision);
        self.changes.range(first..)
    }

    /// The first revision after `revision` that changed something in a range.
    pub(crate) fn next_match(&self, range: &Range, revision: Revision) -> Option<Revision> {
        self.after(revision).find(|it| range.contains(&it.key)).map(|it| it.revision)
    }
}

fn size(change: &Change) -> usize {
    change.key.len() + change.entry.as_ref().map_or(0, Entry::size) + change.previous.as_ref().map_or(0, Entry::size)
}
