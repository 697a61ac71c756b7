//! What is written down of mounts, as the kubelet writes it (`vol_data.json`): for whom one was made, so that it is taken away
//! again whatever came between. Whether something is mounted is the kernel's to say.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{SHA256, digest};
use corten_machine::{Layout, write_whole};
use serde::{Deserialize, Serialize};

use crate::{Code, Fault, with_faults_named};

const FILE: &str = "vol_data.json";

/// Whose mount it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    pub(crate) driver_name: String,
    pub(crate) volume_handle: String,
    /// `Persistent` or `Ephemeral`.
    pub(crate) volume_lifecycle_mode: String,
    /// `Block` or `Filesystem`.
    pub(crate) volume_mode: String,
    #[serde(rename = "specVolID")]
    pub(crate) name: String,
    /// Of the class's `fsType`; what a staged volume's growing needs.
    pub(crate) fs_type: String,
    /// Of what a Pod is given: whose it is, for who tells of it. Upstream's kubelet passes over these.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) pod_namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) pod_name: String,
    /// The Pod's own name for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) pod_volume: String,
    /// Empty: it is in the Pod itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) claim_name: String,
}

impl Record {
    pub(crate) fn is_block(&self) -> bool {
        self.volume_mode == "Block"
    }
}

/// What one Pod was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) uid: String,
    pub(crate) folder: PathBuf,
    pub(crate) record: Record,
}

/// Whose mounts the kernel alone has made: the folders beneath a Pod's that they are in are called so.
pub(crate) const KERNEL_PLUGINS: [&str; 2] = ["local-volume", "nfs"];

/// The folder of what a Pod has alone is called after it.
const HELD: &str = "single-pod";

/// Where the records of one node lie.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    layout: Layout,
}

