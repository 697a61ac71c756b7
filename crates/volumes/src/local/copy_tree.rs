//! A folder once more, with all in it: files with their holes, owners, modes, times, extended attributes and further names;
//! links as links. Its Pods may change it meanwhile: nothing is gone through that leads elsewhere, and each file is as it
//! was at one moment where the file system can share blocks. Devices, pipes and sockets are nobody's data and are left out.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, OsStr},
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use corten_machine::tree::{self, Entry, Extent, Visitor, WalkBudget};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid, XattrFlags, chownat,
        fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat, futimens, linkat, mkdirat, openat, openat2,
        readlinkat, symlinkat,
    },
    io::Errno,
};

use super::copy::{self, Progress};

/// A folder of terabytes takes its time.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Of how many files that have several names these are kept.
const NAMED_TWICE_MAX: usize = 1 << 20;
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const STEP: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

/// Copies what is in the folder `from` into the folder `to`, which is there and nobody else's.
///
/// # Errors
/// What the file system says; that folders were moved about meanwhile.
pub(super) fn folder(from: &Path, to: &Path, progress: &Progress) -> io::Result<()> {
    let top = tree::open_folder(from)?;
    let (stat, into) = (fstat(&top)?, tree::open_folder(to)?);
    let mut copying = Copying {
        top: into.try_clone()?,
        into,
        path: PathBuf::new(),
        above: Vec::new(),
        named_twice: BTreeMap::new(),
        progress,
    };
    let extent = tree::walk(top, &mut WalkBudget::of_time(PATIENCE), &mut copying)?;
    if extent == Extent::Part {
        return Err(io::Error::other("folders were moved about while they were copied"));
    }
    describe(copying.into.as_fd(), &stat)
}

struct Copying<'p> {
    top: OwnedFd,
    /// Where what is met goes.
    into: OwnedFd,
    /// The same, from the top.
    path: PathBuf,
    /// What the folders that are gone into are like, from the top.
    above: Vec<Stat>,
    /// Of files that have several names, where they were put.
    named_twice: BTreeMap<u64, PathBuf>,
    progress: &'p Progress,
}

impl Visitor for Copying<'_> {
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        let place = match entry.open_place() {
            Ok(place) => place,
            Err(Errno::NOENT | Errno::XDEV) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let stat = fstat(&place)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                mkdirat(&self.into, entry.name, Mode::RWXU)?;
                return Ok(true);
            }
            FileType::Symlink => {
                let target = readlinkat(entry.folder, entry.name, Vec::new())?;
                symlinkat(&*target, &self.into, entry.name)?;
                let (uid, gid) = owner(&stat);
                chownat(&self.into, entry.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            FileType::RegularFile => self.file(entry)?,
            _ => {}
        }
        Ok(false)
    }

    fn enters(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        let inner = openat2(&self.into, name, FOLDER, Mode::empty(), STEP)?;
        attributes(folder, inner.as_fd())?;
        self.above.push(fstat(folder)?);
        self.into = inner;
        self.path.push(OsStr::from_bytes(name.to_bytes()));
        Ok(())
    }

    fn leaves(&mut self, _: BorrowedFd<'_>, _: &CStr) -> io::Result<()> {
        if let Some(stat) = self.above.pop() {
            describe(self.into.as_fd(), &stat)?;
        }
        // Nobody else can move what is being made.
        self.into = openat(&self.into, c"..", FOLDER, Mode::empty())?;
        self.path.pop();
        Ok(())
    }
}

impl Copying<'_> {
    fn file(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = match openat2(entry.folder, entry.name, flags, Mode::empty(), STEP) {
            Ok(from) => File::from(from),
            // It was taken away, or something else has its name by now.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::XDEV) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let stat = fstat(&from)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        if stat.st_nlink > 1 && self.linked(stat.st_ino, entry.name)? {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = File::from(openat(&self.into, entry.name, flags, Mode::RUSR | Mode::WUSR)?);
        copy::file(&from, &to, self.progress)?;
        describe(to.as_fd(), &stat)?;
        // After the owner, whose change takes a program's capabilities away.
        attributes(from.as_fd(), to.as_fd())?;
        to.sync_all()
    }

    /// Gives what was copied already this name, too.
    fn linked(&mut self, inode: u64, name: &CStr) -> io::Result<bool> {
        if let Some(first) = self.named_twice.get(&inode) {
            return match linkat(&self.top, first, &self.into, name, AtFlags::empty()) {
                Ok(()) => Ok(true),
                // More names, or longer ones, than the file system has.
                Err(Errno::NAMETOOLONG | Errno::MLINK) => Ok(false),
                Err(error) => Err(error.into()),
            };
        }
        if self.named_twice.len() < NAMED_TWICE_MAX {
            self.named_twice.insert(inode, self.path.join(OsStr::from_bytes(name.to_bytes())));
        }
        Ok(false)
    }
}

fn owner(stat: &Stat) -> (Uid, Gid) {
    (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))
}

/// Gives it the owner, mode and times of another.
fn describe(of: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
    let (uid, gid) = owner(stat);
    fchown(of, Some(uid), Some(gid))?;
    // After the owner, whose change takes rights away.
    fchmod(of, Mode::from_raw_mode(stat.st_mode))?;
    #[expect(clippy::cast_possible_wrap, reason = "below 10^9")]
    let time = |tv_sec, nanoseconds| Timespec { tv_sec, tv_nsec: nanoseconds as i64 };
    let (last_access, last_modification) =
        (time(stat.st_atime, stat.st_atime_nsec), time(stat.st_mtime, stat.st_mtime_nsec));
    Ok(futimens(of, &Timestamps { last_access, last_modification })?)
}

/// Copies extended attributes, where there are some.
fn attributes(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = match flistxattr(from, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let names: Vec<CString> = names[..length]
        .split(|it| *it == 0)
        .filter(|it| !it.is_empty())
        .filter_map(|it| CString::new(it).ok())
        .collect();
    let mut value = vec![0; if names.is_empty() { 0 } else { ATTRIBUTE_BYTES_MAX }];
    for name in names {
        let length = match fgetxattr(from, &*name, &mut value[..]) {
            Ok(length) => length,
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error.into()),
        };
        match fsetxattr(to, &*name, &value[..length], XattrFlags::empty()) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
