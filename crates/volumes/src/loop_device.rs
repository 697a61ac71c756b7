//! Files as disks. The kernel's list says which file is attached to which device; a file is never attached twice, or two
//! file systems would write to it.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{Fault, program::run};

/// The device that `file` is attached to.
pub(crate) fn of(file: &Path) -> Option<PathBuf> {
    all().into_iter().find(|it| it.1 == file).map(|it| it.0)
}

/// Every device with the file that is attached to it. Of a file that was removed the path ends with ` (deleted)`.
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
