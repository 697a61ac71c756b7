//! Files that a node believes after a boot: each is there whole, or as it was before.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Replaces the file, which stands beside its place until it is whole. When this returns, a power cut takes nothing of it.
///
/// # Errors
/// What the file system says; the file is as it was before.
pub fn write_whole(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    // One that a crash left may have another mode.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    match path.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_with_its_own_mode() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("key");
        fs::write(dir.path().join("key.new"), "half of an earl").expect("left by a crash");
        for text in ["one", "the other"] {
            write_whole(&path, 0o600, text.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!dir.path().join("key.new").exists());
        assert!(write_whole(&dir.path().join("no/folder"), 0o600, b"").is_err());
    }
}
