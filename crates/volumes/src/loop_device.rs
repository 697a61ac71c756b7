//! Files as disks. The kernel's list says which file is attached to which device; a file is never attached twice, or two
//! file systems would write to it.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use crate::{Fault, program::run};

/// Of loop devices, without partitions.
const MAJOR: u32 = 7;
/// So the kernel ends the name of a file that was removed.
const REMOVED: &[u8] = b" (deleted)";

/// The device that `file` is attached to.
pub(crate) fn of(file: &Path) -> Option<PathBuf> {
    all().into_iter().find(|(device, named)| is_it(device, named, file)).map(|it| it.0)
}

/// The devices that files of volumes in `folder` were attached to before the files were removed, with where each was:
/// `folder/VOLUME/FILE`. A file that stands there now is another one.
pub(crate) fn removed_in(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let in_folder = |(device, named): (PathBuf, PathBuf)| {
        let was = named.as_os_str().as_bytes().strip_suffix(REMOVED)?;
        let was = Path::new(std::ffi::OsStr::from_bytes(was));
        let (volume, file) = (was.parent()?, was.file_name()?);
        let above = volume.parent()?;
        // As for files that are there, see `is_it`: by the disk alone, since nothing has the file's number any more.
        let may_be = || folder.ends_with(above.strip_prefix("/").unwrap_or(above)) && is_on_disk_of(&device, folder);
        (above == folder || may_be())
            .then(|| (device.clone(), folder.join(volume.file_name().unwrap_or_default()).join(file)))
    };
    all().into_iter().filter_map(in_folder).collect()
}

fn is_on_disk_of(device: &Path, folder: &Path) -> bool {
    let (Ok(device), Ok(stat)) = (text(device), fs::metadata(folder)) else { return false };
    let disk = format!("{}:{}", rustix::fs::major(stat.dev()), rustix::fs::minor(stat.dev()));
    run("losetup", &["--list", "--noheadings", "--output", "BACK-MAJ:MIN", device]).is_ok_and(|it| it.trim() == disk)
}

/// The devices that files in `folder` are attached to, with these. Files that were removed are not among them.
pub(crate) fn all_in(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let in_folder = |(device, named): (PathBuf, PathBuf)| {
        if named.as_os_str().as_bytes().ends_with(REMOVED) {
            return None;
        }
        let part = named.strip_prefix("/").ok()?;
        let mut files =
            folder.ancestors().map(|it| it.join(part)).chain([named.clone()]).filter(|it| it.starts_with(folder));
        let file = files.find(|it| is_it(&device, &named, it))?;
        Some((device, file))
    };
    all().into_iter().filter_map(in_folder).collect()
}

/// Is it this file that is attached? The kernel names a file by its path below the file system that it was opened in where that was mounted
/// in a namespace that is gone, and one of the same path in a container's root just the same.
fn is_it(device: &Path, named: &Path, file: &Path) -> bool {
    if !named.strip_prefix("/").is_ok_and(|it| file.ends_with(it)) || !file.exists() {
        return false;
    }
    match devices_of(file) {
        Ok(devices) => devices.iter().any(|it| it.0 == device),
        // Rather one that is another's is believed in than a file attached twice.
        Err(_) => named == file,
    }
}

/// By the number and disk of what is attached, a file or a device; and whether it is read only.
fn devices_of(attached: &Path) -> Result<Vec<(PathBuf, bool)>, Fault> {
    let found = run("losetup", &["--associated", text(attached)?, "--noheadings", "--output", "NAME,RO"])?;
    let device = |line: &str| {
        let (name, read_only) = line.trim().rsplit_once(' ')?;
        Some((PathBuf::from(name.trim()), read_only == "1"))
    };
    Ok(found.lines().filter_map(device).collect())
}

/// Those that [`hold`] has put upon the device: nobody else's are read only.
fn holders(device: &Path) -> Result<Vec<PathBuf>, Fault> {
    Ok(devices_of(device)?.into_iter().filter(|it| it.1).map(|it| it.0).collect())
}

/// Every device with the name of the file that is attached to it. Of a file that was removed it ends with ` (deleted)`.
pub(crate) fn all() -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let attached = entries.filter_map(|entry| {
        let name = entry.file_name();
        if !name.as_bytes().starts_with(b"loop") {
            return None;
        }
        let file = fs::read(entry.path().join("loop/backing_file")).ok()?;
        let file = file.strip_suffix(b"\n").unwrap_or(&file);
        Some((Path::new("/dev").join(name), PathBuf::from(std::ffi::OsStr::from_bytes(file))))
    });
    attached.collect()
}

/// The device of `file`, which is attached where it is not yet.
pub(crate) fn attach(file: &Path) -> Result<PathBuf, Fault> {
    if let Some(device) = of(file) {
        return Ok(device);
    }
    let path = text(file)?;
    // Of the same sectors always: the kernel would take larger ones for a file that shares its blocks, and what is in it
    // could not be mounted any more.
    let sector = "--sector-size=512";
    // Without the page cache in between, where the file system can: what is written is written once.
    let direct = run("losetup", &["--find", "--show", sector, "--direct-io=on", path]);
    let device = direct.or_else(|_| run("losetup", &["--find", "--show", sector, path]))?;
    Ok(PathBuf::from(device))
}

/// The loop device at `place`, which may have any name.
pub(crate) fn at(place: &Path) -> Option<PathBuf> {
    let found = fs::metadata(place).ok().filter(|it| it.file_type().is_block_device())?;
    let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
    (major == MAJOR).then(|| PathBuf::from(format!("/dev/loop{minor}")))
}

