//! The images that a power cut takes nothing of.
//!
//! containerd syncs what it notes about a layer, and not the layer's files (containerd issues 5854, 8895, 10457): after a
//! power cut an image may be there by its records, with empty files in it, and fetching it again finds it "there". So an
//! image counts once its file system was synced after it was unpacked and a record names it. After a boot what no record
//! names goes, with its containers and snapshots, and is imported or pulled again.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::PathBuf,
    sync::Arc,
};

use corten_machine::{Doing, Layout, MachineError, command, write_whole};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, MutexGuard};

use crate::{Cri, containerd::records, cri};

/// Clones are the same.
#[derive(Clone)]
pub(crate) struct SyncedImages {
    layout: Layout,
    cri: Cri,
    /// Whoever imports holds it: an image is listed before an import has unpacked it.
    turn: Arc<Mutex<()>>,
}

/// The turn of whoever imports images, or notes them.
pub(crate) struct ImagesLock<'a> {
    images: &'a SyncedImages,
    _guard: MutexGuard<'a, ()>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// The machine's run in which nothing that is not named was lost.
    boot_id: String,
    /// By their ids.
    images: BTreeSet<String>,
}

impl SyncedImages {
    pub(super) fn new(layout: &Layout, cri: &Cri) -> Self {
        Self { layout: layout.clone(), cri: cri.clone(), turn: Arc::default() }
    }

    /// Before the first containerd of a data folder starts: from then on an image that is not named is not known to be whole.
    pub(super) fn begin(&self) -> Result<(), MachineError> {
        if Record::load(&self.layout)?.is_none() && !records::exist(&self.layout) {
            Record { boot_id: boot_id()?, ..Record::default() }.save(&self.layout)?;
        }
        Ok(())
    }

    /// Waits until nobody else imports. What was removed since, and may be about to come again, is named no more.
    pub(crate) async fn turn(&self) -> Result<ImagesLock<'_>, MachineError> {
        let turn = ImagesLock { images: self, _guard: self.turn.lock().await };
        let present = ids(&self.cri).await?;
        match Record::load(&self.layout)? {
            Some(mut record) if !record.images.is_subset(&present) => {
                record.images.retain(|it| present.contains(it));
                record.save(&self.layout)?;
            }
            _ => {}
        }
        Ok(turn)
    }

    /// None where somebody imports, who names everything afterwards.
    pub(crate) fn free_turn(&self) -> Option<ImagesLock<'_>> {
        Some(ImagesLock { images: self, _guard: self.turn.try_lock().ok()? })
    }

    /// Is it named?
    pub(crate) fn holds(&self, image: &str) -> Result<bool, MachineError> {
        Ok(Record::load(&self.layout)?.is_some_and(|it| it.images.contains(image)))
    }

    /// What is there and not named: somebody else loaded it, or is about to.
    pub(crate) async fn unnamed(&self) -> Result<BTreeSet<String>, MachineError> {
        let named = Record::load(&self.layout)?.unwrap_or_default().images;
        Ok(ids(&self.cri).await?.difference(&named).cloned().collect())
    }

    /// Of a boot: what is not named in the record goes. True where images went.
    pub(super) async fn forget_unsynced(&self) -> Result<bool, MachineError> {
        let Some(record) = Record::load(&self.layout)? else {
            // Made by a version that kept no record: what serves is kept.
            return self.turn().await?.keep().await.map(|()| false);
        };
        let boot_id = boot_id()?;
        if record.boot_id == boot_id {
            return self.turn().await?.keep().await.map(|()| false);
        }
        let present = ids(&self.cri).await?;
        let lost: BTreeSet<String> = present.difference(&record.images).cloned().collect();
        for image in &lost {
            tracing::warn!(
                image,
                "an image was not yet safe on the disk when the machine ended: it is removed, and imported or pulled again"
            );
        }
        self.remove_containers_of(&lost).await?;
        for image in &lost {
            self.cri.remove_image(image).await?;
        }
        self.forget_unfinished().await?;
        if !lost.is_empty() {
            records::forget_imports(&self.layout)?;
        }
        let images = present.intersection(&record.images).cloned().collect();
        Record { boot_id, images }.save(&self.layout)?;
        Ok(!lost.is_empty())
    }

    /// They hold the image's snapshots. Nothing of them runs after a boot, and the kubelet makes them again.
    async fn remove_containers_of(&self, images: &BTreeSet<String>) -> Result<(), MachineError> {
        for container in self.cri.list_containers(None).await? {
            if images.contains(&container.image_ref) {
                self.cri.remove_container(&container.id).await?;
            }
        }
        let listed = self.cri.list_images().await?;
        let is_of_sandboxes = |it: &&cri::Image| it.repo_tags.iter().any(|it| super::is_pause(it));
        if listed.iter().filter(is_of_sandboxes).any(|it| images.contains(&it.id)) {
            for sandbox in self.cri.list_pod_sandboxes(None).await? {
                self.cri.stop_pod_sandbox(&sandbox.id).await?;
                self.cri.remove_pod_sandbox(&sandbox.id).await?;
            }
        }
        Ok(())
    }

    /// Layers of a pull that the machine's end cut off: its lease holds them, and the next pull would take them for whole.
    async fn forget_unfinished(&self) -> Result<(), MachineError> {
        let socket = self.layout.containerd_socket();
        let ctr = async |args: &[&str]| {
            let address = socket.to_string_lossy();
            let all = [&["--address", &*address, "--namespace", "k8s.io", "leases"], args].concat();
            command::run("ctr", &all, "").await
        };
        for lease in ctr(&["ls", "--quiet"]).await?.split_whitespace() {
            ctr(&["delete", "--sync", lease]).await?;
        }
        Ok(())
    }
}

