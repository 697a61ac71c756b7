//! The checks a hostPath asks for, with upstream's words where they fail.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
};

use corten_kubelet::HostPathType;

use super::{Doing, VolumeError};

/// Is there at `path` what the type says? Two types make it.
pub(super) fn check(kind: HostPathType, path: &Path) -> Result<(), VolumeError> {
    let found = match fs::metadata(path) {
        Ok(meta) => Some(meta.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).doing("look at", path),
    };
    let (matches, noun) = match kind {
        HostPathType::Unset => return Ok(()),
        HostPathType::DirectoryOrCreate if found.is_none() => return make_folder(path),
        HostPathType::FileOrCreate if found.is_none() => return make_file(path),
        HostPathType::DirectoryOrCreate | HostPathType::Directory => (found.is_some_and(|it| it.is_dir()), "directory"),
        HostPathType::FileOrCreate | HostPathType::File => (found.is_some_and(|it| it.is_file()), "file"),
        HostPathType::Socket => (found.is_some_and(|it| it.is_socket()), "socket file"),
        HostPathType::CharDevice => (found.is_some_and(|it| it.is_char_device()), "character device"),
        HostPathType::BlockDevice => (found.is_some_and(|it| it.is_block_device()), "block device"),
    };
    match matches {
        true => Ok(()),
        false => Err(VolumeError::Refused(format!("hostPath type check failed: {} is not a {noun}", path.display()))),
    }
}

fn make_folder(path: &Path) -> Result<(), VolumeError> {
    fs::create_dir_all(path).doing("create", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).doing("set the mode of", path)
}

/// `FileOrCreate` makes no folder: the one it lies in must be there.
fn make_file(path: &Path) -> Result<(), VolumeError> {
    fs::OpenOptions::new().create(true).append(true).open(path).map(drop).doing("create", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).doing("set the mode of", path)
}
