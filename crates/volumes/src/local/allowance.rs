//! What the copy of a folder may take. Its Pods change it meanwhile: a file that is moved on again and again, ahead of the copy, is met
//! each time. So a copy ends at a bound, and where the disk has no room any more.

use std::{cell::Cell, io};

use super::copy::Progress;
use crate::{Code, Fault};

/// How often the disk is looked at.
const LOOK_BYTES: u64 = 64 << 20;
const LOOK_INODES: u64 = 1024;
/// Whoever holds little may have so much more when it is copied.
const MORE_BYTES: u64 = 16 << 20;
const MORE_INODES: u64 = 1024;

/// What of a disk something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

impl Amount {
    pub(super) const UNBOUNDED: Self = Self { bytes: u64::MAX, inodes: u64::MAX };

    /// What a copy may take of what takes so much when it begins: a tenth more.
    pub(super) fn of_copy(self) -> Self {
        let more = |it: u64, least: u64| it.saturating_add((it / 10).max(least));
        Self { bytes: more(self.bytes, MORE_BYTES), inodes: more(self.inodes, MORE_INODES) }
    }
}

pub(super) struct Allowance<'a> {
    pub(super) progress: &'a Progress,
    most: Amount,
    has_room: &'a dyn Fn() -> Result<(), Fault>,
    /// What was taken when the disk was last looked at.
    looked: Cell<Amount>,
}

impl<'a> Allowance<'a> {
    pub(super) fn new(progress: &'a Progress, most: Amount, has_room: &'a dyn Fn() -> Result<(), Fault>) -> Self {
        Self { progress, most, has_room, looked: Cell::default() }
    }

    /// One more file, folder or link is made.
    pub(super) fn makes_inode(&self) -> io::Result<()> {
        self.progress.makes_inode();
        self.holds(0)
    }

    /// Does it hold so many bytes more?
    ///
    /// # Errors
    /// A [`Fault`], `ResourceExhausted`.
    pub(super) fn holds(&self, more: u64) -> io::Result<()> {
        let bytes = self.progress.done().saturating_add(self.progress.shared()).saturating_add(more);
        let (taken, most) = (Amount { bytes, inodes: self.progress.inodes() }, self.most);
        if taken.bytes > most.bytes || taken.inodes > most.inodes {
            let why = format!(
                "the copy would take more than {} bytes or {} files, which is the volume's limit, or what it took at the begin and a \
                 tenth: while its pods move or write much, it cannot be copied",
                most.bytes, most.inodes
            );
            return Err(io::Error::other(Fault::new(Code::ResourceExhausted, why)));
        }
        let looked = self.looked.get();
        if taken.bytes - looked.bytes.min(taken.bytes) >= LOOK_BYTES || taken.inodes - looked.inodes >= LOOK_INODES {
            self.looked.set(taken);
            (self.has_room)().map_err(io::Error::other)?;
        }
        Ok(())
    }
}
