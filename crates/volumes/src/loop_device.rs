//! Files as disks. The kernel's list says which file is attached to which device; a file is never attached twice, or two
//! file systems would write to it.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use crate::{Fault, program::run};

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
        if named.starts_with(folder) {
            return Some((device, named));
        }
        let part = named.strip_prefix("/").ok()?;
        let mut files = folder.ancestors().map(|it| it.join(part)).filter(|it| it.starts_with(folder));
        let file = files.find(|it| is_it(&device, &named, it))?;
        Some((device, file))
    };
    all().into_iter().filter_map(in_folder).collect()
}

/// Is it this file that is attached? The kernel names a file by its path below the file system that it was opened in where that was mounted
/// in a namespace that is gone.
fn is_it(device: &Path, named: &Path, file: &Path) -> bool {
    if named == file {
        return true;
    }
    let may_be = named.strip_prefix("/").is_ok_and(|it| file.ends_with(it)) && file.exists();
    let Some(file) = file.to_str().filter(|_| may_be) else { return false };
    // By the file's number and disk.
    let found = run("losetup", &["--associated", file, "--noheadings", "--output", "NAME"]);
    found.is_ok_and(|it| it.lines().any(|it| Path::new(it.trim()) == device))
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

/// Lets the device go. Where something still holds it, the kernel does so when that has ended.
pub(crate) fn detach(device: &Path) -> Result<(), Fault> {
    run("losetup", &["--detach", text(device)?]).map(drop)
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
