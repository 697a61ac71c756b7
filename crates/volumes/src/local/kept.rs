//! The snapshots on disk: a folder for each, beside those of the volumes, made and removed as they are.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use corten_machine::write_whole;

use super::{
    store::{MAKING, Store, content_of, make_folder, remove, sync},
    under_way::Making,
    volume::{SnapshotRecord, Volume},
};
use crate::{Code, CreateSnapshot, Fault, records::name_of, with_faults_named};

const RECORD: &str = "snapshot.json";

impl Store {
    fn of_kept(&self, handle: &str) -> Result<PathBuf, Fault> {
        self.in_folder(&self.snapshots, handle).ok_or_else(|| kept_not_found(handle))
    }

    pub(super) fn kept(&self, handle: &str) -> Result<SnapshotRecord, Fault> {
        name_of(handle)?;
        let text = match fs::read(self.of_kept(handle)?.join(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(kept_not_found(handle)),
            other => with_faults_named(other, "read the snapshot's record")?,
        };
        let kept = serde_json::from_slice(&text).ok().and_then(|it| SnapshotRecord::read(handle, it));
        kept.ok_or_else(|| Fault::internal(format!("the record of snapshot {handle} cannot be read")))
    }

    /// The folder of a snapshot's data.
    pub(super) fn kept_folder(&self, handle: &str) -> Result<PathBuf, Fault> {
        self.of_kept(handle)
    }

    /// Keeps what the volume holds now; a snapshot of this name and volume is taken as it is.
    pub(super) fn keep(&self, request: &CreateSnapshot) -> Result<SnapshotRecord, Fault> {
        let CreateSnapshot { name, source, .. } = request;
        name_of(name)?;
        let folder = self.of_kept(name)?;
        match self.kept(name) {
            Ok(there) if there.source == *source => return Ok(there),
            Ok(there) => {
                let why = format!("snapshot {name} is there already, of volume {}", there.source);
                return Err(Fault::new(Code::AlreadyExists, why));
            }
            Err(fault) if fault.code == Code::NotFound => {}
            Err(fault) => return Err(fault),
        }
        let volume = self.get(source)?;
        let making = {
            let _turn = self.turn.lock();
            // What a folder takes is counted when nobody else has it in hand.
            let bytes = if volume.form.is_folder() { 0 } else { self.taken(&volume) };
            self.has_room(bytes)?;
            self.under_way.begin(&folder, bytes)?
        };
        let _hold = self.under_way.hold_alone(&self.of(source)?)?;
        self.stays(source)?;
        let work = self.snapshots.join(format!("{name}{MAKING}"));
        remove(&work)?;
        let made = self.fill_kept(&work, &volume.handle, &making);
        let (shared, created_at) = made.inspect_err(|_| drop(remove(&work)))?;
        let (handle, source) = (name.clone(), source.clone());
        let Volume { bytes, form, blank, grows, .. } = volume;
        let kept = SnapshotRecord { handle, source, bytes, form, blank, grows, shared, created_at };
        let text = serde_json::to_vec(&kept.written()).map_err(Fault::internal)?;
        with_faults_named(write_whole(&work.join(RECORD), 0o600, &text), "write the snapshot's record")?;
        with_faults_named(fs::rename(&work, &folder).and_then(|()| sync(&self.snapshots)), "make the snapshot")?;
        self.promises.keeps(&kept);
        Ok(kept)
    }

    fn fill_kept(&self, work: &Path, source: &str, making: &Making<'_>) -> Result<(u64, i64), Fault> {
        make_folder(&self.snapshots)?;
        make_folder(work)?;
        let volume = self.get(source)?;
        let mut at = SystemTime::UNIX_EPOCH;
        let shared = self.copy_volume(&volume, work, making, || at = SystemTime::now())?;
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        Ok((shared, i64::try_from(since).unwrap_or(i64::MAX)))
    }

    /// Removes it for good. Volumes that were made of it have all that they hold.
    pub(super) fn forget(&self, handle: &str) -> Result<(), Fault> {
        name_of(handle)?;
        let folder = self.of_kept(handle)?;
        let _hold = self.under_way.hold_alone(&folder)?;
        self.remove_whole(&folder, &self.snapshots, handle)?;
        self.promises.keeps_no(handle);
        Ok(())
    }

    /// Its file or folder, where that is there.
    pub(super) fn kept_content(&self, kept: &SnapshotRecord) -> Result<PathBuf, Fault> {
        let content = content_of(&self.of_kept(&kept.handle)?, kept.form);
        match fs::symlink_metadata(&content) {
            Ok(it) if it.is_dir() == kept.form.is_folder() && !it.is_symlink() => Ok(content),
            _ => Err(Fault::internal(format!("the data of snapshot {} is gone from this node's disk", kept.handle))),
        }
    }
}

fn kept_not_found(handle: &str) -> Fault {
    Fault::new(Code::NotFound, format!("snapshot {handle} not found"))
}
