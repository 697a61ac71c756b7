//! Room on the disk that is held back for a checkpoint.
//!
//! On a full disk only a checkpoint makes room: it is as large as what lives, and what was deleted or replaced goes with the
//! old log. So that much, and some for the log, is allocated to a file of its own, before what lives may grow into it. When the
//! disk is full the checkpoint is written into that very file, and the room held back again:
//!
//! ```text
//! before    [ checkpoint, log with what is dead | reserve >= what lives ]   full
//! after     [ checkpoint of what lives | reserve ]   and what was dead is free
//! ```

use std::io;

use super::{
    checkpoint,
    disk::{Disk, DiskFile},
};
use crate::snapshot::Snapshot;

/// Grown by no less, so that it is seldom grown.
const STEP: u64 = 1 << 20;
/// Held back beyond a checkpoint, for the log: what deletes something must be written, too, until it is worth a checkpoint.
const SLACK: u64 = 1 << 20;
const SLACK_PART: u64 = 8;
/// Never given to the log: the header of the next one, and what a file system needs for itself.
const SLACK_MIN: u64 = 256 << 10;
/// Given to the log at a time.
const PIECE: u64 = 64 << 10;

pub(super) struct Reserve {
    disk: Disk,
    /// None where the file system cannot hold room back.
    file: Option<DiskFile>,
    held: u64,
}

impl Reserve {
    /// Goes on with what is held already, and holds back what is needed for `newest`, as far as there is room.
    pub(super) fn open(disk: &Disk, newest: &Snapshot) -> Self {
        let mut this = Self { disk: disk.clone(), file: None, held: 0 };
        this.open_file();
        // A copy of the folder may have made it sparse: then it holds nothing.
        if let Some(file) = this.file.as_ref().filter(|_| this.held > 0)
            && file.allocate(0, this.held).is_err()
        {
            this.cut(0);
        }
        this.hold_what_there_is(newest);
        this
    }

    fn open_file(&mut self) {
        let opened = self.disk.open_reserve().and_then(|file| Ok((file.length()?, file)));
        (self.file, self.held) = match opened {
            Ok((held, file)) => (Some(file), held),
            Err(error) => {
                tracing::warn!(%error, "no room can be held back for checkpoints");
                (None, 0)
            }
        };
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

    /// Is there room for a checkpoint of it, though not for all that should be held back?
    pub(super) fn covers(&self, wanted: &Snapshot) -> bool {
        self.file.is_none() || self.held >= least(wanted)
    }

    fn hold_what_there_is(&mut self, newest: &Snapshot) {
        if let Err(error) = self.hold(newest) {
            tracing::warn!(%error, "the disk has no room for a checkpoint: only what makes the data smaller is written");
            let free = self.disk.free().unwrap_or(0);
            let most = (self.held + free).min(needed(newest)) / PIECE * PIECE;
            if most > self.held {
                // Others may have been faster; then it stays as it was.
                let _ = self.grow(most);
            }
        }
        // Of a store that has shrunk.
        let ample = (needed(newest) * 2).next_multiple_of(STEP);
        if self.held > ample * 2 {
            self.cut(ample);
        }
    }

    fn grow(&mut self, to: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        // Trying would take all there is from others, for a moment.
        if self.disk.free().is_ok_and(|free| free < to.saturating_sub(self.held)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
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
                if error.kind() == io::ErrorKind::Unsupported {
                    self.cut(0);
                    self.file = None;
                }
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

    /// Writes a checkpoint into the very room that is held, so that nobody else takes it meanwhile, and holds back what the
    /// next one needs.
    pub(super) fn write_checkpoint(&mut self, newest: &Snapshot) -> io::Result<()> {
        self.file = None;
        let written = checkpoint::write_into_reserve(&self.disk, newest);
        self.open_file();
        self.hold_what_there_is(newest);
        written
    }

    /// Gives the log some of what is held back beyond a checkpoint of `wanted`. Was there any?
    pub(super) fn yield_to_log(&mut self, wanted: &Snapshot) -> bool {
        let to = self.held.saturating_sub(PIECE);
        if self.file.is_none() || to < least(wanted) {
            return false;
        }
        self.cut(to);
        self.held == to
    }
}

/// What a checkpoint of it takes at most, and the slack.
fn needed(snapshot: &Snapshot) -> u64 {
    checkpoint::size_max(snapshot) + SLACK + snapshot.bytes / SLACK_PART
}

fn least(snapshot: &Snapshot) -> u64 {
    checkpoint::size_max(snapshot) + SLACK_MIN
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
