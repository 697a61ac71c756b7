//! What a sample has: written down whole at each change, so that one that is killed finds it again.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{SHA256, digest};
use corten_machine::write_whole;
use serde::{Deserialize, Serialize};

use crate::{Code, Fault, with_faults_named};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// By id.
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    #[serde(skip)]
    folder: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Volume {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) is_block: bool,
    pub(super) source: Option<Source>,
    pub(super) mutable: BTreeMap<String, String>,
    /// By node: read-only?
    pub(super) attached: BTreeMap<String, bool>,
    /// Where it is mounted, with the file of a disk's mount.
    pub(super) published: BTreeMap<String, bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Source {
    Snapshot(String),
    Volume(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) bytes: u64,
    /// Since 1970.
    pub(super) seconds: i64,
}

impl State {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder.join("volumes"))?;
        fs::create_dir_all(folder.join("snapshots"))?;
        let read = match fs::read(folder.join("state.json")) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(error),
        };
        Ok(Self { folder: folder.to_owned(), ..read })
    }

    pub(super) fn save(&self) -> Result<(), Fault> {
        let text = serde_json::to_vec_pretty(self).map_err(Fault::internal)?;
        with_faults_named(write_whole(&self.folder.join("state.json"), 0o600, &text), "write down the state")
    }

    /// Where a volume's files are: a folder, or the folder with its disk.
    pub(super) fn volume_folder(&self, id: &str) -> PathBuf {
        self.folder.join("volumes").join(id)
    }

    pub(super) fn snapshot_folder(&self, id: &str) -> PathBuf {
        self.folder.join("snapshots").join(id)
    }

    pub(super) fn disk(&self, id: &str) -> PathBuf {
        self.volume_folder(id).join("disk")
    }

    pub(super) fn volume(&self, id: &str) -> Result<&Volume, Fault> {
        if id.is_empty() {
            return Err(Fault::new(Code::InvalidArgument, "volume id missing in request"));
        }
        self.volumes.get(id).ok_or_else(|| Fault::new(Code::NotFound, format!("volume {id} not found")))
    }

    pub(super) fn volume_mut(&mut self, id: &str) -> Result<&mut Volume, Fault> {
        self.volume(id)?;
        self.volumes.get_mut(id).ok_or_else(|| Fault::internal("it was there"))
    }

    pub(super) fn taken_bytes(&self) -> u64 {
        self.volumes.values().map(|it| it.bytes).sum()
    }
}

/// The same for the same name, and never a step of a path.
pub(in crate::csi) fn id_of(prefix: &str, name: &str) -> String {
    let hash = digest(&SHA256, name.as_bytes());
    hash.as_ref().iter().take(8).fold(prefix.to_owned(), |id, it| format!("{id}{it:02x}"))
}

/// Copies what is in a folder: of a sample's own, which holds files and folders.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
