//! What is written down of one volume.

use serde::{Deserialize, Serialize};

use crate::file_system::Kind;

/// What a volume is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A folder, without a limit.
    Folder,
    /// A file that is a disk.
    Disk,
    /// A file with a file system in it.
    FileSystem(Kind),
}

impl Form {
    pub(super) fn is_block(self) -> bool {
        self == Self::Disk
    }

    pub(super) fn fs_type(self) -> &'static str {
        match self {
            Self::FileSystem(kind) => kind.as_str(),
            Self::Folder | Self::Disk => "",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) handle: String,
    pub(super) bytes: u64,
    pub(super) form: Form,
    /// Its file is larger than what is in it.
    pub(super) grows: bool,
}

/// As it is on disk.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Written {
    bytes: u64,
    /// `folder`, `disk`, or the file system's name.
    form: String,
    #[serde(default)]
    grows: bool,
}

impl Volume {
    pub(super) fn written(&self) -> Written {
        let form = match self.form {
            Form::Folder => "folder",
            Form::Disk => "disk",
            Form::FileSystem(kind) => kind.as_str(),
        };
        Written { bytes: self.bytes, form: form.to_owned(), grows: self.grows }
    }

    /// `None`: it is of a form that this version does not know.
    pub(super) fn read(handle: &str, written: &Written) -> Option<Self> {
        let form = match written.form.as_str() {
            "folder" => Form::Folder,
            "disk" => Form::Disk,
            "ext4" => Form::FileSystem(Kind::Ext4),
            "xfs" => Form::FileSystem(Kind::Xfs),
            _ => return None,
        };
        Some(Self { handle: handle.to_owned(), bytes: written.bytes, form, grows: written.grows })
    }
}
