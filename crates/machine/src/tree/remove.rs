//! Removes a tree. What is mounted in it stays, and with it the folders above it: removing through a mount would empty it.

use std::{ffi::CStr, ffi::CString, io, os::unix::ffi::OsStrExt, path::Path, time::Duration};

use rustix::{
    fd::BorrowedFd,
    fs::{AtFlags, FileType, Mode, OFlags, open, openat2, unlinkat},
    io::Errno,
};

use super::{Entry, FOLDER, STEP, Visitor, WalkBudget, walk};

/// Shorter than what an effect of the kubelet may take: it is told what came of it, and asks again.
const TIME_MAX: Duration = Duration::from_secs(100);

/// Removes what is at `path`: a file, a link, or a folder with all that is in it. Harmless where nothing is.
///
/// # Errors
/// As of removing files; `TimedOut` where so much is in it that the rest is to be removed by another call.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_within(path, &mut WalkBudget::of_time(TIME_MAX))
}

/// As [`remove`], within a bound.
pub fn remove_within(path: &Path, bound: &mut WalkBudget) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name"));
    };
    let name = CString::new(name.as_bytes()).map_err(io::Error::other)?;
    // Where it lies is ours: a link on the way there is the owner's.
    let above = match open(above, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    loop {
        let top = match openat2(&above, &*name, FOLDER, Mode::empty(), STEP) {
            Ok(top) => top,
            Err(Errno::NOTDIR | Errno::LOOP) => return gone(unlinkat(&above, &*name, AtFlags::empty())),
            Err(error) => return gone(Err(error)),
        };
        let mut removal = Removal { removed: 0 };
        walk(top, bound, &mut removal)?;
        match unlinkat(&above, &*name, AtFlags::REMOVEDIR) {
            // Something was put there meanwhile.
            Err(Errno::NOTEMPTY | Errno::EXIST) if removal.removed > 0 => {}
            other => return gone(other),
        }
    }
}

fn gone(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

struct Removal {
    removed: u64,
}

impl Removal {
    fn count(&mut self, result: Result<(), Errno>) -> io::Result<()> {
        match result {
            Ok(()) => self.removed += 1,
            // Somebody else removed it, or put something in it: then there is another round.
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Visitor for Removal {
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        if entry.kind == FileType::Directory {
            return Ok(true);
        }
        match unlinkat(entry.folder, entry.name, AtFlags::empty()) {
            Err(Errno::ISDIR) => Ok(true),
            other => self.count(other).map(|()| false),
        }
    }

    fn leaves(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        self.count(unlinkat(parent, name, AtFlags::REMOVEDIR))
    }
}
