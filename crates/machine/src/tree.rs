//! Walks a tree of folders that strangers have shaped: a container's files.
//!
//! Nothing of it can lead elsewhere or use up the process: the walk does not recurse, holds a few open files however deep the
//! tree is, goes by names relative to an open folder (so that no path is too long), never through a link and never into
//! another mount, and ends at a bound. It goes up by `..`, and only into the folder that it came from.
//!
//! The standard library's removal and the crates for walking recurse, hold a file for each level, or go by whole paths.

#[cfg(any(test, feature = "deep"))]
pub mod deep;
mod remove;

use std::{
    ffi::{CStr, CString},
    io,
    mem::MaybeUninit,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};

pub use remove::{remove, remove_within};

/// How a folder is opened to be read.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The kernel itself sees to it that one step stays where it is.
const STEP: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);
/// What the names of folders that are still to be visited may take in memory.
const NAMES_BYTES_MAX: usize = 64 << 20;
const READ_BYTES: usize = 32 << 10;
/// How many levels from the top stay open while the walk is below them.
const LEVELS_HELD: usize = 16;

/// What a walk may take. One bound may hold for several walks together.
#[derive(Debug)]
pub struct WalkBudget {
    pub until: Instant,
    pub entries: u64,
}

impl WalkBudget {
    pub fn new(time: Duration, entries: u64) -> Self {
        Self { until: Instant::now() + time, entries }
    }

    /// For a walk whose every step must be done, however many there are.
    pub fn of_time(time: Duration) -> Self {
        Self::new(time, u64::MAX)
    }

    fn take(&mut self) -> io::Result<()> {
        // Asking for the time at each entry would cost more than the entry.
        if self.entries == 0 || (self.entries.is_multiple_of(64) && Instant::now() > self.until) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "more is in it than can be gone through at once"));
        }
        self.entries -= 1;
        Ok(())
    }
}

/// Something in a folder.
pub struct Entry<'a> {
    pub folder: BorrowedFd<'a>,
    pub name: &'a CStr,
    /// As the folder said it: another may stand there by now, and some file systems do not say.
    pub kind: FileType,
}

impl Entry<'_> {
    /// Opens it as a place, whatever it is, unless something is mounted there.
    pub fn open_place(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Where a link itself is the place, none is gone through.
        openat2(self.folder, self.name, flags, Mode::empty(), STEP.difference(ResolveFlags::NO_SYMLINKS))
    }
}

/// What is done with a tree.
pub trait Visitor {
    /// Tells whether it is a folder to go into.
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool>;

    /// What is in this folder, of the one that was entered last, is met next.
    fn enters(&mut self, _folder: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        Ok(())
    }

    /// All that is in the folder `name` of `parent` has been met.
    fn leaves(&mut self, _parent: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        Ok(())
    }
}

/// Opens the folder at `path`, whose last step must be no link.
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, FOLDER, Mode::empty())?)
}

/// How much of a tree was walked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Something was left out: folders were moved about meanwhile, or one held too many to note.
    Part,
}

/// Visits all that is in the folder `top`. What goes away meanwhile, or turns into something else, is not there.
///
/// # Errors
/// The visitor's; `TimedOut` at the bound.
pub fn walk(top: OwnedFd, bound: &mut WalkBudget, visitor: &mut impl Visitor) -> io::Result<Extent> {
    let buffer = Box::new([MaybeUninit::uninit(); READ_BYTES]);
    let mut walk = Walk { levels: Vec::new(), names_bytes: 0, buffer, extent: Extent::Whole };
    walk.enter(top, CString::default(), bound, visitor)?;
    while let Some(level) = walk.levels.last_mut() {
        match level.names.pop() {
            Some(name) => {
                walk.names_bytes -= name.as_bytes_with_nul().len();
                match openat2(level.open(), &*name, FOLDER, Mode::empty(), STEP) {
                    Ok(inner) => {
                        visitor.enters(inner.as_fd(), &name)?;
                        walk.enter(inner, name, bound, visitor)?;
                    }
                    // It was taken away, something else has its name, or something is mounted there.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            None => walk.leave(visitor)?,
        }
    }
    Ok(walk.extent)
}

struct Walk {
    /// From the top to the folder that is being read.
    levels: Vec<Level>,
    names_bytes: usize,
    buffer: Box<[MaybeUninit<u8>; READ_BYTES]>,
    extent: Extent,
}

struct Level {
    /// What it is called in the folder above.
    name: CString,
    identity: (u64, u64),
    /// Which folders in it are still to be gone into.
    names: Names,
    /// Open as long as it is the last level, and among the first ones always.
    folder: Option<OwnedFd>,
}

impl Level {
    fn open(&self) -> &OwnedFd {
        self.folder.as_ref().expect("the last level is open")
    }
}

impl Walk {
    /// Meets all that is in a folder, and makes it the last level.
    fn enter(
        &mut self,
        folder: OwnedFd,
        name: CString,
        bound: &mut WalkBudget,
        visitor: &mut impl Visitor,
    ) -> io::Result<()> {
        let mut names = Names::default();
        let mut entries = RawDir::new(&folder, &mut self.buffer[..]);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // It was removed after it was opened.
                Err(Errno::NOENT) => break,
                Err(error) => return Err(error.into()),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            bound.take()?;
            if visitor.meets(&Entry { folder: folder.as_fd(), name, kind: entry.file_type() })? {
                names.push(name);
                self.names_bytes += name.to_bytes_with_nul().len();
                // One can always be noted, so that each walk gets on.
                if self.names_bytes > NAMES_BYTES_MAX {
                    self.extent = Extent::Part;
                    break;
                }
            }
        }
        if self.levels.len() > LEVELS_HELD
            && let Some(above) = self.levels.last_mut()
        {
            above.folder = None;
        }
        self.levels.push(Level { name, identity: identity(&folder)?, names, folder: Some(folder) });
        Ok(())
    }

    /// Goes up, when nothing is left to be gone into.
    fn leave(&mut self, visitor: &mut impl Visitor) -> io::Result<()> {
        let left = self.levels.pop().expect("there is a level to leave");
        let Some(above) = self.levels.last_mut() else { return Ok(()) };
        if above.folder.is_none() {
            let parent = openat(left.open(), c"..", FOLDER, Mode::empty())?;
            if identity(&parent)? != above.identity {
                // It was moved: the walk goes on in the last folder that nobody can take away.
                let lost = self.levels.split_off(LEVELS_HELD);
                self.names_bytes -= lost.iter().map(|it| it.names.0.len()).sum::<usize>();
                self.extent = Extent::Part;
                return Ok(());
            }
            above.folder = Some(parent);
        }
        visitor.leaves(above.open().as_fd(), &left.name)
    }
}

fn identity(folder: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Names one behind the other, each with its zero byte: a million of them are one piece of memory.
#[derive(Default)]
struct Names(Vec<u8>);

impl Names {
    fn push(&mut self, name: &CStr) {
        self.0.extend_from_slice(name.to_bytes_with_nul());
    }

    /// The last one.
    fn pop(&mut self) -> Option<CString> {
        let end = self.0.len().checked_sub(1)?;
        let begin = self.0[..end].iter().rposition(|it| *it == 0).map_or(0, |it| it + 1);
        let name = CString::from_vec_with_nul(self.0.split_off(begin)).expect("each was put in with its zero byte");
        Some(name)
    }
}

#[cfg(test)]
mod tests;
