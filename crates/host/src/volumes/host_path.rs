//! The checks a hostPath asks for, with upstream's words where they fail.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
    str::FromStr,
};

use super::{Doing, VolumeError};

/// `hostPath.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPathType {
    /// No check; what is not there is made a folder by the runtime.
    Unset,
    DirectoryOrCreate,
    Directory,
    FileOrCreate,
    File,
    Socket,
    CharDevice,
    BlockDevice,
}

impl FromStr for HostPathType {
    type Err = VolumeError;

    fn from_str(text: &str) -> Result<Self, VolumeError> {
        Ok(match text {
            "" => Self::Unset,
            "DirectoryOrCreate" => Self::DirectoryOrCreate,
            "Directory" => Self::Directory,
            "FileOrCreate" => Self::FileOrCreate,
            "File" => Self::File,
            "Socket" => Self::Socket,
            "CharDevice" => Self::CharDevice,
            "BlockDevice" => Self::BlockDevice,
            other => return Err(VolumeError::Refused(format!("{other} is an invalid volume type"))),
        })
    }
}

impl HostPathType {
    /// Is there at `path` what the type says? Two types make it.
    pub(super) fn check(self, path: &Path) -> Result<(), VolumeError> {
        let found = match fs::metadata(path) {
            Ok(meta) => Some(meta.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).doing("look at", path),
        };
        let (matches, noun) = match self {
            Self::Unset => return Ok(()),
            Self::DirectoryOrCreate if found.is_none() => return make_folder(path),
            Self::FileOrCreate if found.is_none() => return make_file(path),
            Self::DirectoryOrCreate | Self::Directory => (found.is_some_and(|it| it.is_dir()), "directory"),
            Self::FileOrCreate | Self::File => (found.is_some_and(|it| it.is_file()), "file"),
            Self::Socket => (found.is_some_and(|it| it.is_socket()), "socket file"),
            Self::CharDevice => (found.is_some_and(|it| it.is_char_device()), "character device"),
            Self::BlockDevice => (found.is_some_and(|it| it.is_block_device()), "block device"),
        };
        match matches {
            true => Ok(()),
            false => {
                Err(VolumeError::Refused(format!("hostPath type check failed: {} is not a {noun}", path.display())))
            }
        }
    }
}

fn make_folder(path: &Path) -> Result<(), VolumeError> {
    fs::create_dir_all(path).doing("create", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).doing("set the mode of", path)
}

/// As upstream: the folder it lies in must be there.
fn make_file(path: &Path) -> Result<(), VolumeError> {
    fs::OpenOptions::new().create(true).append(true).open(path).map(drop).doing("create", path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).doing("set the mode of", path)
}
