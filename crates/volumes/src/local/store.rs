//! The volumes on disk: a folder for each, with its record and its data.
//!
//! A volume is made beside its place and renamed when it is whole; it is renamed before it is removed. So whatever has a
//! volume's name is a whole volume, whenever the machine lost its power.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use corten_machine::{
    Layout, mounts,
    tree::{self, Bound},
    write_whole,
};
use parking_lot::Mutex;

use super::volume::{Form, Volume, Written};
use crate::{Code, Fault, loop_device, records::name_of, with_faults_named};

const RECORD: &str = "volume.json";
const DISK: &str = "disk.img";
const CONTENT: &str = "data";
/// Ends of the names of folders that are no volumes yet, or no more.
const MAKING: &str = ".making";
const DELETING: &str = ".deleting";
/// Removing a folder of millions of files takes its time; it is gone on with at the next try.
const REMOVE_PATIENCE: Duration = Duration::from_secs(90);

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

#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    reserve: Reserve,
    /// What is promised is reckoned and promised anew by one at a time.
    turn: Mutex<()>,
}

pub(super) fn folder(layout: &Layout) -> PathBuf {
    layout.data.join("volumes")
}

impl Store {
    pub(super) fn new(layout: &Layout, reserve: Reserve) -> Self {
        Self { folder: folder(layout), reserve, turn: Mutex::default() }
    }

    fn of(&self, handle: &str) -> Result<PathBuf, Fault> {
        match name_of(handle)? {
            it if it.ends_with(MAKING) || it.ends_with(DELETING) => Err(not_found(handle)),
            it => Ok(self.folder.join(it)),
        }
    }

    /// Where the file of a volume is, or would be.
    pub(super) fn disk(&self, handle: &str) -> Result<PathBuf, Fault> {
        Ok(self.of(handle)?.join(DISK))
    }

    pub(super) fn content(&self, handle: &str) -> Result<PathBuf, Fault> {
        let content = self.of(handle)?.join(CONTENT);
        match fs::symlink_metadata(&content) {
            Ok(it) if it.is_dir() => Ok(content),
            _ => Err(gone(handle)),
        }
    }

    /// The volume's file, which must be there and as large as it was made.
    pub(super) fn whole_disk(&self, volume: &Volume) -> Result<PathBuf, Fault> {
        let disk = self.disk(&volume.handle)?;
        match fs::symlink_metadata(&disk) {
            Ok(it) if it.is_file() && it.len() >= volume.bytes => Ok(disk),
            Ok(it) if it.is_file() => {
                let why =
                    format!("the file of volume {} has {} of its {} bytes", volume.handle, it.len(), volume.bytes);
                Err(Fault::internal(why))
            }
            _ => Err(gone(&volume.handle)),
        }
    }

    pub(super) fn get(&self, handle: &str) -> Result<Volume, Fault> {
        let folder = self.of(handle)?;
        let text = match fs::read(folder.join(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found(handle)),
            other => with_faults_named(other, "read the volume's record")?,
        };
        let written = serde_json::from_slice::<Written>(&text).ok();
        let volume = written.and_then(|it| Volume::read(handle, &it));
        volume.ok_or_else(|| Fault::internal(format!("the record of volume {handle} cannot be read")))
    }

