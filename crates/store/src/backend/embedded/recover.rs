//! From files back to memory: the newest checkpoint, then every change the logs have after it.
//!
//! The replayed changes are history too, so watches from before a restart go on where they were.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{
    OpenError,
    checkpoint::{self, delete_older},
    disk::{CHECKPOINT, Disk, LOG},
    frame::{Frames, HEADER, Header, LOG_MAGIC, LoggedChange, Next, Unreadable, decode_changes},
    log::Log,
};
use crate::{Change, Limits, Revision, snapshot::Snapshot, window::Window};

pub(super) struct Recovered {
    pub(super) newest: Snapshot,
    pub(super) window: Window,
    pub(super) log: Log,
}

pub(super) fn recover(disk: &Disk, has_begun: bool, history: Limits, ahead: u64) -> Result<Recovered, OpenError> {
    let failed = |cause| OpenError::Io { path: disk.dir().into(), cause };
    let checkpoints = disk.list(CHECKPOINT).map_err(failed)?;
    let newest = match checkpoints.last() {
        Some((_, path)) => needed(disk, path).map_err(Unreadable::Io).and_then(checkpoint::read).map_err(at(path))?,
        None => Snapshot::new(),
    };
    let begin = newest.revision;
    let mut replay = Replay { window: Window::new(begin, history), newest };

    // A crash may have come between a checkpoint and the deletion of what it replaces.
    delete_older(disk, begin).map_err(failed)?;
    let logs = used_logs(disk).map_err(failed)?;
    match logs.first() {
        None if checkpoints.is_empty() && !has_begun => {
            let log = Log::create(disk, begin, ahead).map_err(failed)?;
            return Ok(Recovered { newest: replay.newest, window: replay.window, log });
        }
        Some((first, _)) if *first == begin => {}
        _ => return Err(damaged(disk.dir(), format!("the log of what came after revision {begin} is missing"))),
    }

    let mut end = None;
    for (idx, (_, path)) in logs.iter().enumerate() {
        end = Some(replay.log(disk, path, idx + 1 == logs.len())?);
    }
    let (header, length) = end.expect("there is at least one log");
    let (_, path) = &logs[logs.len() - 1];
    let log = disk
        .open(path)
        .and_then(|file| Log::resume(file, header, length, ahead))
        .map_err(|cause| OpenError::Io { path: path.clone(), cause })?;
    Ok(Recovered { newest: replay.newest, window: replay.window, log })
}

fn needed(disk: &Disk, path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    disk.need(path, &file)?;
    Ok(file)
}

/// Without those that were begun but never written to: then the one before may have been gone on with.
fn used_logs(disk: &Disk) -> io::Result<Vec<(Revision, PathBuf)>> {
    let mut used = Vec::new();
    for (revision, path) in disk.list(LOG)? {
        if used.is_empty() || fs::metadata(&path)?.len() > HEADER as u64 {
            used.push((revision, path));
        } else {
            disk.remove(&path)?;
        }
    }
    Ok(used)
}

pub(super) fn at(path: &Path) -> impl FnOnce(Unreadable) -> OpenError + '_ {
    move |unreadable| match unreadable {
        Unreadable::Io(cause) => OpenError::Io { path: path.into(), cause },
        Unreadable::Damaged(reason) => damaged(path, reason),
    }
}

pub(super) fn damaged(file: &Path, reason: impl Into<String>) -> OpenError {
    OpenError::Damaged { file: file.into(), reason: reason.into() }
}

struct Replay {
    newest: Snapshot,
    window: Window,
}

impl Replay {
    /// Answers the log's header, and how long its sound part is.
    fn log(&mut self, disk: &Disk, path: &Path, is_last: bool) -> Result<(Header, u64), OpenError> {
        let mut frames = needed(disk, path)
            .and_then(|file| Ok((file.metadata()?.len(), file)))
            .map_err(Unreadable::Io)
            .and_then(|(length, file)| Frames::new(file, length, LOG_MAGIC))
            .map_err(at(path))?;
        if frames.header.revision != self.newest.revision {
            let (has, needs) = (frames.header.revision, self.newest.revision);
            return Err(damaged(path, format!("it goes on from revision {has} where {needs} was the last")));
        }
        loop {
            let sound = frames.sound;
            let next = frames.read_next().map_err(|error| at(path)(Unreadable::Io(error)))?;
            match next {
                Next::Payload(payload) => {
                    let written = decode_changes(payload)
                        .ok_or_else(|| damaged(path, format!("the frame at byte {sound} does not hold changes")))?;
                    self.changes(written).map_err(|reason| damaged(path, reason))?;
                }
                Next::End => return Ok((frames.header, sound)),
                // The write that a crash interrupted: nobody was told of it.
                Next::Broken { beyond: false } if is_last => {
                    tracing::info!(log = %path.display(), at = sound, "cutting off an unfinished write");
                    return Ok((frames.header, sound));
                }
                Next::Broken { .. } => {
                    let reason = format!("what follows byte {sound} is unreadable, and more was written after it");
                    return Err(damaged(path, reason));
                }
            }
        }
    }

    fn changes(&mut self, written: Vec<LoggedChange>) -> Result<(), String> {
        let mut changes = Vec::with_capacity(written.len());
        for LoggedChange { revision, key, entry } in written {
            self.check_order(revision, changes.last())?;
            let [previous, entry] = self.newest.replay(revision, &key, entry);
            changes.push(Change { revision, key, entry, previous });
        }
        self.window.extend(changes);
        Ok(())
    }

    /// Every transaction took the next revision, so a gap is a loss.
    fn check_order(&self, revision: Revision, before: Option<&Change>) -> Result<(), String> {
        let same_transaction = before.is_some_and(|it| it.revision == revision);
        if same_transaction || revision == self.newest.revision + 1 {
            return Ok(());
        }
        Err(format!("revision {revision} follows {}", self.newest.revision))
    }
}
