//! The volumes on disk: a folder for each, with its record and its data.
//!
//! A volume is made beside its place and renamed when it is whole; it is renamed before it is removed. So whatever has a
//! volume's name is a whole volume, whenever the machine lost its power.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use corten_machine::{
    Layout, mounts,
    tree::{self, WalkBudget},
    write_whole,
};
use parking_lot::Mutex;

use super::{
    allowance::{Allowance, Amount},
    copy, copy_tree,
    promises::Promises,
    quiesce,
    room::Reserve,
    under_way::{Hold, Making, UnderWay},
    volume::{Form, Volume, VolumeRecord},
};
use crate::{
    Code, Fault, VolumeSource,
    file_system::{self, Kind},
    loop_device, project_quota,
    records::name_of,
    with_faults_named,
};

const RECORD: &str = "volume.json";
pub(super) const DISK: &str = "disk.img";
const CONTENT: &str = "data";
/// Ends of the names of folders that are no volumes yet, or no more.
pub(super) const MAKING: &str = ".making";
const DELETING: &str = ".deleting";
/// The same of one that comes from another node, which is gone on with after a crash.
pub(super) const ARRIVING: &str = ".arriving";
/// Removing a folder of millions of files takes its time; it is gone on with at the next try.
const REMOVE_PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(super) struct Store {
    pub(super) folder: PathBuf,
    /// On the same disk: blocks are shared within one file system.
    pub(super) snapshots: PathBuf,
    pub(super) reserve: Reserve,
    /// What is promised is reckoned and promised anew by one at a time.
    pub(super) turn: Mutex<()>,
    pub(super) under_way: UnderWay,
    pub(super) promises: Promises,
}

/// A volume that is to be made.
#[derive(Clone, Debug)]
pub(super) struct NewVolume {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) form: Form,
    pub(super) source: Option<VolumeSource>,
}

pub(super) fn folder(layout: &Layout) -> PathBuf {
    layout.data.join("volumes")
}

impl Store {
    pub(super) fn new(layout: &Layout, reserve: Reserve) -> Self {
        let snapshots = layout.data.join("snapshots");
        Self {
            folder: folder(layout),
            snapshots,
            reserve,
            turn: Mutex::default(),
            under_way: UnderWay::default(),
            promises: Promises::default(),
        }
    }

    pub(super) fn of(&self, handle: &str) -> Result<PathBuf, Fault> {
        name_of(handle)?;
        self.in_folder(&self.folder, handle).ok_or_else(|| not_found(handle))
    }

    /// `None`: the name is one of what is being made or removed, or comes from another node.
    pub(super) fn in_folder(&self, folder: &Path, handle: &str) -> Option<PathBuf> {
        (![MAKING, DELETING, ARRIVING].iter().any(|it| handle.ends_with(it))).then(|| folder.join(handle))
    }

