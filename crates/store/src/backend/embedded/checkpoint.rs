//! Writes every live key to a new file, so that older logs can go.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use super::{
    disk::{CHECKPOINT, Disk, DiskFile, LOG},
    frame::{
        CHANGE, CHECKPOINT_MAGIC, FRAME, Frames, HEADER, Header, LoggedChange, Next, Unreadable, decode_changes,
        encode_entry, write_frame,
    },
    log::salt,
};
use crate::snapshot::Snapshot;

const CHUNK_BYTES: usize = 256 << 10;

/// A checkpoint being written by its own thread.
pub(super) struct RunningCheckpoint {
    thread: JoinHandle<()>,
    cancelled: Arc<AtomicBool>,
}

impl RunningCheckpoint {
    pub(super) fn start(disk: Disk, snapshot: Snapshot) -> io::Result<Self> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let stop = cancelled.clone();
        let thread = thread::Builder::new().name("store-checkpoint".into()).spawn(move || {
            let revision = snapshot.revision;
            let begun = disk.begin(revision, CHECKPOINT);
            match write(&disk, begun, &snapshot, &stop).and_then(|()| delete_older(&disk, revision)) {
                Ok(()) => tracing::debug!(revision, "wrote a checkpoint"),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => tracing::warn!(%error, "cannot write a checkpoint, the log goes on growing"),
            }
        })?;
        Ok(Self { thread, cancelled })
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Gives up what is not done yet: the logs still have all of it.
    pub(super) fn cancel(self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.join();
    }

    pub(super) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("writing a checkpoint panicked");
        }
    }
}

/// No checkpoint of it is larger.
pub(super) fn size_max(snapshot: &Snapshot) -> u64 {
    let n_frames = snapshot.bytes / CHUNK_BYTES as u64 + 2;
    HEADER as u64 + n_frames * FRAME as u64 + snapshot.bytes + snapshot.n_entries() * CHANGE as u64
}

/// Writes one on the spot into the room that is held back, and deletes what it replaces.
pub(super) fn write_into_reserve(disk: &Disk, snapshot: &Snapshot) -> io::Result<()> {
    let begun = disk.begin_in_reserve(snapshot.revision, CHECKPOINT);
    write(disk, begun, snapshot, &AtomicBool::new(false)).and_then(|()| delete_older(disk, snapshot.revision))
}

pub(super) fn write(
    disk: &Disk,
    begun: io::Result<DiskFile>,
    snapshot: &Snapshot,
    cancelled: &AtomicBool,
) -> io::Result<()> {
    let written = begun.and_then(|file| write_unfinished(disk, &file, snapshot, cancelled));
    if written.is_err() {
        disk.abandon(snapshot.revision, CHECKPOINT);
    }
    written
}

fn write_unfinished(disk: &Disk, file: &DiskFile, snapshot: &Snapshot, cancelled: &AtomicBool) -> io::Result<()> {
    let mut offset = 0;
    each_piece(snapshot, |piece| {
        if cancelled.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        file.write_at(piece, offset)?;
        offset += piece.len() as u64;
        Ok(())
    })?;
    // What was held back and not needed.
    file.truncate(offset)?;
    disk.finish(file, snapshot.revision, CHECKPOINT)
}

/// Writes the content of a checkpoint.
pub(super) fn write_to(out: &mut impl io::Write, snapshot: &Snapshot) -> io::Result<()> {
    each_piece(snapshot, |piece| out.write_all(piece))
}

/// The content of a checkpoint, piece by piece.
fn each_piece(snapshot: &Snapshot, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let header = Header::new(salt(), snapshot.revision);
    let mut buffer = header.encode(CHECKPOINT_MAGIC);
    let mut entries = snapshot.entries().peekable();
    loop {
        let last = entries.peek().is_none();
        write_frame(header.salt, &mut buffer, |out| {
            let start = out.len();
            while out.len() - start < CHUNK_BYTES
                && let Some(entry) = entries.next()
            {
                encode_entry(entry, out);
            }
        });
        write(&buffer)?;
        buffer.clear();
        if last {
            return Ok(());
        }
    }
}

/// Deletes what a durable checkpoint at `revision` has made superfluous.
pub(super) fn delete_older(disk: &Disk, revision: u64) -> io::Result<()> {
    for kind in [LOG, CHECKPOINT] {
        for (older, path) in disk.list(kind)? {
            if older < revision {
                disk.remove(&path)?;
            }
        }
    }
    disk.sync_dir()
}

/// Reads a checkpoint back.
pub(super) fn read(file: File) -> Result<Snapshot, Unreadable> {
    let length = file.metadata()?.len();
    let mut frames = Frames::new(file, length, CHECKPOINT_MAGIC)?;
    let mut snapshot = Snapshot::new();
    snapshot.revision = frames.header.revision;
    loop {
        // It got its name only when it was whole, so whatever is wrong with it is damage.
        let Next::Payload(payload) = frames.read_next()? else {
            return Err(Unreadable::Damaged(format!("what follows byte {} is unreadable", frames.sound)));
        };
        if payload.is_empty() {
            return Ok(snapshot);
        }
        let Some(entries) = decode_changes(payload) else {
            return Err(Unreadable::Damaged("a sound frame does not hold entries".into()));
        };
        for LoggedChange { key, entry, .. } in entries {
            snapshot.set(&key, entry);
        }
    }
}
