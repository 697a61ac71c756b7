//! What a volume holds, once more: by reference where the file system can (a reflink), else byte for byte.

use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{SeekFrom, ioctl_ficlone, seek},
    io::Errno,
};

use super::allowance::Allowance;
use crate::{Fault, with_faults_named};

/// How far a copy has come, in bytes.
#[derive(Debug, Default)]
pub(super) struct Progress {
    total: AtomicU64,
    done: AtomicU64,
    /// What needed no copying.
    shared: AtomicU64,
    inodes: AtomicU64,
}

impl Progress {
    pub(super) fn shared(&self) -> u64 {
        self.shared.load(Ordering::Relaxed)
    }

    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(super) fn inodes(&self) -> u64 {
        self.inodes.load(Ordering::Relaxed)
    }

    pub(super) fn makes_inode(&self) {
        self.inodes.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn copies(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn told(&self) -> String {
        let [done, total] = [&self.done, &self.total].map(|it| it.load(Ordering::Relaxed) >> 20);
        if total == 0 { "it has begun".to_owned() } else { format!("{done} of {total} MiB are copied") }
    }
}

const BUFFER_BYTES: usize = 1 << 20;

/// Copies a file's content into one that is empty, with its holes.
pub(super) fn file(from: &File, to: &File, allowance: &Allowance<'_>) -> io::Result<()> {
    let progress = allowance.progress;
    match ioctl_ficlone(to, from) {
        Ok(()) => {
            progress.shared.fetch_add(allocated(&to.metadata()?), Ordering::Relaxed);
            return allowance.holds(0);
        }
        // Another file system, one that cannot, or one of the two files is of a kind that cannot.
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let stat = from.metadata()?;
    progress.total.fetch_add(allocated(&stat), Ordering::Relaxed);
    let (length, mut at, mut buffer) = (stat.len(), 0, vec![0; BUFFER_BYTES]);
    to.set_len(length)?;
    while at < length {
        at = match seek(from, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // A hole up to the end.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(from, SeekFrom::Hole(at))?.min(length);
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
            let read = from.read_at(&mut buffer[..most], at)?;
            if read == 0 {
                // It was cut meanwhile.
                return Ok(());
            }
            allowance.holds(read as u64)?;
            to.write_all_at(&buffer[..read], at)?;
            at += read as u64;
            progress.copies(read as u64);
        }
    }
    Ok(())
}

/// How much of a file a copy would write: what is no hole. Of one that its file system presses together that is more than it takes.
pub(super) fn data_bytes(of: &File) -> io::Result<u64> {
    let (length, mut at, mut bytes) = (of.metadata()?.len(), 0, 0_u64);
    while at < length {
        at = match seek(of, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = match seek(of, SeekFrom::Hole(at)) {
            Ok(end) => end.min(length),
            // It was cut meanwhile.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        bytes = bytes.saturating_add(end.saturating_sub(at));
        at = end;
    }
    Ok(bytes)
}

/// Can a file beside this one share its blocks? Looked at by doing it.
pub(super) fn shares_blocks(file: &File, folder: &Path) -> Result<bool, Fault> {
    let try_out = || {
        let path = folder.join("try");
        let other = File::options().write(true).create(true).truncate(true).open(&path)?;
        let shares = ioctl_ficlone(&other, file).is_ok();
        std::fs::remove_file(path).map(|()| shares)
    };
    with_faults_named(try_out(), "try out whether the disk's file system shares blocks")
}

/// What of a disk a file takes, in bytes.
pub(super) fn allocated(stat: &std::fs::Metadata) -> u64 {
    stat.blocks().saturating_mul(512)
}