    /// Nobody else changes the volume, or copies it, as long as this is held.
    pub(super) fn hold(&self, handle: &str) -> Result<Hold<'_>, Fault> {
        self.under_way.hold_alone(&self.of(handle)?)
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
        self.record_of(&self.of(handle)?, handle)
    }

    /// What is written down in a folder of the volume of this name.
    pub(super) fn record_of(&self, folder: &Path, handle: &str) -> Result<Volume, Fault> {
        let text = match fs::read(folder.join(RECORD)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found(handle)),
            other => with_faults_named(other, "read the volume's record")?,
        };
        let written = serde_json::from_slice::<VolumeRecord>(&text).ok();
        let volume = written.and_then(|it| Volume::read(handle, &it));
        volume.ok_or_else(|| Fault::internal(format!("the record of volume {handle} cannot be read")))
    }

    /// What of the disk is taken of what was promised.
    pub(super) fn taken(&self, volume: &Volume) -> u64 {
        if let Some(project) = volume.project {
            return project_quota::taken(&self.folder, project);
        }
        let stat = fs::symlink_metadata(self.folder.join(&volume.handle).join(DISK)).ok();
        stat.as_ref().map_or(0, copy::allocated)
    }

    /// Makes it; one of this name that is large enough is taken as it is.
    pub(super) fn create(&self, wanted: &NewVolume) -> Result<Volume, Fault> {
        let NewVolume { name, bytes: required_bytes, form, source } = wanted;
        let (folder, form) = (self.of(name)?, *form);
        let least = if let Form::FileSystem(kind) = form { kind.least_bytes() } else { 1 << 20 };
        let bytes = whole_blocks((*required_bytes).max(least))?;
        let making = {
            let _turn = self.turn.lock();
            match self.get(name) {
                Ok(there) if there.form == form && there.bytes >= *required_bytes => {
                    return self.stays(name).map(|()| there);
                }
                Ok(_) => {
                    let why = format!("volume {name} is there already, of another size or form");
                    return Err(Fault::new(Code::AlreadyExists, why));
                }
                Err(fault) if fault.code == Code::NotFound => {}
                Err(fault) => return Err(fault),
            }
            self.has_room(bytes)?;
            self.under_way.begin(&folder, bytes)?
        };
        let mut volume = Volume {
            handle: name.clone(),
            bytes,
            form,
            blank: source.is_none() && matches!(form, Form::FileSystem(_)),
            grows: false,
            shared: 0,
            project: None,
        };
        let work = self.folder.join(format!("{name}{MAKING}"));
        remove(&work)?;
        let filled = match source {
            None => self.fill(&work, &mut volume),
            Some(source) => self.fill_from(source, &work, &mut volume, &making),
        };
        filled.inspect_err(|_| drop(remove(&work)))?;
        with_faults_named(fs::rename(&work, &folder).and_then(|()| sync(&self.folder)), "make the volume")?;
        self.promises.has(&volume);
        Ok(volume)
    }

    /// Has a new volume hold nothing.
    fn fill(&self, folder: &Path, volume: &mut Volume) -> Result<(), Fault> {
        make_folder(folder)?;
        if volume.form.is_folder() {
            self.make_content(folder, volume)?;
        } else {
            let disk = folder.join(DISK);
            let file = File::options().write(true).create_new(true).mode(0o600).open(&disk);
            let file = with_faults_named(file, "make the volume's file")?;
            with_faults_named(file.set_len(volume.bytes), "make the volume's file")?;
            with_faults_named(file.sync_all(), "make the volume's file")?;
        }
        write(folder, volume)
    }

    /// The folder of a volume's data, under its quota before anything is in it.
    fn make_content(&self, folder: &Path, volume: &mut Volume) -> Result<(), Fault> {
        let content = folder.join(CONTENT);
        let made =
            fs::create_dir(&content).and_then(|()| fs::set_permissions(&content, fs::Permissions::from_mode(0o777)));
        with_faults_named(made, "make the volume's folder")?;
        if volume.form == Form::Quota {
            // A number is free until it has a limit.
            let _turn = self.turn.lock();
            volume.project = Some(project_quota::begin(&content, &volume.handle, volume.bytes)?);
        }
        Ok(())
    }

    /// Has the kernel hold the volume's size, where it is one of a quota.
    pub(super) fn hold_size(&self, volume: &Volume, content: &Path) -> Result<(), Fault> {
        match (volume.form, volume.project) {
            (Form::Quota, Some(project)) => project_quota::hold(content, project, volume.bytes),
            (Form::Quota, None) => {
                Err(Fault::internal(format!("the record of volume {} names no project", volume.handle)))
            }
            _ => Ok(()),
        }
    }

    /// Has a new volume hold what another held when a snapshot was taken of it, or holds now; and grows its file.
    fn fill_from(
        &self,
        source: &VolumeSource,
        work: &Path,
        volume: &mut Volume,
        making: &Making<'_>,
    ) -> Result<(), Fault> {
        make_folder(work)?;
        if volume.form.is_folder() {
            self.make_content(work, volume)?;
        }
        let (bytes, blank, grows, shared) = match source {
            VolumeSource::Snapshot(handle) => {
                let _hold = self.under_way.hold_to_read(&self.kept_folder(handle)?)?;
                let kept = self.kept(handle)?;
                fits(volume, kept.form, kept.bytes, "snapshot")?;
                let shared = self.copy(&self.kept_content(&kept)?, (kept.form, kept.bytes), work, making)?;
                (kept.bytes, kept.blank, kept.grows, shared)
            }
            VolumeSource::Volume(handle) => {
                let _hold = self.hold(handle)?;
                let of = self.get(handle)?;
                self.stays(handle)?;
                fits(volume, of.form, of.bytes, "volume")?;
                (of.bytes, of.blank, of.grows, self.copy_volume(&of, work, making, || ())?)
            }
        };
        (volume.shared, volume.blank) = (shared, blank);
        if !volume.form.is_folder() {
            volume.grows = grows || volume.bytes > bytes;
            let file = with_faults_named(File::options().write(true).open(work.join(DISK)), "open the volume's file")?;
            with_faults_named(file.set_len(volume.bytes).and_then(|()| file.sync_all()), "grow the volume's file")?;
        }
        write(work, volume)
    }

    /// Copies what a volume holds now into a folder. Answers how many bytes both share.
    pub(super) fn copy_volume(
        &self,
        volume: &Volume,
        into: &Path,
        making: &Making<'_>,
        at_rest: impl FnOnce(),
    ) -> Result<u64, Fault> {
        if volume.form.is_folder() {
            at_rest();
            return self.copy(&self.content(&volume.handle)?, (volume.form, volume.bytes), into, making);
        }
        let disk = self.whole_disk(volume)?;
        quiesce::at_rest(volume, &disk, || {
            at_rest();
            self.copy(&disk, (volume.form, volume.bytes), into, making)
        })
    }

    /// Copies the data of a volume or snapshot of this form and size, within what the disk has. Answers how many bytes both share.
    fn copy(&self, from: &Path, (form, bytes): (Form, u64), into: &Path, making: &Making<'_>) -> Result<u64, Fault> {
        let most = match form {
            Form::Disk | Form::FileSystem(_) => Amount::UNBOUNDED,
            Form::Folder | Form::Quota => {
                let there = with_faults_named(copy_tree::measure(from), "count what the volume takes")?;
                self.promise_copy(there, making)?;
                let limit = Amount { bytes, inodes: project_quota::inodes_of(bytes) };
                if form == Form::Quota { limit } else { there.of_copy() }
            }
        };
        let has_room = || self.still_has_room();
        copy_content(from, form, into, &Allowance::new(&making.progress, most, &has_room))
    }

    /// Removes it for good. One that is in use is not touched.
    pub(super) fn delete(&self, handle: &str) -> Result<(), Fault> {
        let folder = self.of(handle)?;
        let _hold = self.under_way.hold_alone(&folder)?;
        self.delete_held(handle)
    }

    /// The same for who has it in hand.
    pub(super) fn delete_held(&self, handle: &str) -> Result<(), Fault> {
        self.is_not_in_use(handle)?;
        self.let_removed_disks_go(handle)?;
        self.remove_whole(&self.of(handle)?, &self.folder, handle)?;
        self.promises.has_no(handle);
        Ok(())
    }

    /// # Errors
    /// `FailedPrecondition`: it is attached or mounted.
    pub(super) fn is_not_in_use(&self, handle: &str) -> Result<(), Fault> {
        let folder = self.of(handle)?;
        let is_removed_mounted = || self.removed_disks(handle).iter().any(|it| file_system::mounted_at(it).is_some());
        if loop_device::of(&folder.join(DISK)).is_some()
            || !mounts::mounts_beneath(&folder).is_empty()
            || is_removed_mounted()
        {
            return Err(Fault::new(Code::FailedPrecondition, format!("volume {handle} is in use")));
        }
        Ok(())
    }

    /// The devices of a volume's file that somebody has removed while it was attached.
    fn removed_disks(&self, handle: &str) -> Vec<PathBuf> {
        let of = [self.folder.join(handle), self.folder.join(format!("{handle}{DELETING}"))];
        let removed = loop_device::removed_in(&self.folder).into_iter();
        removed
            .filter(|(_, file)| file.parent().is_some_and(|it| of.iter().any(|of| of == it)))
            .map(|it| it.0)
            .collect()
    }

    /// Nobody finds them by the file any more; nothing may be mounted of them.
    pub(super) fn let_removed_disks_go(&self, handle: &str) -> Result<(), Fault> {
        self.removed_disks(handle).iter().try_for_each(|it| loop_device::detach(it))
    }

    pub(super) fn remove_whole(&self, folder: &Path, parent: &Path, handle: &str) -> Result<(), Fault> {
        let deleting = parent.join(format!("{handle}{DELETING}"));
        match fs::rename(folder, &deleting) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => with_faults_named(other.and_then(|()| sync(parent)), "remove it")?,
        }
        remove_deleting(parent, handle)
    }

    /// Promises more. Disk and file system are grown afterwards.
    pub(super) fn expand(&self, handle: &str, bytes: u64) -> Result<Volume, Fault> {
        let _hold = self.hold(handle)?;
        let _turn = self.turn.lock();
        let mut volume = self.get(handle)?;
        self.stays(handle)?;
        let bytes = whole_blocks(bytes)?;
        if bytes <= volume.bytes {
            return Ok(volume);
        }
        self.has_room(bytes - volume.bytes)?;
        if volume.form.is_folder() {
            self.hold_size(&Volume { bytes, ..volume.clone() }, &self.content(handle)?)?;
        } else {
            let disk = self.whole_disk(&volume)?;
            let file = with_faults_named(File::options().write(true).open(disk), "open the volume's file")?;
            with_faults_named(file.set_len(bytes).and_then(|()| file.sync_all()), "grow the volume's file")?;
            volume.grows = true;
        }
        volume.bytes = bytes;
        self.write(&volume)?;
        Ok(volume)
    }

    /// Makes the file system of a volume that nobody has had. A crash meanwhile has it made once more.
    pub(super) fn make_file_system(&self, volume: &Volume, kind: Kind) -> Result<Volume, Fault> {
        let disk = self.whole_disk(volume)?;
        kind.make(&disk)?;
        let synced = File::open(&disk).and_then(|it| it.sync_all());
        with_faults_named(synced, "make the volume's file system")?;
        let _turn = self.turn.lock();
        let made = Volume { blank: false, grows: false, ..self.get(&volume.handle)? };
        self.write(&made)?;
        Ok(made)
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
        write(&self.of(&volume.handle)?, volume)?;
        self.promises.has(volume);
        Ok(())
    }

    /// Removes what is no volume or snapshot yet, or no more. Whoever was stopped while it was copied goes on.
    pub(super) fn recover(&self) -> Result<(), Fault> {
        let unfinished = |it: &PathBuf| {
            let name = it.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(MAKING) || name.ends_with(DELETING)
        };
        for (device, file) in loop_device::removed_in(&self.folder) {
            let is_left = |it: &Path| it.to_string_lossy().ends_with(DELETING) || !it.exists();
            if file.parent().is_some_and(is_left)
                && let Err(error) = loop_device::detach(&device)
            {
                tracing::warn!(%error, device = %device.display(), "the file of a removed volume stays attached");
            }
        }
        let folders = [&self.folder, &self.snapshots];
        folders.iter().try_for_each(|it| make_folder(it))?;
        let left: Vec<PathBuf> = folders.iter().flat_map(|it| children(it)).filter(unfinished).collect();
        if left.is_empty() {
            return Ok(());
        }
        for (device, _) in loop_device::all_in(&self.folder) {
            if let Some(place) = file_system::mounted_at(&device) {
                quiesce::thaw(&place);
            }
        }
        left.iter().try_for_each(|it| remove(it))
    }
}