impl ImagesLock<'_> {
    /// Makes all images that are there durable: they count from then on.
    pub(crate) async fn keep(&self) -> Result<(), MachineError> {
        let present = ids(&self.images.cri).await?;
        self.name(present).await
    }

    /// Makes these durable, as far as they are there: of the others nobody knows whether they have been unpacked.
    pub(crate) async fn keep_only(&self, wanted: &BTreeSet<String>) -> Result<(), MachineError> {
        // Where nothing is recorded all counts, until there is a record.
        let Some(Record { images: named, .. }) = Record::load(&self.images.layout)? else { return self.keep().await };
        let present = ids(&self.images.cri).await?;
        self.name(present.into_iter().filter(|it| wanted.contains(it) || named.contains(it)).collect()).await
    }

    /// Syncs what they lie on before they are named.
    async fn name(&self, images: BTreeSet<String>) -> Result<(), MachineError> {
        let layout = self.images.layout.clone();
        let root = layout.containerd_root();
        let work = tokio::task::spawn_blocking(move || {
            let root = layout.containerd_root();
            rustix::fs::syncfs(File::open(&root).doing("open", &root)?)
                .map_err(io::Error::from)
                .doing("sync", &root)?;
            Record { boot_id: boot_id()?, images }.save(&layout)
        });
        work.await.map_err(io::Error::other).doing("sync", &root)?
    }
}

impl Record {
    fn path(layout: &Layout) -> PathBuf {
        layout.containerd_root().join("synced-images.json")
    }

    /// None where there never was one. One that is torn names nothing.
    fn load(layout: &Layout) -> Result<Option<Self>, MachineError> {
        let path = Self::path(layout);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).doing("read", &path),
        }
    }

    fn save(&self, layout: &Layout) -> Result<(), MachineError> {
        let path = Self::path(layout);
        let bytes = serde_json::to_vec(self).expect("a record has only string keys");
        write_whole(&path, 0o600, &bytes).doing("write", &path)
    }
}

async fn ids(cri: &Cri) -> Result<BTreeSet<String>, MachineError> {
    Ok(cri.list_images().await?.into_iter().map(|it| it.id).collect())
}

fn boot_id() -> Result<String, MachineError> {
    corten_machine::boot_id().doing("read", "the boot id".as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_record_names_nothing_and_one_that_never_was_is_told_apart() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        fs::create_dir_all(layout.containerd_root()).expect("a folder");
        assert_eq!(Record::load(&layout).expect("read"), None);
        let record = Record { boot_id: "b".into(), images: BTreeSet::from(["sha256:1".to_owned()]) };
        record.save(&layout).expect("written");
        assert_eq!(Record::load(&layout).expect("read"), Some(record));
        fs::write(Record::path(&layout), "{\"bootId\":\"b\",\"ima").expect("torn");
        assert_eq!(Record::load(&layout).expect("read"), Some(Record::default()));
    }
}
