//! Opens what a user names beneath a folder, and never anything else: no `..`, no link that leads out.

use std::{
    io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path},
};

use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::{Mode, OFlags, ResolveFlags, fstat, mkdirat, open, openat2},
    io::Errno,
};

/// The kernel itself watches every step.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Opens `path` beneath `root`, as a place to bind from; folders that are not there are made.
pub(super) fn open_or_create(root: &Path, path: &str) -> io::Result<OwnedFd> {
    let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if path.is_empty() {
        return Ok(root);
    }
    match step(&root, Path::new(path)) {
        Err(Errno::NOENT) => create(root, Path::new(path)),
        other => Ok(other?),
    }
}

fn step(folder: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    openat2(folder, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), RESOLVE)
}

/// Walks the path from the root, so that a link inside the volume may lead anywhere in the volume. Whoever may write to the
/// volume may write to what is made in it (upstream's `SafeMakeDir`).
fn create(root: OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut walked = std::path::PathBuf::new();
    let mut here = step(&root, Path::new("."))?;
    let mode = Mode::from_raw_mode(fstat(&root)?.st_mode & 0o777);
    for component in path.components() {
        let Component::Normal(name) = component else { return Err(Errno::XDEV.into()) };
        walked.push(name);
        here = match step(&root, &walked) {
            Err(Errno::NOENT) => {
                match mkdirat(&here, name, Mode::RWXU) {
                    Ok(()) => {}
                    Err(Errno::EXIST) => {
                        here = step(&here, Path::new(name))?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
                let made = step(&here, Path::new(name))?;
                // The process's umask does not reach it; a set-group-ID bit that it got from the folder above stays.
                let place = format!("/proc/self/fd/{}", made.as_raw_fd());
                let kept = fstat(&made)?.st_mode & 0o2000;
                std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode.as_raw_mode() | kept))?;
                made
            }
            other => other?,
        };
    }
    Ok(here)
}

/// What a file beneath `root` holds; nothing where there is none.
pub(super) fn read(root: &Path, path: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    // A pipe that nobody writes to must not hold us up.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat2(root, path, flags, Mode::empty(), RESOLVE) {
        Err(Errno::NOENT) => return Ok(None),
        other => std::fs::File::from(other.map_err(|it| explain(path, it.into()))?),
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > bytes_max {
        let why = format!("{path} is no file of at most {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut content = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, bytes_max), &mut content)?;
    Ok(Some(content))
}

/// The kernel's word for "leads out" is cryptic.
pub(super) fn explain(path: &str, error: io::Error) -> io::Error {
    match error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) {
        true => io::Error::new(error.kind(), format!("{path} leads out of the volume")),
        false => error,
    }
}
