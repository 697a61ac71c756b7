//! What lies in a pod's volumes, as the host is told to make it.

use std::{fmt, sync::Arc};

use crate::words::persistent::PersistentMount;

/// Whom a pod's volumes are given to (`fsGroup`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeGroup {
    pub gid: i64,
    /// `fsGroupChangePolicy: OnRootMismatch`: a volume whose top folder is as it must be is left alone.
    pub only_on_root_mismatch: bool,
}

/// One volume of a pod; its content lies in the pod's folder under its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    pub name: String,
    pub source: VolumeSource,
}

#[derive(Clone, Debug, PartialEq)]
pub enum VolumeSource {
    /// Of this medium, and not larger; what is in it stays.
    EmptyDir { medium: Medium, size_limit_bytes: Option<i64>, mode: u32 },
    /// Nothing is made in the pod's folder; only `kind` is checked or created.
    HostPath { path: String, kind: HostPathType },
    /// A folder with exactly these files, changed all at once (`..data` points at the newest generation).
    Files { plugin: Plugin, files: Vec<VolumeFile> },
    /// What outlives the pod, mounted for it.
    Persistent(Box<PersistentMount>),
}

/// What an emptyDir is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A folder.
    Disk,
    /// A tmpfs.
    Memory,
    /// A hugetlbfs of pages of so many bytes.
    HugePages { page_bytes: u64 },
}

/// Upstream's word for a kind of volume, which is also a step of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    EmptyDir,
    ConfigMap,
    Secret,
    DownwardApi,
    Projected,
    LocalVolume,
    Nfs,
    Csi,
}

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

#[derive(Clone, PartialEq, Eq)]
pub struct VolumeFile {
    /// Relative, without `..`.
    pub path: String,
    pub mode: u32,
    /// Root's where nobody is named.
    pub user: Option<u32>,
    /// Shared with the ConfigMap or Secret it comes from.
    pub content: Arc<[u8]>,
}

/// Without the content: it may be a Secret's.
impl fmt::Debug for VolumeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeFile").field("path", &self.path).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Plugin {
    /// `configmap`: the path is `volumes/kubernetes.io~configmap/NAME`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyDir => "empty-dir",
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
            Self::DownwardApi => "downward-api",
            Self::Projected => "projected",
            Self::LocalVolume => "local-volume",
            Self::Nfs => "nfs",
            Self::Csi => "csi",
        }
    }
}
