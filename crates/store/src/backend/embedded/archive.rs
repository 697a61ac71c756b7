//! A copy of all live keys at one revision, in a file of its own: taken while the store is open, and made a store again.
//!
//! The file has the format of a checkpoint. What was changed after the newest checkpoint is in the logs, so a copy can be taken
//! at any revision from there on.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    thread,
    time::Duration,
};

use crc32fast::Hasher;

use super::{
    BEGUN, OpenError, RESTORING, checkpoint,
    disk::{CHECKPOINT, Disk, LOG},
    frame::{Frames, LOG_MAGIC, Next, Unreadable, decode_changes},
    log::Log,
    recover::{at, damaged},
};
use crate::{Entry, Revision, snapshot::Snapshot};

/// A store that is written to gives files up for new ones: then all is read again.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

pub struct Archive(pub(super) Snapshot);

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Unreadable(#[from] OpenError),
    #[error("{} holds no store", dir.display())]
    NoStore { dir: PathBuf },
    #[error("revision {asked} is not there: the store has those from {oldest} to {newest}")]
    NoRevision { asked: Revision, oldest: Revision, newest: Revision },
    #[error("{} is there already", path.display())]
    Exists { path: PathBuf },
    #[error("{}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

impl Archive {
    /// What a store's folder holds, at `revision` or the newest. Another process may have the store open and write to it: only
    /// what is durable is read.
    ///
    /// # Errors
    /// There is no store, it is damaged, or the revision is older than its newest checkpoint or not reached yet.
    pub fn of_store(dir: &Path, revision: Option<Revision>) -> Result<Self, ArchiveError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match read_once(dir, revision) {
                Err(ArchiveError::Unreadable(_)) if tries < TRIES => thread::park_timeout(PAUSE),
                done => return done,
            }
        }
    }

    /// What a store's folder holds that no process has open, and that none opens meanwhile.
    ///
    /// # Errors
    /// As of [`Archive::of_store`]; or it is open.
    pub fn of_closed_store(dir: &Path) -> Result<Self, ArchiveError> {
        if !dir.join("lock").exists() {
            return Err(ArchiveError::NoStore { dir: dir.into() });
        }
        let _lock = super::lock(&Disk::new(dir))?;
        read_once(dir, None)
    }

    /// All keys of another store at one revision.
    pub fn of_entries(revision: Revision, entries: Vec<Entry>) -> Self {
        let mut snapshot = Snapshot::new();
        snapshot.revision = revision;
        for entry in entries {
            snapshot.set(&entry.key.clone(), Some(entry));
        }
        Self(snapshot)
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.entries()
    }

    /// Reads a file that [`Archive::save`] wrote.
    ///
    /// # Errors
    /// It cannot be read, is something else, or is damaged.
    pub fn of_file(path: &Path) -> Result<Self, ArchiveError> {
        let read = File::open(path).map_err(Unreadable::Io).and_then(checkpoint::read).map_err(at(path))?;
        Ok(Self(read))
    }

    /// Writes it into a new file, which is whole and durable under its name, or not there. Only its owner may read it: there are
    /// secrets in it.
    ///
    /// # Errors
    /// There is such a file already, or it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ArchiveError> {
        let failed = |cause| ArchiveError::Io { path: path.into(), cause };
        if path.exists() {
            return Err(ArchiveError::Exists { path: path.into() });
        }
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        // One that is left over, or that somebody else has laid there: it is not written to.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let written = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| {
                checkpoint::write_to(&mut file, &self.0)?;
                file.sync_all()
            })
            // Fails where somebody else has made such a file meanwhile.
            .and_then(|()| fs::hard_link(&unfinished, path))
            .and_then(|()| File::open(folder)?.sync_all());
        // Whether it has another name now, or never will.
        let removed = fs::remove_file(&unfinished);
        written.and(removed).map_err(failed)
    }

    /// Makes a store of it in a folder that holds none. Its next revision is `bump` higher than it would be: what the cluster
    /// had seen of later revisions, which the copy does not have, is then behind it, and who watches from there is told to list
    /// again.
    ///
    /// # Errors
    /// There is a store already, or the disk fails: then the folder is as before. What an interrupted restore has left is no store: nobody
    /// opens it, and it is restored anew.
    pub fn restore(mut self, dir: &Path, bump: u64) -> Result<Revision, ArchiveError> {
        let disk = Disk::new(dir);
        let failed = |cause| ArchiveError::Io { path: dir.into(), cause };
        disk.create_dir().map_err(failed)?;
        let lock = super::lock(&disk)?;
        if !make_room(&disk, &lock).map_err(failed)? {
            return Err(ArchiveError::Exists { path: dir.into() });
        }
        self.0.revision = self.0.revision.saturating_add(bump).min(i64::MAX.unsigned_abs());
        let revision = self.0.revision;
        let made = say(&lock, RESTORING)
            .and_then(|()| disk.sync_dir())
            .and_then(|()| checkpoint::write(&disk, disk.begin(revision, CHECKPOINT), &self.0, &AtomicBool::new(false)))
            .and_then(|()| Log::create(&disk, revision, 0))
            .and_then(|_| say(&lock, BEGUN));
        if made.is_err() {
            disk.abandon(revision, LOG);
            disk.abandon(revision, CHECKPOINT);
            // Where this fails, too, the folder is known by its word.
            let _ = say(&lock, b"");
        }
        made.map(|()| revision).map_err(failed)
    }

    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    pub fn n_keys(&self) -> u64 {
        self.0.n_entries()
    }

    /// Of keys and values.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// The same for the same keys, values and revisions of each.
    pub fn hash(&self) -> u32 {
        let mut hasher = Hasher::new();
        for entry in self.0.entries() {
            for part in [&entry.key, &entry.value] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
            hasher.update(&entry.create_revision.to_le_bytes());
            hasher.update(&entry.mod_revision.to_le_bytes());
        }
        hasher.finalize()
    }
}

