//! What containers were given, and which resources plugins have offered: on disk, for the next run of the kubelet.
//!
//! A file for each Pod. When one is written, a power cut takes nothing of it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use corten_kubelet::{AllocatedDevices, PodsDevices};
use corten_machine::{Layout, write_whole};

#[derive(Clone, Debug)]
pub(crate) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { folder: layout.data.join("kubelet/devices") }
    }

    fn pods(&self) -> PathBuf {
        self.folder.join("pods")
    }

    fn pod(&self, uid: &str) -> io::Result<PathBuf> {
        Ok(self.pods().join(file_of(uid)?))
    }

    /// What an earlier run wrote. A file that cannot be read is told of: its devices may be given twice.
    pub(crate) fn read(&self) -> (PodsDevices, Vec<String>) {
        let entries = fs::read_dir(self.pods()).into_iter().flatten().flatten();
        let mut pods = PodsDevices::new();
        for path in entries.map(|it| it.path()) {
            let uid = path.file_name().and_then(|it| it.to_str()).and_then(|it| it.strip_suffix(".json"));
            let Some(uid) = uid else { continue };
            match read(&path) {
                Ok(devices) => {
                    pods.insert(uid.to_owned(), devices);
                }
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "which devices a pod has cannot be read: they may be given once more");
                }
            }
        }
        (pods, read(&self.resources()).unwrap_or_default())
    }

    fn resources(&self) -> PathBuf {
        self.folder.join("resources.json")
    }

    pub(crate) fn write(&self, uid: &str, devices: &[AllocatedDevices]) -> io::Result<()> {
        let path = self.pod(uid)?;
        fs::create_dir_all(self.pods())?;
        write_whole(&path, 0o600, &serde_json::to_vec(devices)?)
    }

    pub(crate) fn forget(&self, uid: &str) -> io::Result<()> {
        match fs::remove_file(self.pod(uid)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The names of resources, of which there may be none at the next start.
    pub(crate) fn write_resources(&self, names: &[String]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        write_whole(&self.resources(), 0o600, &serde_json::to_vec(names)?)
    }
}

/// The name of a Pod's file.
pub(crate) fn file_of(uid: &str) -> io::Result<String> {
    if uid.is_empty() || uid.starts_with('.') || uid.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{uid:?} is not the uid of a Pod")));
    }
    Ok(format!("{uid}.json"))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
