//! A disk that fills up and fails on demand.

use std::{
    fs::{self, File},
    io,
    path::Path,
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst},
};

#[derive(Default)]
pub(in super::super) struct DiskFaults {
    full: AtomicBool,
    room: AtomicI64,
    sync_fails: AtomicBool,
    truncate_fails: AtomicBool,
    /// How much all files together may have; 0 is no bound.
    capacity: AtomicU64,
}

impl DiskFaults {
    /// So many bytes can still be written.
    pub(super) fn leave_room(&self, bytes: i64) {
        self.room.store(bytes, SeqCst);
        self.full.store(true, SeqCst);
    }

    pub(super) fn make_room(&self) {
        self.full.store(false, SeqCst);
    }

    /// The disk is so large, and nobody else uses it.
    pub(super) fn be_of(&self, bytes: u64) {
        self.capacity.store(bytes, SeqCst);
    }

    /// Others have taken all that was free.
    pub(super) fn be_filled(&self, dir: &Path) {
        self.be_of(used(dir).expect("a folder"));
    }

    /// May this file be so long?
    pub(in super::super) fn grow(&self, dir: &Path, file: &File, length: u64) -> io::Result<()> {
        let capacity = self.capacity.load(SeqCst);
        let growth = length.saturating_sub(file.metadata()?.len());
        if capacity == 0 || growth == 0 {
            return Ok(());
        }
        if used(dir)? + growth > capacity { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// None where there is no bound.
    pub(in super::super) fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        let capacity = self.capacity.load(SeqCst);
        Ok(if capacity == 0 { None } else { Some(capacity.saturating_sub(used(dir)?)) })
    }

    pub(super) fn fail_sync(&self, fails: bool) {
        self.sync_fails.store(fails, SeqCst);
    }

    pub(super) fn fail_truncate(&self, fails: bool) {
        self.truncate_fails.store(fails, SeqCst);
    }

    pub(in super::super) fn write(
        &self,
        bytes: &[u8],
        write_part: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.full.load(SeqCst) {
            return Ok(());
        }
        let length = i64::try_from(bytes.len()).expect("a length");
        let room = self.room.fetch_sub(length, SeqCst);
        if room >= length {
            return Ok(());
        }
        self.room.store(0, SeqCst);
        write_part(&bytes[..usize::try_from(room.max(0)).expect("not negative")])?;
        Err(io::ErrorKind::StorageFull.into())
    }

    pub(in super::super) fn sync(&self) -> io::Result<()> {
        fail_if(&self.sync_fails, "sync failed")
    }

    pub(in super::super) fn truncate(&self) -> io::Result<()> {
        fail_if(&self.truncate_fails, "truncate failed")
    }
}

fn used(dir: &Path) -> io::Result<u64> {
    let lengths = fs::read_dir(dir)?.map(|it| Ok(it?.metadata()?.len()));
    Ok(lengths.collect::<io::Result<Vec<_>>>()?.iter().sum())
}

fn fail_if(fails: &AtomicBool, message: &str) -> io::Result<()> {
    if fails.load(SeqCst) { Err(io::Error::other(message)) } else { Ok(()) }
}