/// Is there no store, or only what an interrupted restore has left? That is removed.
fn make_room(disk: &Disk, lock: &File) -> io::Result<bool> {
    let files = || -> io::Result<Vec<_>> { Ok([disk.list(LOG)?, disk.list(CHECKPOINT)?].concat()) };
    if !disk.is_half_restored()? {
        return Ok(lock.metadata()?.len() == 0 && files()?.is_empty());
    }
    for (_, path) in files()? {
        disk.remove(&path)?;
    }
    Ok(true)
}

/// What is to be known of the folder at whatever moment the power fails: the new word begins otherwise than the old one.
fn say(lock: &File, word: &[u8]) -> io::Result<()> {
    lock.write_all_at(word, 0)?;
    lock.set_len(word.len() as u64)?;
    lock.sync_all()
}

fn read_once(dir: &Path, until: Option<Revision>) -> Result<Archive, ArchiveError> {
    let failed = |cause| ArchiveError::Io { path: dir.into(), cause };
    if Disk::new(dir).is_half_restored().map_err(failed)? {
        return Err(OpenError::HalfRestored { dir: dir.into() }.into());
    }
    let found = |kind| files(dir, kind).map_err(failed);
    // Logs first: one that is begun after this only goes on from the end of the last.
    let (logs, checkpoints) = (found(LOG)?, found(CHECKPOINT)?);
    if logs.is_empty() && checkpoints.is_empty() {
        return Err(ArchiveError::NoStore { dir: dir.into() });
    }
    let mut snapshot = match checkpoints.last() {
        Some((_, path)) => Archive::of_file(path)?.0,
        None => Snapshot::new(),
    };
    let oldest = snapshot.revision;
    let last = logs.len().wrapping_sub(1);
    for (idx, (begin, path)) in logs.iter().enumerate().filter(|it| it.1.0 >= oldest) {
        if *begin != snapshot.revision {
            let reason = format!("it goes on from revision {begin} where {} was the last", snapshot.revision);
            return Err(damaged(path, reason).into());
        }
        replay(&mut snapshot, path, idx == last, until.filter(|it| *it >= oldest))?;
        if until == Some(snapshot.revision) {
            break;
        }
    }
    match until {
        Some(asked) if asked != snapshot.revision => {
            Err(ArchiveError::NoRevision { asked, oldest, newest: snapshot.revision })
        }
        _ => Ok(Archive(snapshot)),
    }
}

/// Of a store that may be in use: nothing is removed.
fn files(dir: &Path, kind: &str) -> io::Result<Vec<(Revision, PathBuf)>> {
    let mut found = Vec::new();
    for file in fs::read_dir(dir)? {
        let path = file?.path();
        let is_of_kind = path.extension().is_some_and(|it| it == kind);
        if let Some(revision) = path.file_stem().and_then(|it| it.to_str()).and_then(|it| it.parse().ok())
            && is_of_kind
        {
            found.push((revision, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The changes of one log, up to `until`.
fn replay(snapshot: &mut Snapshot, path: &Path, is_last: bool, until: Option<Revision>) -> Result<(), OpenError> {
    let read = |cause| at(path)(Unreadable::Io(cause));
    let file = File::open(path).map_err(read)?;
    let length = file.metadata().map_err(read)?.len();
    // What its writer has not made durable yet, nobody was told of.
    file.sync_data().map_err(read)?;
    let mut frames = Frames::new(file, length, LOG_MAGIC).map_err(at(path))?;
    loop {
        let sound = frames.sound;
        let changes = match frames.read_next().map_err(read)? {
            Next::Payload(payload) => decode_changes(payload)
                .ok_or_else(|| damaged(path, format!("the frame at byte {sound} does not hold changes")))?,
            Next::End => return Ok(()),
            // A write under way, or one that a crash interrupted.
            Next::Broken { beyond: false } if is_last => return Ok(()),
            Next::Broken { .. } => {
                return Err(damaged(path, format!("what follows byte {sound} is unreadable")));
            }
        };
        for change in changes {
            if until.is_some_and(|it| change.revision > it) {
                return Ok(());
            }
            snapshot.replay(change.revision, &change.key, change.entry);
        }
    }
}