/// Keeps the device's file attached while a container has the device: who can open it may detach its file (`LOOP_CLR_FD` needs no
/// capability), and attach one of its own, unless it is open elsewhere, too. Another loop device upon it is that, and
/// stays when Corten ends: so the kubelet does (`AttachFileDevice`).
pub(crate) fn hold(device: &Path) -> Result<(), Fault> {
    if holders(device)?.is_empty() {
        run("losetup", &["--find", "--read-only", text(device)?])?;
    }
    Ok(())
}

/// Takes back what [`hold`] did, if anything.
pub(crate) fn release(device: &Path) -> Result<(), Fault> {
    holders(device)?.iter().try_for_each(|it| run("losetup", &["--detach", text(it)?]).map(drop))
}

/// Lets the device go. Where something still holds it, the kernel does so when that has ended.
pub(crate) fn detach(device: &Path) -> Result<(), Fault> {
    release(device)?;
    let detached = run("losetup", &["--detach", text(device)?]).map(drop);
    // It went with what held it, where a container had asked for that before.
    let is_attached = || all().iter().any(|it| it.0 == device);
    detached.or_else(|fault| if is_attached() { Err(fault) } else { Ok(()) })
}

/// Has the kernel see how large the file is now.
pub(crate) fn refresh(device: &Path) -> Result<(), Fault> {
    run("losetup", &["--set-capacity", text(device)?]).map(drop)
}

pub(crate) fn text(path: &Path) -> Result<&str, Fault> {
    path.to_str().ok_or_else(|| Fault::internal(format!("{} is no text", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_detaches_stays_attached_while_the_device_is_held() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let [file, other] = ["a", "b"].map(|it| dir.path().join(it));
        for it in [&file, &other] {
            fs::File::create(it).and_then(|it| it.set_len(1 << 20)).expect("made");
        }
        let device = match attach(&file) {
            Ok(device) => device,
            Err(fault) => return eprintln!("skipped: {fault}"),
        };
        assert_eq!(at(&device), Some(device.clone()));
        for _ in 0..2 {
            hold(&device).expect("held");
        }
        // What a container asks for that has the device.
        let asked = |args: &[&str]| run("losetup", args);
        drop(asked(&["--detach", text(&device).expect("text")]));
        let taken = asked(&[text(&device).expect("text"), text(&other).expect("text")]);
        let (of_file, of_other, held_by) = (of(&file), of(&other), holders(&device).expect("known"));
        detach(&device).expect("let go");
        assert!(taken.is_err(), "{taken:?}");
        assert_eq!((of_file, of_other, held_by.len()), (Some(device.clone()), None, 1));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while of(&file).is_some() || holders(&device).is_ok_and(|it| !it.is_empty()) {
            assert!(std::time::Instant::now() < until, "{} stays attached", device.display());
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_is_known_by_its_number() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path().join("root");
        let [file, theirs] = [dir.path(), &root].map(|it| it.join("volumes/a/disk.img"));
        for it in [&file, &theirs] {
            fs::create_dir_all(it.parent().expect("a folder")).expect("made");
            fs::File::create(it).and_then(|it| it.set_len(1 << 20)).expect("made");
        }
        // One of the same path below a container's root.
        let path = Path::new("/").join(dir.path().strip_prefix("/").expect("a path"));
        fs::create_dir_all(root.join(path.strip_prefix("/").expect("a path"))).expect("made");
        let named = root.join(path.strip_prefix("/").expect("a path")).join("volumes/a/disk.img");
        fs::create_dir_all(named.parent().expect("a folder")).expect("made");
        fs::rename(&theirs, &named).expect("moved");
        assert!(named.ends_with(file.strip_prefix("/").expect("a path")), "else this tests nothing");
        let device = match attach(&named) {
            Ok(device) => device,
            Err(fault) => return eprintln!("skipped: {fault}"),
        };
        let found = (of(&file), is_it(&device, &file, &file), is_it(&device, &named, &named));
        detach(&device).expect("let go");
        assert_eq!(found, (None, false, true));
    }

    /// A file that was attached in a namespace of mounts which is gone: the kernel no longer says where its disk is mounted.
    #[test]
    fn a_file_is_found_when_the_mounts_are_gone_that_it_was_opened_by() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (image, disk) = (dir.path().join("image"), dir.path().join("disk"));
        fs::create_dir(&disk).expect("made");
        fs::File::create(&image).and_then(|it| it.set_len(32 << 20)).expect("made");
        run("mkfs.ext4", &["-q", "-F", text(&image).expect("text")]).expect("a file system");
        if let Err(fault) = run("mount", &["-o", "loop", text(&image).expect("text"), text(&disk).expect("text")]) {
            return eprintln!("skipped: {fault}");
        }
        let folder = disk.join("volumes");
        let [file, other] = ["a", "b"].map(|it| folder.join(it).join("disk.img"));
        for it in [&file, &other] {
            fs::create_dir_all(it.parent().expect("a folder")).expect("made");
            fs::File::create(it).and_then(|it| it.set_len(1 << 20)).expect("made");
        }
        let attached = run("unshare", &["-m", "losetup", "--find", "--show", text(&file).expect("text")]);
        let device = PathBuf::from(attached.expect("attached"));
        let named = all().into_iter().find(|it| it.0 == device).expect("it is attached").1;
        let found = (of(&file), of(&other), all_in(&folder), all_in(&folder.join("b")));
        detach(&device).expect("let go");
        run("umount", &[text(&disk).expect("text")]).expect("unmounted");
        assert_eq!(named, Path::new("/volumes/a/disk.img"), "else this tests nothing");
        assert_eq!(found, (Some(device.clone()), None, vec![(device, file)], vec![]));
    }
}
