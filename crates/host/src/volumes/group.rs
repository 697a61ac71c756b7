//! Gives a volume to its Pod's group (`fsGroup`).
//!
//! Containers may be at work in it: what is changed is what was looked at, held open, and never what has taken its name since.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use corten_machine::tree::{self, Entry, Visitor, WalkBudget};
use rustix::{
    fd::{AsRawFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, chownat, fstat, openat},
    io::Errno,
};

/// Shorter than what preparing a Pod's volumes may take.
const TIME_MAX: Duration = Duration::from_secs(100);

/// As in `SetVolumeOwnership`: a read-only volume's files are opened to the group for reading, all others for writing too.
pub(super) fn give(volume: &Path, gid: u32, read_only: bool) -> io::Result<()> {
    change(volume, gid, read_only, false)
}

/// The same, and of a volume whose top folder is as it must be all is taken to be so (`fsGroupChangePolicy: OnRootMismatch`).
pub(super) fn give_on_root_mismatch(volume: &Path, gid: u32, read_only: bool) -> io::Result<()> {
    change(volume, gid, read_only, true)
}

fn change(volume: &Path, gid: u32, read_only: bool, only_on_root_mismatch: bool) -> io::Result<()> {
    let mut group = Group { gid: Gid::from_raw(gid), read_only };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = openat(CWD, volume, flags, Mode::empty())?;
    if only_on_root_mismatch && group.has(&top)? {
        return Ok(());
    }
    // The top folder last: it says that all beneath it is done (upstream walks the other way round for the same end).
    let is_folder = FileType::from_raw_mode(fstat(&top)?.st_mode).is_dir();
    if is_folder {
        walk(volume, &mut group)?;
    }
    group.take(&top).map(drop)
}

fn walk(volume: &Path, group: &mut Group) -> io::Result<()> {
    tree::walk(tree::open_folder(volume)?, &mut WalkBudget::of_time(TIME_MAX), group).map(drop)
}

struct Group {
    gid: Gid,
    read_only: bool,
}

impl Group {
    /// As upstream's `requiresPermissionChange`, the other way round.
    fn has(&self, place: &OwnedFd) -> io::Result<bool> {
        let stat = fstat(place)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let wanted = self.bits() | if kind.is_dir() { 0o2110 } else { 0 };
        Ok(stat.st_gid == self.gid.as_raw() && stat.st_mode & wanted == wanted)
    }

    fn bits(&self) -> u32 {
        if self.read_only { 0o440 } else { 0o660 }
    }

    /// Tells whether it is a folder.
    fn take(&self, place: &OwnedFd) -> io::Result<bool> {
        let stat = fstat(place)?;
        chownat(place, "", None, Some(self.gid), AtFlags::EMPTY_PATH)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind.is_symlink() {
            return Ok(false);
        }
        let more = self.bits() | if kind.is_dir() { 0o2110 } else { 0 };
        let here = format!("/proc/self/fd/{}", place.as_raw_fd());
        fs::set_permissions(&here, fs::Permissions::from_mode(stat.st_mode & 0o7777 | more))?;
        Ok(kind.is_dir())
    }
}

impl Visitor for Group {
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        match entry.open_place() {
            Ok(place) => self.take(&place),
            // It was removed meanwhile, or something is mounted there.
            Err(Errno::NOENT | Errno::XDEV) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
