//! What the disk has left for volumes, snapshots and copies: what is free, less what the node keeps and what was promised to others.

use std::path::Path;

use super::{
    allowance::Amount,
    promises::Records,
    store::{ARRIVING, Store, children, make_folder},
    under_way::Making,
};
use crate::{Code, Fault, with_faults_named};

/// The node keeps one file of so many, as eviction does (`nodefs.inodesFree`).
const INODES_KEPT: u64 = 20;

/// What of a disk is not given to volumes: the larger of both. With less than that left Pods would be evicted
/// (`nodefs.available`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    pub bytes: u64,
    /// Of what is there for everybody, in thousandths of a percent.
    pub share: u64,
}

impl Reserve {
    pub(super) fn of(self, capacity: u64) -> u64 {
        let share = u128::from(capacity) * u128::from(self.share) / 100_000;
        self.bytes.max(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

impl Store {
    /// Promises the disk's room for a copy of what takes so much.
    pub(super) fn promise_copy(&self, there: Amount, making: &Making<'_>) -> Result<(), Fault> {
        let _turn = self.turn.lock();
        self.has_room(there.bytes.saturating_sub(making.bytes()))?;
        self.has_inodes(there.inodes)?;
        making.takes(there.bytes);
        Ok(())
    }

    pub(super) fn has_room(&self, bytes: u64) -> Result<(), Fault> {
        // What is no longer under way is a volume by then, so this is looked at first.
        let under_way = self.under_way.promised();
        // Where there is room even if nothing of what was promised is taken yet, no file need be looked at.
        if let Some(promised) = self.promises.at_most()
            && bytes <= self.left(promised.saturating_add(under_way))?
        {
            return Ok(());
        }
        let left = self.available()?;
        if bytes <= left {
            return Ok(());
        }
        let why = format!("not enough room: {bytes} bytes are asked for, {left} are left on this node");
        Err(Fault::new(Code::ResourceExhausted, why))
    }

    /// Does the disk have what is promised and not yet taken, and what the node keeps? For who takes it piece by piece: others write, too.
    pub(super) fn still_has_room(&self) -> Result<(), Fault> {
        self.has_inodes(0)?;
        let under_way = self.under_way.promised();
        let room = self.room()?;
        if self.promises.at_most().is_some_and(|it| it.saturating_add(under_way) <= room) {
            return Ok(());
        }
        let promised = self.not_taken().saturating_add(under_way);
        if promised <= room {
            return Ok(());
        }
        let why = format!("not enough room any more: {promised} bytes are promised, {room} are left on this node");
        Err(Fault::new(Code::ResourceExhausted, why))
    }

    /// Does the disk have so many files more, beside what the node keeps?
    fn has_inodes(&self, more: u64) -> Result<(), Fault> {
        make_folder(&self.folder)?;
        let stat = with_faults_named(rustix::fs::statvfs(&self.folder), "look at the disk")?;
        let left = stat.f_favail.saturating_sub(stat.f_files / INODES_KEPT);
        // Where there is no number of them, files take bytes alone.
        if stat.f_files == 0 || more < left {
            return Ok(());
        }
        let why = format!("not enough room: {more} files are asked for, {left} are left on this node");
        Err(Fault::new(Code::ResourceExhausted, why))
    }

    /// What can be promised: what is free, less what was promised and is not yet taken, less what the node keeps.
    pub(super) fn available(&self) -> Result<u64, Fault> {
        // As above.
        let under_way = self.under_way.promised();
        self.left(self.not_taken().saturating_add(under_way))
    }

    /// What of the promises to volumes and snapshots is not on the disk yet.
    fn not_taken(&self) -> u64 {
        self.promises.look(|known| self.found(known));
        // What is shared is taken by another as well, and taken once more when one of both writes to it.
        self.promises.not_taken(|it| self.taken(it).saturating_sub(it.shared))
    }

    /// Of the disk, less what the node keeps and what is promised.
    fn left(&self, promised: u64) -> Result<u64, Fault> {
        Ok(self.room()?.saturating_sub(promised))
    }

    /// Of the disk, less what the node keeps.
    fn room(&self) -> Result<u64, Fault> {
        make_folder(&self.folder)?;
        let stat = with_faults_named(rustix::fs::statvfs(&self.folder), "look at the disk")?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        // As eviction reckons: of what is there for everybody, without the blocks that are kept for root.
        let used = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize);
        let kept = self.reserve.of(used.saturating_add(free));
        Ok(free.saturating_sub(kept))
    }

    /// What the disk has, of what is not known the records.
    fn found(&self, known: &Records) -> Records {
        let names =
            |folder: &Path| children(folder).into_iter().filter_map(|it| it.file_name()?.to_str().map(str::to_owned));
        // What is on its way here is promised its place, too.
        let read = |it: &str| match it.ends_with(ARRIVING) {
            true => self.record_of(&self.folder.join(it), it).ok(),
            false => self.get(it).ok(),
        };
        let volume = |it: String| Some((known.volumes.get(&it).cloned().or_else(|| read(&it))?, it));
        let shared =
            |it: String| Some((known.shared.get(&it).copied().or_else(|| Some(self.kept(&it).ok()?.shared))?, it));
        Records {
            volumes: names(&self.folder).filter_map(volume).map(|(volume, name)| (name, volume)).collect(),
            shared: names(&self.snapshots).filter_map(shared).map(|(shared, name)| (name, shared)).collect(),
        }
    }
}
