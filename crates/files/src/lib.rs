//! Files that an administrator writes and the server reads: whole, within bounds, and without waiting for anybody.
//!
//! A pipe holds whoever opens it until somebody writes, some devices do something when they are opened, and others never come
//! to an end. None of them can be read again when it changes either, as most of these files are.

mod refusal;

use std::{
    fs::{self, File, OpenOptions},
    io::{Error, ErrorKind, Read, Result},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

pub use refusal::{Refusal, RefusedFile};

/// A configuration is no larger, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// All that is in a regular file, or in the one that a link leads to.
///
/// # Errors
/// There is none, it may not be read, it is something else than a regular file, or it is longer than 64 MiB.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("longer than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// As [`read`].
///
/// # Errors
/// As [`read`], and where it is no UTF-8.
pub fn read_to_string(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

fn open(path: &Path) -> Result<File> {
    // Not even opened: that alone may wind a tape back.
    regular(&fs::metadata(path)?)?;
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // It may be another by now.
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(found: &fs::Metadata) -> Result<()> {
    if found.is_file() { Ok(()) } else { Err(Error::new(ErrorKind::InvalidInput, "not a regular file")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nobody_waits() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").expect("written");
        symlink(at("file"), at("link")).expect("linked");
        for name in ["file", "link"] {
            assert_eq!(read_to_string(&at(name)).expect("it can be read"), "text");
        }
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        symlink(at("pipe"), at("hidden")).expect("linked");
        for path in [at("pipe"), at("hidden"), at("."), "/dev/zero".into(), "/dev/null".into()] {
            let error = read(&path).expect_err("it is no regular file");
            assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
        }
        assert_eq!(read(&at("none")).map_err(|it| it.kind()), Err(ErrorKind::NotFound));
    }

    #[test]
    fn what_is_endless_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("long");
        // Of holes: it takes no room.
        File::create(&path).and_then(|it| it.set_len(BYTES_MAX + 1)).expect("made");
        assert_eq!(read(&path).map_err(|it| it.kind()), Err(ErrorKind::FileTooLarge));
        fs::write(&path, [0xff]).expect("written");
        assert_eq!(read_to_string(&path).map_err(|it| it.kind()), Err(ErrorKind::InvalidData));
    }
}