/// Where a volume's or snapshot's data is, in its folder.
pub(super) fn content_of(folder: &Path, form: Form) -> PathBuf {
    folder.join(if form.is_folder() { CONTENT } else { DISK })
}

/// Copies a volume's or snapshot's data into the folder of another. Answers how many bytes both share.
fn copy_content(from: &Path, form: Form, into: &Path, allowance: &Allowance<'_>) -> Result<u64, Fault> {
    let to = content_of(into, form);
    let copied = if form.is_folder() {
        let made = match fs::create_dir(&to) {
            // Of a volume it is there, and under its quota.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        };
        made.and_then(|()| copy_tree::folder(from, &to, allowance))
    } else {
        let open = || {
            let source = File::open(from)?;
            let to = File::options().write(true).create_new(true).mode(0o600).open(&to)?;
            copy::file(&source, &to, allowance)?;
            to.sync_all()
        };
        open()
    };
    let Err(error) = copied else { return Ok(allowance.progress.shared()) };
    // What is not allowed says so itself.
    let error = match error.downcast::<Fault>() {
        Ok(fault) => return Err(fault),
        Err(error) => error,
    };
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let code = if is_full { Code::ResourceExhausted } else { Code::Internal };
    Err(Fault::new(code, format!("copy the volume: {error}")))
}

/// Can a volume begin with what one of this form and size holds?
fn fits(volume: &Volume, form: Form, bytes: u64, source: &str) -> Result<(), Fault> {
    let invalid = |why: String| Err(Fault::new(Code::InvalidArgument, why));
    match (volume.form, form) {
        (Form::Folder, Form::Folder | Form::Quota) => return Ok(()),
        (Form::Folder, _) => return invalid(format!("the {source} has a limit, and the class says limit none")),
        (Form::Quota, Form::Folder) => {
            return invalid(format!("the {source} has no limit, and the class says limit quota"));
        }
        (Form::Quota, Form::Disk | Form::FileSystem(_)) => {
            return invalid(format!("the {source} is a file, and the class says limit quota"));
        }
        (_, Form::Folder) => return invalid(format!("the {source} is a folder: the class must say limit none")),
        (Form::Disk | Form::FileSystem(_), Form::Quota) => {
            return invalid(format!("the {source} is a folder: the class must say limit quota"));
        }
        (Form::FileSystem(wanted), Form::FileSystem(there)) if wanted != there => {
            return invalid(format!("the {source} has file system {}, not {}", there.as_str(), wanted.as_str()));
        }
        _ => {}
    }
    if volume.bytes < bytes {
        let why = format!("{} bytes are asked for, and the {source} has {bytes}", volume.bytes);
        return Err(Fault::new(Code::OutOfRange, why));
    }
    Ok(())
}

pub(super) fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect()
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

pub(super) fn make_folder(folder: &Path) -> Result<(), Fault> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    with_faults_named(made, format_args!("make {}", folder.display()))
}

pub(super) fn write(folder: &Path, volume: &Volume) -> Result<(), Fault> {
    let text = serde_json::to_vec(&volume.written()).map_err(Fault::internal)?;
    with_faults_named(write_whole(&folder.join(RECORD), 0o600, &text), "write the volume's record")
}

pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes what was begun to be removed of one of this name.
pub(super) fn remove_deleting(parent: &Path, handle: &str) -> Result<(), Fault> {
    remove(&parent.join(format!("{handle}{DELETING}")))
}

/// Removes a folder of ours that is no volume, with all in it. What is mounted in it is never entered.
pub(super) fn remove(folder: &Path) -> Result<(), Fault> {
    project_quota::release(&folder.join(CONTENT));
    with_faults_named(tree::remove_within(folder, &mut WalkBudget::of_time(REMOVE_PATIENCE)), "remove the volume")
}
