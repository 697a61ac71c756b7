//! A folder once more, with all in it: files with their holes, owners, modes, times, extended attributes and further names;
//! links as links. Its Pods may change it meanwhile: nothing is gone through that leads elsewhere, and each file is as it
//! was at one moment where the file system can share blocks. Devices, pipes and sockets are nobody's data and are left out.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString},
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use corten_machine::tree::{self, Entry, Extent, Visitor, WalkBudget};
use rustix::{
    fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, StatxFlags, Timespec, Timestamps, Uid, XattrFlags,
        chownat, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat, futimens, linkat, mkdirat, openat, openat2,
        readlinkat, renameat, statat, statx, symlinkat,
    },
    io::Errno,
};

use super::{
    allowance::{Allowance, Amount},
    copy,
};

/// A folder of terabytes takes its time.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Beside the copy: of each file that has several names one more, by which it is found again. However deep the copy is and however many
/// there are, that is one step.
const NAMES: &str = "names";
/// So many pieces of the numbers of files are kept in memory while what is there is counted.
const PIECES_MAX: usize = 1 << 20;
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const STEP: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

/// Copies what is in the folder `from` into the folder `to`, which is there and nobody else's, as is the folder that it is in.
///
/// # Errors
/// What the file system says; that folders were moved about meanwhile; what is not allowed, with the [`Fault`](crate::Fault).
pub(super) fn folder(from: &Path, to: &Path, allowance: &Allowance<'_>) -> io::Result<()> {
    let top = tree::open_folder(from)?;
    let stat = fstat(&top)?;
    let names = to.with_file_name(NAMES);
    fs::create_dir(&names)?;
    let mut copying = Copying::begin(to, &names, allowance)?;
    let extent = tree::walk(top, &mut WalkBudget::of_time(PATIENCE), &mut copying)?;
    if extent == Extent::Part {
        return Err(io::Error::other("folders were moved about while they were copied"));
    }
    describe(copying.into.as_fd(), &stat)?;
    tree::remove_within(&names, &mut WalkBudget::of_time(PATIENCE))
}

/// How much a copy of the folder would take.
///
/// # Errors
/// What the file system says.
pub(super) fn measure(folder: &Path) -> io::Result<Amount> {
    let top = tree::open_folder(folder)?;
    let mut measuring = Measuring { disk: fstat(&top)?.st_dev, seen: BTreeMap::new(), amount: Amount::default() };
    tree::walk(top, &mut WalkBudget::of_time(PATIENCE), &mut measuring)?;
    Ok(measuring.amount)
}

struct Measuring {
    disk: u64,
    /// The numbers of what was counted, 64 in a piece: what has several names, or is moved meanwhile, counts once.
    seen: BTreeMap<u64, u64>,
    amount: Amount,
}

impl Visitor for Measuring {
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        let stat = match statat(entry.folder, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if stat.st_dev == self.disk => stat,
            Ok(_) | Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !self.is_new(stat.st_ino) {
            return Ok(kind == FileType::Directory);
        }
        let blocks = u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512);
        let is_less = kind == FileType::RegularFile && u64::try_from(stat.st_size).is_ok_and(|it| it > blocks);
        let data = if is_less { open_file(entry)?.map(|it| copy::data_bytes(&it)).transpose()? } else { None };
        self.amount.bytes = self.amount.bytes.saturating_add(data.unwrap_or_default().max(blocks));
        self.amount.inodes += 1;
        Ok(kind == FileType::Directory)
    }
}

impl Measuring {
    fn is_new(&mut self, inode: u64) -> bool {
        let (piece, bit) = (inode / 64, 1 << (inode % 64));
        if self.seen.len() >= PIECES_MAX && !self.seen.contains_key(&piece) {
            return true;
        }
        let seen = self.seen.entry(piece).or_default();
        let is_new = *seen & bit == 0;
        *seen |= bit;
        is_new
    }
}

struct Copying<'p> {
    /// See [`NAMES`].
    names: OwnedFd,
    /// Where what is met goes.
    into: OwnedFd,
    /// What the folders that are gone into are like, from the top.
    above: Vec<Stat>,
    allowance: &'p Allowance<'p>,
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
                self.allowance.makes_inode()?;
                mkdirat(&self.into, entry.name, Mode::RWXU)?;
                return Ok(true);
            }
            FileType::Symlink => {
                self.allowance.makes_inode()?;
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
        Ok(())
    }

    fn leaves(&mut self, _: BorrowedFd<'_>, _: &CStr) -> io::Result<()> {
        if let Some(stat) = self.above.pop() {
            describe(self.into.as_fd(), &stat)?;
        }
        // Nobody else can move what is being made.
        self.into = openat(&self.into, c"..", FOLDER, Mode::empty())?;
        Ok(())
    }
}

impl<'p> Copying<'p> {
    fn begin(to: &Path, names: &Path, allowance: &'p Allowance<'p>) -> io::Result<Self> {
        let (into, names) = (tree::open_folder(to)?, tree::open_folder(names)?);
        Ok(Self { names, into, above: Vec::new(), allowance })
    }

    fn file(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let Some(from) = open_file(entry)? else { return Ok(()) };
        let stat = fstat(&from)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        let kept_as = if stat.st_nlink > 1 { Some(identity(&from)?) } else { None };
        if let Some(kept) = &kept_as
            && self.linked(kept, entry.name)?
        {
            return Ok(());
        }
        self.allowance.makes_inode()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = File::from(openat(&self.into, entry.name, flags, Mode::RUSR | Mode::WUSR)?);
        copy::file(&from, &to, self.allowance)?;
        describe(to.as_fd(), &stat)?;
        // After the owner, whose change takes a program's capabilities away.
        attributes(from.as_fd(), to.as_fd())?;
        if let Some(kept) = &kept_as {
            linkat(&self.into, entry.name, &self.names, kept, AtFlags::empty())?;
        }
        to.sync_all()
    }

    /// Gives what was copied already this name, too.
    fn linked(&mut self, kept: &str, name: &CStr) -> io::Result<bool> {
        match linkat(&self.names, kept, &self.into, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            // The file system gives no file more names, and one of them is ours.
            Err(Errno::MLINK) => Ok(renameat(&self.names, kept, &self.into, name).map(|()| true)?),
            Err(error) => Err(error.into()),
        }
    }
}

/// `None`: it was taken away, or something else has its name by now.
fn open_file(entry: &Entry<'_>) -> io::Result<Option<File>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(entry.folder, entry.name, flags, Mode::empty(), STEP) {
        // A device begins to work when it is opened: it is known that this is none, whatever has the name by now.
        Ok(found) if FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::RegularFile => {
            Ok(Some(File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?))
        }
        Ok(_) => Ok(None),
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::XDEV) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What tells a file from others, also from one that has its number when it is gone.
fn identity(file: &File) -> io::Result<String> {
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME)?;
    Ok(format!("{}-{}-{}", stat.stx_ino, stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
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

#[cfg(test)]
mod tests;
