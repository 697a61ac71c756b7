//! What is written down of one volume.

use serde::{Deserialize, Serialize};

use crate::file_system::Kind;

/// What a volume is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A folder, without a limit.
    Folder,
    /// A folder whose size a project quota holds.
    Quota,
    /// A file that is a disk.
    Disk,
    /// A file with a file system in it.
    FileSystem(Kind),
}

impl Form {
    pub(super) fn is_block(self) -> bool {
        self == Self::Disk
    }

    /// Is it a folder of the disk, without a file system of its own?
    pub(super) fn is_folder(self) -> bool {
        matches!(self, Self::Folder | Self::Quota)
    }

    /// As it is written down.
    fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Quota => "quota",
            Self::Disk => "disk",
            Self::FileSystem(kind) => kind.as_str(),
        }
    }

    fn parse(written: &str) -> Option<Self> {
        match written {
            "folder" => Some(Self::Folder),
            "quota" => Some(Self::Quota),
            "disk" => Some(Self::Disk),
            "ext4" => Some(Self::FileSystem(Kind::Ext4)),
            "xfs" => Some(Self::FileSystem(Kind::Xfs)),
            _ => None,
        }
    }

    pub(super) fn fs_type(self) -> &'static str {
        match self {
            Self::FileSystem(kind) => kind.as_str(),
            Self::Folder | Self::Quota | Self::Disk => "",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) handle: String,
    pub(super) bytes: u64,
    pub(super) form: Form,
    /// Nobody has had it: its file system is made when somebody first does.
    pub(super) blank: bool,
    /// Its file is larger than what is in it.
    pub(super) grows: bool,
    /// So much of it was another's, too, when it was made, and takes room of its own when it is written anew.
    pub(super) shared: u64,
    /// The number of the project whose quota holds its size.
    pub(super) project: Option<u32>,
}

/// What was kept of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnapshotRecord {
    pub(super) handle: String,
    /// The volume's handle.
    pub(super) source: String,
    /// How large the volume was.
    pub(super) bytes: u64,
    pub(super) form: Form,
    pub(super) blank: bool,
    pub(super) grows: bool,
    /// So much of it was the volume's, too, when it was taken, and is its alone when that is written anew.
    pub(super) shared: u64,
    /// Nanoseconds since 1970.
    pub(super) created_at: i64,
}

/// As it is on disk.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VolumeRecord {
    bytes: u64,
    /// `folder`, `quota`, `disk`, or the file system's name.
    form: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blank: bool,
    #[serde(default)]
    grows: bool,
    #[serde(default)]
    shared: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WrittenKept {
    source: String,
    bytes: u64,
    form: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blank: bool,
    grows: bool,
    shared: u64,
    created_at: i64,
}

impl Volume {
    pub(super) fn written(&self) -> VolumeRecord {
        let Self { bytes, blank, grows, shared, project, .. } = *self;
        VolumeRecord { bytes, form: self.form.as_str().to_owned(), blank, grows, shared, project }
    }

    /// `None`: it is of a form that this version does not know.
    pub(super) fn read(handle: &str, written: &VolumeRecord) -> Option<Self> {
        let VolumeRecord { bytes, blank, grows, shared, project, .. } = *written;
        let form = Form::parse(&written.form)?;
        Some(Self { handle: handle.to_owned(), bytes, form, blank, grows, shared, project })
    }
}

impl SnapshotRecord {
    pub(super) fn written(&self) -> WrittenKept {
        let Self { bytes, blank, grows, shared, created_at, .. } = *self;
        WrittenKept {
            source: self.source.clone(),
            bytes,
            form: self.form.as_str().to_owned(),
            blank,
            grows,
            shared,
            created_at,
        }
    }

    /// `None`: it is of a form that this version does not know.
    pub(super) fn read(handle: &str, written: WrittenKept) -> Option<Self> {
        let form = Form::parse(&written.form)?;
        let WrittenKept { source, bytes, blank, grows, shared, created_at, .. } = written;
        Some(Self { handle: handle.to_owned(), source, bytes, form, blank, grows, shared, created_at })
    }
}
