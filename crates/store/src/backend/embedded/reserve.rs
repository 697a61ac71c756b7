//! Room on the disk that is held back for a checkpoint.
//!
//! On a full disk only a checkpoint makes room: it is as large as what lives, and what was deleted or replaced goes with the
//! old log. So that much, and some for the log, is allocated to a file of its own, before what lives may grow into it. When the
//! disk is full the file is emptied, the checkpoint written into its place, and the room held back again:
//!
//! ```text
//! before    [ checkpoint, log with what is dead | reserve >= what lives ]   full
//! after     [ checkpoint of what lives | reserve ]   and what was dead is free
//! ```

use std::io;

use super::disk::{Disk, DiskFile};
use crate::snapshot::Snapshot;

/// Grown by no less, so that it is seldom grown.
const STEP: u64 = 1 << 20;
/// Held back beyond a checkpoint, for the log: what deletes something must be written, too.
const SLACK: u64 = 1 << 20;
/// Never given to the log: the header of the next one, and what a file system needs for itself.
const SLACK_MIN: u64 = 256 << 10;
/// Given to the log at a time.
const PIECE: u64 = 64 << 10;

pub(super) struct Reserve {
    /// None where the file system cannot hold room back.
    file: Option<DiskFile>,
    held: u64,
}

impl Reserve {
    /// Goes on with what is held already, and holds back what is needed for `newest`, as far as there is room.
    pub(super) fn open(disk: &Disk, newest: &Snapshot) -> Self {
        let opened = disk.open_reserve().and_then(|file| Ok((file.length()?, file)));
        let mut this = match opened {
            Ok((held, file)) => Self { file: Some(file), held },
            Err(error) => {
                tracing::warn!(%error, "no room can be held back for checkpoints");
                Self { file: None, held: 0 }
            }
        };
        this.hold_what_there_is(newest);
        this
    }

    /// Holds back enough for `wanted`; nothing to do most of the time.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn hold(&mut self, wanted: &Snapshot) -> io::Result<()> {
        let needed = needed(wanted);
        if self.file.is_none() || self.held >= needed {
            return Ok(());
        }
        let ample = (needed + needed / 8).next_multiple_of(STEP);
        match self.grow(ample) {
            Err(error) if is_full(&error) => self.grow(needed),
            grown => grown,
        }
    }

    fn hold_what_there_is(&mut self, newest: &Snapshot) {
        if let Err(error) = self.hold(newest) {
            tracing::warn!(%error, "the disk has no room for a checkpoint: only what makes the data smaller is written");
        }
        // Of a store that has shrunk.
        let ample = (needed(newest) * 2).next_multiple_of(STEP);
        if self.held > ample * 2 {
            self.cut(ample);
        }
    }

    fn grow(&mut self, to: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        match file.allocate(0, to) {
            Ok(()) => {
                self.held = to;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                // What was allocated before it failed shall not stay.
                self.cut(self.held);
                Err(error)
            }
            Err(error) => {
                tracing::warn!(%error, "no room can be held back for checkpoints");
                self.file = None;
                Ok(())
            }
        }
    }

    fn cut(&mut self, to: u64) {
        let Some(file) = &self.file else { return };
        match file.truncate(to) {
            Ok(()) => self.held = to,
            Err(error) => tracing::warn!(%error, "cannot give back the room that was held back for a checkpoint"),
        }
    }

    /// Frees all of it while `checkpoint` is written, and holds back what the next one needs.
    pub(super) fn lend(&mut self, newest: &Snapshot, checkpoint: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.cut(0);
        let written = checkpoint();
        self.hold_what_there_is(newest);
        written
    }

    /// Gives the log some of what is held back beyond the next checkpoint. Was there any?
    pub(super) fn yield_to_log(&mut self, newest: &Snapshot) -> bool {
        let least = needed(newest) - SLACK + SLACK_MIN;
        let to = self.held.saturating_sub(PIECE);
        if self.file.is_none() || to < least {
            return false;
        }
        self.cut(to);
        self.held == to
    }
}

/// What a checkpoint of it takes at most, and the slack.
fn needed(snapshot: &Snapshot) -> u64 {
    super::checkpoint::size_max(snapshot) + SLACK
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