    fn all(&self) -> Vec<Volume> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|it| self.get(it.file_name().to_str()?).ok()).collect()
    }

    /// Makes it; one of this name that is large enough is taken as it is.
    pub(super) fn create(&self, name: &str, required_bytes: u64, form: Form) -> Result<Volume, Fault> {
        let folder = self.of(name)?;
        let _turn = self.turn.lock();
        match self.get(name) {
            Ok(there) if there.form == form && there.bytes >= required_bytes => return Ok(there),
            Ok(_) => {
                let why = format!("volume {name} is there already, of another size or form");
                return Err(Fault::new(Code::AlreadyExists, why));
            }
            Err(fault) if fault.code == Code::NotFound => {}
            Err(fault) => return Err(fault),
        }
        let least = if let Form::FileSystem(kind) = form { kind.least_bytes() } else { 1 << 20 };
        let bytes = whole_blocks(required_bytes.max(least))?;
        self.has_room(bytes)?;
        let volume = Volume { handle: name.to_owned(), bytes, form, grows: false };
        let making = self.folder.join(format!("{name}{MAKING}"));
        remove(&making)?;
        let made = fill(&making, &volume);
        if let Err(fault) = made {
            let _ = remove(&making);
            return Err(fault);
        }
        with_faults_named(fs::rename(&making, &folder).and_then(|()| sync(&self.folder)), "make the volume")?;
        Ok(volume)
    }

    /// Removes it for good. One that is in use is not touched.
    pub(super) fn delete(&self, handle: &str) -> Result<(), Fault> {
        let folder = self.of(handle)?;
        if loop_device::of(&folder.join(DISK)).is_some() || !mounts::mounts_beneath(&folder).is_empty() {
            return Err(Fault::new(Code::FailedPrecondition, format!("volume {handle} is in use")));
        }
        let deleting = self.folder.join(format!("{handle}{DELETING}"));
        match fs::rename(&folder, &deleting) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => with_faults_named(other.and_then(|()| sync(&self.folder)), "remove the volume")?,
        }
        remove(&deleting)
    }

    /// Promises more. Disk and file system are grown afterwards.
    pub(super) fn expand(&self, handle: &str, bytes: u64) -> Result<Volume, Fault> {
        let _turn = self.turn.lock();
        let mut volume = self.get(handle)?;
        let bytes = whole_blocks(bytes)?;
        if bytes <= volume.bytes {
            return Ok(volume);
        }
        self.has_room(bytes - volume.bytes)?;
        if volume.form != Form::Folder {
            let disk = self.whole_disk(&volume)?;
            let file = with_faults_named(File::options().write(true).open(disk), "open the volume's file")?;
            with_faults_named(file.set_len(bytes).and_then(|()| file.sync_all()), "grow the volume's file")?;
            volume.grows = true;
        }
        volume.bytes = bytes;
        self.write(&volume)?;
        Ok(volume)
    }

    pub(super) fn has_grown(&self, volume: &Volume) -> Result<(), Fault> {
        let _turn = self.turn.lock();
        let now = self.get(&volume.handle)?;
        // Somebody has promised more meanwhile.
        if now.bytes != volume.bytes {
            return Ok(());
        }
        self.write(&Volume { grows: false, ..now })
    }

    fn write(&self, volume: &Volume) -> Result<(), Fault> {
        write(&self.of(&volume.handle)?, volume)
    }

    fn has_room(&self, bytes: u64) -> Result<(), Fault> {
        let left = self.available()?;
        if bytes <= left {
            return Ok(());
        }
        let why = format!("not enough room: {bytes} bytes are asked for, {left} are left on this node");
        Err(Fault::new(Code::ResourceExhausted, why))
    }

    /// What can be promised: what is free, less what was promised and is not yet taken, less what the node keeps.
    pub(super) fn available(&self) -> Result<u64, Fault> {
        make_folder(&self.folder)?;
        let stat = with_faults_named(rustix::fs::statvfs(&self.folder), "look at the disk")?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        // As eviction reckons: of what is there for everybody, without the blocks that are kept for root.
        let used = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize);
        let kept = self.reserve.of(used.saturating_add(free));
        let promised = |it: &Volume| {
            let taken = self.disk(&it.handle).ok().and_then(|it| fs::symlink_metadata(it).ok());
            it.bytes.saturating_sub(taken.map_or(0, |it| it.blocks().saturating_mul(512)))
        };
        let promised = self.all().iter().map(promised).fold(0_u64, u64::saturating_add);
        Ok(free.saturating_sub(kept).saturating_sub(promised))
    }

    pub(super) fn recover(&self) -> Result<(), Fault> {
        make_folder(&self.folder)?;
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let unfinished = |it: &str| it.ends_with(MAKING) || it.ends_with(DELETING);
        let left = entries.filter(|it| it.file_name().to_str().is_some_and(unfinished));
        left.map(|it| it.path()).try_for_each(|it| remove(&it))
    }
}

fn not_found(handle: &str) -> Fault {
    Fault::new(Code::NotFound, format!("volume {handle} not found"))
}

fn gone(handle: &str) -> Fault {
    Fault::internal(format!("the data of volume {handle} is gone from this node's disk"))
}

/// A disk has whole blocks of 4 KiB.
fn whole_blocks(bytes: u64) -> Result<u64, Fault> {
    let rounded = bytes.checked_next_multiple_of(4096).filter(|it| i64::try_from(*it).is_ok());
    rounded.ok_or_else(|| Fault::new(Code::OutOfRange, format!("no volume has {bytes} bytes")))
}

fn make_folder(folder: &Path) -> Result<(), Fault> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    with_faults_named(made, format_args!("make {}", folder.display()))
}

fn fill(folder: &Path, volume: &Volume) -> Result<(), Fault> {
    make_folder(folder)?;
    match volume.form {
        Form::Folder => {
            let content = folder.join(CONTENT);
            let made = fs::create_dir(&content)
                .and_then(|()| fs::set_permissions(&content, fs::Permissions::from_mode(0o777)));
            with_faults_named(made, "make the volume's folder")?;
        }
        Form::Disk | Form::FileSystem(_) => {
            let disk = folder.join(DISK);
            let file = File::options().write(true).create_new(true).mode(0o600).open(&disk);
            let file = with_faults_named(file, "make the volume's file")?;
            with_faults_named(file.set_len(volume.bytes), "make the volume's file")?;
            if let Form::FileSystem(kind) = volume.form {
                kind.make(&disk)?;
            }
            with_faults_named(file.sync_all(), "make the volume's file")?;
        }
    }
    write(folder, volume)
}

fn write(folder: &Path, volume: &Volume) -> Result<(), Fault> {
    let text = serde_json::to_vec(&volume.written()).map_err(Fault::internal)?;
    with_faults_named(write_whole(&folder.join(RECORD), 0o600, &text), "write the volume's record")
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a folder of ours that is no volume, with all in it. What is mounted in it is never entered.
fn remove(folder: &Path) -> Result<(), Fault> {
    with_faults_named(tree::remove_within(folder, &mut Bound::of_time(REMOVE_PATIENCE)), "remove the volume")
}