impl Records {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout }
    }

    /// The folder of a volume that is staged by a driver.
    pub(crate) fn staged_folder(&self, driver: &str, handle: &str) -> PathBuf {
        let hash = digest(&SHA256, handle.as_bytes());
        let hex: String = hash.as_ref().iter().map(|it| format!("{it:02x}")).collect();
        self.layout.staged_volumes().join(driver).join(hex)
    }

    /// The folder of what a Pod is given; the mount is in it, at `mount`.
    pub(crate) fn published_folder(&self, uid: &str, plugin: &str, name: &str) -> Result<PathBuf, Fault> {
        let plugin = format!("kubernetes.io~{}", name_of(plugin)?);
        Ok(self.layout.pod(name_of(uid)?).join("volumes").join(plugin).join(name_of(name)?))
    }

    /// Where a Pod finds a volume that is a device.
    pub(crate) fn device(&self, uid: &str, name: &str) -> Result<PathBuf, Fault> {
        Ok(self.layout.pod(name_of(uid)?).join("volumeDevices/kubernetes.io~csi").join(name_of(name)?))
    }

    /// All that drivers have published for a Pod.
    pub(crate) fn of_pod(&self, uid: &str) -> Result<Vec<Published>, Fault> {
        let folder = self.layout.pod(name_of(uid)?).join("volumes/kubernetes.io~csi");
        let read = children(&folder).into_iter().filter_map(|folder| {
            let record = read(&folder)?;
            Some(Published { uid: uid.to_owned(), folder, record })
        });
        Ok(read.collect())
    }

    /// All that drivers have published for anybody.
    pub(crate) fn published(&self) -> Vec<Published> {
        let uids = children(&self.layout.pods());
        let uids = uids.iter().filter_map(|it| it.file_name()?.to_str());
        uids.flat_map(|it| self.of_pod(it).unwrap_or_default()).collect()
    }

    /// The folder of what is written down of a mount that the kernel alone has made. It is not beside the mount: whatever is
    /// there is a mount.
    pub(crate) fn kernel_folder(&self, uid: &str, plugin: &str, name: &str) -> Result<PathBuf, Fault> {
        let plugin = format!("kubernetes.io~{}", name_of(plugin)?);
        Ok(self.layout.pod(name_of(uid)?).join("plugins").join(plugin).join(name_of(name)?))
    }

    /// The folder of what is written down of a volume that the Pod has alone, and no driver has.
    pub(crate) fn held_folder(&self, uid: &str, name: &str) -> Result<PathBuf, Fault> {
        self.kernel_folder(uid, HELD, name)
    }

    /// The folders of all that the Pod has alone.
    pub(crate) fn held(&self, uid: &str) -> Result<Vec<PathBuf>, Fault> {
        Ok(self.held_folder(uid, "x")?.parent().map(children).unwrap_or_default())
    }

    /// The Pods that have it alone: one at most, of those that were let.
    pub(crate) fn holders(&self, name: &str) -> Vec<String> {
        let uids = children(&self.layout.pods());
        let uids = uids.iter().filter_map(|it| it.file_name()?.to_str());
        let has = |uid: &&str| self.held_folder(uid, name).is_ok_and(|it| read(&it).is_some());
        uids.filter(has).map(str::to_owned).collect()
    }

    /// All mounts that the kernel alone has made for anybody, and where they are.
    pub(crate) fn kernel_mounts(&self) -> Vec<(Published, PathBuf)> {
        let mut found = Vec::new();
        for pod in children(&self.layout.pods()) {
            let Some(uid) = pod.file_name().and_then(|it| it.to_str()) else { continue };
            for plugin in KERNEL_PLUGINS.map(|it| format!("kubernetes.io~{it}")) {
                for folder in children(&pod.join("plugins").join(&plugin)) {
                    let (Some(record), Some(name)) = (read(&folder), folder.file_name()) else { continue };
                    let place = pod.join("volumes").join(&plugin).join(name);
                    found.push((Published { uid: uid.to_owned(), folder, record }, place));
                }
            }
        }
        found
    }

    /// All that drivers have staged, with the folder of each.
    pub(crate) fn staged(&self) -> Vec<(PathBuf, Record)> {
        let drivers = children(&self.layout.staged_volumes());
        let volumes = drivers.iter().flat_map(|it| children(it));
        volumes.filter_map(|it| read(&it).map(|record| (it, record))).collect()
    }
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // A link is nobody's record.
    entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())).map(|it| it.path()).collect()
}

fn read(folder: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()
}

/// Writes it down; when this returns a power cut takes nothing of it.
pub(crate) fn write(folder: &Path, record: &Record) -> Result<(), Fault> {
    if read(folder).as_ref() == Some(record) {
        return Ok(());
    }
    let text = serde_json::to_vec(record).map_err(Fault::internal)?;
    let work = fs::create_dir_all(folder).and_then(|()| write_whole(&folder.join(FILE), 0o600, &text));
    with_faults_named(work, format_args!("write down {}", folder.display()))
}

/// Forgets it, with its folder, in which nothing may be left.
pub(crate) fn forget(folder: &Path) -> Result<(), Fault> {
    let gone = |it: io::Result<()>| match it {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    // The record last of all: without it nobody would look for what is left.
    let others = fs::read_dir(folder).into_iter().flatten().flatten().any(|it| it.file_name() != FILE);
    if others {
        return Err(Fault::internal(format!("{} is not empty", folder.display())));
    }
    let work = gone(fs::remove_file(folder.join(FILE))).and_then(|()| gone(fs::remove_dir(folder)));
    with_faults_named(work, format_args!("remove {}", folder.display()))
}

/// A name that is one step of a path.
pub(crate) fn name_of(name: &str) -> Result<&str, Fault> {
    match name {
        "" | "." | ".." => Err(Fault::new(Code::InvalidArgument, format!("{name:?} is not a name"))),
        name if name.contains(['/', '\0']) => Err(Fault::new(Code::InvalidArgument, format!("{name:?} is not a name"))),
        name => Ok(name),
    }
}
