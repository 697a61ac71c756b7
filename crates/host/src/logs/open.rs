//! Opens a log, and never anything that somebody put in its place: who may write beneath the folder of logs may not read
//! the node's other files through it.

use std::{fs::File, io, path::Path};

use rustix::fs::{Mode, OFlags, ResolveFlags, open as open_at, openat2};

/// A log lies in its container's folder in its pod's.
const DEPTH: usize = 3;

/// The kernel watches every step below the folder of all logs: no link, nothing that leads out.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// # Errors
/// As of opening files; also where it is no file.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let root = path.ancestors().nth(DEPTH).unwrap_or_else(|| Path::new("/"));
    let below = path.strip_prefix(root).map_err(io::Error::other)?;
    let root = open_at(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // A pipe without a writer would be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat2(root, below, flags, Mode::empty(), RESOLVE)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no log", path.display())));
    }
    Ok(file)
}
