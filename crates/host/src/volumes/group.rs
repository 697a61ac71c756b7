//! Gives a volume to its Pod's group (`fsGroup`).
//!
//! Containers may be at work in it: what is changed is what was looked at, held open, and never what has taken its name since.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, chownat, fstat, openat},
    io::Errno,
};

/// As upstream: a read-only volume's files are opened to the group for reading, all others for writing too.
pub(super) fn give(volume: &Path, gid: u32, read_only: bool) -> io::Result<()> {
    give_open(openat(CWD, volume, HELD, Mode::empty())?, gid, read_only)
}

const HELD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn give_open(file: OwnedFd, gid: u32, read_only: bool) -> io::Result<()> {
    let stat = fstat(&file)?;
    chownat(&file, "", None, Some(Gid::from_raw(gid)), AtFlags::EMPTY_PATH)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind.is_symlink() {
        return Ok(());
    }
    let more = if read_only { 0o440 } else { 0o660 } | if kind.is_dir() { 0o2110 } else { 0 };
    let here = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(&here, fs::Permissions::from_mode(stat.st_mode & 0o7777 | more))?;
    if kind.is_dir() {
        for entry in fs::read_dir(&here)? {
            match openat(&file, entry?.file_name(), HELD, Mode::empty()) {
                Ok(inner) => give_open(inner, gid, read_only)?,
                // It was removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
