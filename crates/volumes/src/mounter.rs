//! Brings volumes to Pods and takes them away again: staged once for the node, published for each Pod.
//!
//! One volume is in one hand at a time. What is to be mounted is written down before it is, and forgotten after it is
//! unmounted, so that nothing stays mounted that nobody knows, whatever ended in between.

mod arrived;
mod by_kernel;
mod drivers;
mod figures;
mod growing;
mod operations;
mod single_pod;
mod unstaging;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Instant,
};

use corten_kubelet::{Backend, CsiVolume, PersistentMount};
use corten_machine::{Layout, NodeMounts, mounts};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::{
    Driver, Fault, StageVolume, file_system,
    records::{self, Published, Record, Records},
    with_faults_named,
};

pub use drivers::Drivers;
use figures::Figures;
pub use figures::VolumeFigures;
pub use operations::{StorageOperations, csi_plugin};

/// Why a volume is not where a Pod finds it, in the kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    #[error("{0}")]
    Refused(String),
    #[error(
        "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name {0} not found in the list of registered CSI drivers"
    )]
    NoDriver(String),
    #[error("{doing}: {fault}")]
    Driver { doing: &'static str, fault: Fault },
}

/// See the module's documentation. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Mounter {
    drivers: Drivers,
    records: Records,
    mounts: NodeMounts,
    turns: VolumeLocks,
    figures: Arc<Figures>,
    operations: StorageOperations,
    /// A driver did not unstage what no Pod has any more.
    refused: Arc<Notify>,
    /// What no Pod has and is staged, as `status.volumesInUse` names it: it must not be detached yet.
    left: watch::Sender<BTreeSet<String>>,
}

/// Whoever holds it has the volume in hand.
type VolumeLock = tokio::sync::Mutex<()>;
/// A driver's name, and a volume's handle.
type VolumeId = (String, String);

/// Whose turn it is with each volume.
#[derive(Clone, Default)]
struct VolumeLocks(Arc<Mutex<BTreeMap<VolumeId, Weak<VolumeLock>>>>);

impl VolumeLocks {
    fn of(&self, driver: &str, handle: &str) -> Arc<VolumeLock> {
        let mut turns = self.0.lock();
        turns.retain(|_, it| it.strong_count() > 0);
        let slot = turns.entry((driver.to_owned(), handle.to_owned())).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let turn = Arc::default();
            *slot = Arc::downgrade(&turn);
            turn
        })
    }
}

/// Where a volume is, once it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub path: PathBuf,
    /// It was not there before this call.
    pub is_new: bool,
    /// Its driver gives the files to the Pod's group: nobody else does.
    pub driver_gives_group: bool,
}

impl Mounter {
    pub fn new(layout: Layout, mounts: NodeMounts, drivers: Drivers) -> Self {
        Self {
            drivers,
            records: Records::new(layout),
            mounts,
            turns: VolumeLocks::default(),
            figures: Arc::default(),
            operations: StorageOperations::default(),
            refused: Arc::default(),
            left: watch::Sender::default(),
        }
    }

    pub fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    /// Where what is done with volumes is counted, here and by who sets them up.
    pub fn operations(&self) -> &StorageOperations {
        &self.operations
    }

    /// Has the volume be where the Pod's containers find it. `None`: that is a path of the machine.
    ///
    /// # Errors
    /// In upstream's words; what was begun is taken away with the Pod at the latest.
    pub async fn set_up(&self, uid: &str, mount: &PersistentMount) -> Result<Option<Placed>, MountError> {
        if mount.is_single_pod && !matches!(mount.backend, Backend::Csi(_)) {
            self.hold(uid, &mount.name).await?;
        }
        match &mount.backend {
            Backend::HostPath { .. } => Ok(None),
            Backend::Local { path, fs_type } => self.local(uid, mount, path, fs_type).await,
            Backend::Nfs { server, path } => self.nfs(uid, mount, server, path).await.map(Some),
            Backend::Csi(volume) => self.csi(uid, mount, volume).await.map(Some),
        }
    }

    /// Where a Pod's volume is that a driver or the kernel has mounted.
    ///
    /// # Errors
    /// A name is none.
    pub fn path(&self, uid: &str, plugin: &str, name: &str) -> Result<PathBuf, MountError> {
        let folder = self.records.published_folder(uid, plugin, name).map_err(refused)?;
        Ok(if plugin == "csi" { folder.join("mount") } else { folder })
    }

    /// Where a Pod's volume is that is a device.
    ///
    /// # Errors
    /// The name is none.
    pub fn device(&self, uid: &str, name: &str) -> Result<PathBuf, MountError> {
        self.records.device(uid, name).map_err(refused)
    }

    async fn there<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, MountError> {
        let entered = self.mounts.run(work).await.map_err(Fault::internal);
        entered.and_then(|it| it).map_err(|fault| MountError::Driver { doing, fault })
    }

    async fn csi(&self, uid: &str, mount: &PersistentMount, volume: &CsiVolume) -> Result<Placed, MountError> {
        let driver = self.drivers.get(&volume.driver).ok_or_else(|| MountError::NoDriver(volume.driver.clone()))?;
        let folder = self.records.published_folder(uid, "csi", &mount.name).map_err(refused)?;
        let target = if mount.is_block { self.device(uid, &mount.name)? } else { folder.join("mount") };
        let turn = self.turns.of(&volume.driver, &volume.handle);
        let _turn = turn.lock().await;
        if mount.is_single_pod {
            self.is_alone(uid, volume).await?;
        }
        let record = record_of(mount, volume);
        let takes_group = driver.facts().takes_group && !mount.is_block;
        let mount_group = mount.group.filter(|_| takes_group);
        let request = StageVolume { mount_group, ..request_of(mount, volume) };
        let staged_with = StageVolume { secrets: volume.stage_secrets.0.clone(), ..request.clone() };
        let is_new = {
            let (folder, record, target) = (folder.clone(), record_for_pod(record.clone(), mount), target.clone());
            self.there("kubernetes.io/csi", move || {
                records::write(&folder, &record)?;
                let parent = target.parent().unwrap_or(&target);
                with_faults_named(fs::create_dir_all(parent), "make the mount's place")?;
                Ok(!mounts::is_mount_point(&target))
            })
            .await?
        };
        let doing = |doing| move |fault| MountError::Driver { doing, fault };
        let mut staging = None;
        if driver.stages() && !volume.is_ephemeral {
            let staged = self.records.staged_folder(&volume.driver, &volume.handle);
            let place = staged.join("globalmount");
            self.there("kubernetes.io/csi", move || {
                records::write(&staged, &record)?;
                with_faults_named(fs::create_dir_all(staged.join("globalmount")), "make the mount's place")
            })
            .await?;
            let stage = driver.stage(staged_with, place.clone()).await;
            stage.map_err(doing("MountVolume.MountDevice failed"))?;
            self.leads_nowhere_else(&place).await?;
            self.grow_unused(&*driver, &request, volume, (&place, Some(&place))).await;
            staging = Some(place);
        }
        let is_staged = staging.is_some();
        let told = with_tokens(request.clone(), volume);
        let publish = driver.publish(told, staging, target.clone(), mount.read_only).await;
        publish.map_err(doing("kubernetes.io/csi: mounter.SetupAt failed"))?;
        self.leads_nowhere_else(&target).await?;
        self.has_arrived(&*driver, &target, mount.is_block, volume.is_ephemeral).await?;
        if mount.is_block {
            self.hold_device(&target).await?;
        }
        if is_new && !is_staged && !volume.is_ephemeral {
            self.grow_unused(&*driver, &request, volume, (&target, None)).await;
        }
        Ok(Placed { path: target, is_new, driver_gives_group: takes_group })
    }

    /// A driver mounts at the place it was given; one that puts a link there would give a container another's files.
    async fn leads_nowhere_else(&self, place: &Path) -> Result<(), MountError> {
        let place = place.to_owned();
        self.there("kubernetes.io/csi", move || match fs::symlink_metadata(&place) {
            Ok(it) if it.is_symlink() => {
                // The driver's next try would follow it.
                with_faults_named(fs::remove_file(&place), "remove a driver's link")?;
                let why = format!("the driver made {} a link to another place", place.display());
                Err(Fault::new(crate::Code::FailedPrecondition, why))
            }
            _ => Ok(()),
        })
        .await
    }

    /// Takes away all that a Pod was given. Harmless where that is nothing.
    ///
    /// # Errors
    /// What the driver or the kernel says; the rest is taken away by another call.
    pub async fn tear_down(&self, uid: &str) -> Result<(), MountError> {
        let (records, of) = (self.records.clone(), uid.to_owned());
        let published = self.there("kubernetes.io/csi", move || records.of_pod(&of)).await?;
        for it in published {
            self.unpublish(it).await?;
        }
        self.take_kernels_away(uid).await?;
        self.let_go(uid).await
    }

    async fn unpublish(&self, published: Published) -> Result<(), MountError> {
        let record = published.record.clone();
        let Record { driver_name, volume_handle, .. } = &record;
        let driver = self.drivers.get(driver_name).ok_or_else(|| MountError::NoDriver(driver_name.clone()));
        let turn = self.turns.of(driver_name, volume_handle);
        let _turn = turn.lock().await;
        let begun = Instant::now();
        let unpublished = match &driver {
            Ok(driver) => self.unpublish_by(&**driver, published).await,
            Err(error) => Err(error.clone()),
        };
        let operation = if record.is_block() { "unmap_volume" } else { "volume_unmount" };
        self.operations.note(&csi_plugin(driver_name), operation, begun.elapsed(), unpublished.is_ok());
        unpublished?;
        // The Pod has nothing of it any more; what fails now is looked at again later.
        if let Err(error) = self.unstage_unused(driver.as_ref().ok(), &record).await {
            tracing::warn!(%error, volume = volume_handle, "a volume stays staged for now");
            self.refused.notify_one();
        }
        Ok(())
    }

    async fn unpublish_by(&self, driver: &dyn Driver, published: Published) -> Result<(), MountError> {
        let Published { uid, folder, record } = published;
        let target = if record.is_block() { self.device(&uid, &record.name)? } else { folder.join("mount") };
        if record.is_block() {
            self.release_device(&target).await?;
        }
        let unpublished = driver.unpublish(record.volume_handle, target.clone()).await;
        unpublished
            .map_err(|fault| MountError::Driver { doing: "kubernetes.io/csi: Unmounter.TearDownAt failed", fault })?;
        self.there("kubernetes.io/csi", move || {
            // What a driver left: nothing is removed through a mount.
            file_system::remove_place(&target)?;
            records::forget(&folder)
        })
        .await
    }

    /// Is it staged here, and where? For who grows it.
    pub async fn staged(&self, driver: &str, handle: &str) -> Option<PathBuf> {
        let place = self.records.staged_folder(driver, handle).join("globalmount");
        let looked = place.clone();
        self.there("kubernetes.io/csi", move || Ok(looked.exists())).await.ok()?.then_some(place)
    }

    /// Where it is published, for each Pod.
    pub async fn published(&self, driver: &str, handle: &str) -> Vec<PathBuf> {
        let places = self.places().await.into_iter();
        places.filter(|it| is_of(&it.0, driver, handle)).map(|it| it.1).collect()
    }

    /// All that is published, and where.
    pub(crate) async fn places(&self) -> Vec<(Published, PathBuf)> {
        let records = self.records.clone();
        let of = records.clone();
        let place = move |it: Published| -> Result<(Published, PathBuf), Fault> {
            let place = match it.record.is_block() {
                true => of.device(&it.uid, &it.record.name)?,
                false => it.folder.join("mount"),
            };
            Ok((it, place))
        };
        let work = move || records.published().into_iter().map(place).collect::<Result<Vec<_>, _>>();
        self.there("kubernetes.io/csi", work).await.unwrap_or_default()
    }

    pub(crate) fn last_figures(&self) -> &Figures {
        &self.figures
    }
}

fn is_of(published: &Published, driver: &str, handle: &str) -> bool {
    published.record.driver_name == driver && published.record.volume_handle == handle
}

fn refused(fault: Fault) -> MountError {
    MountError::Refused(fault.message)
}

fn record_of(mount: &PersistentMount, volume: &CsiVolume) -> Record {
    Record {
        driver_name: volume.driver.clone(),
        volume_handle: volume.handle.clone(),
        volume_lifecycle_mode: if volume.is_ephemeral { "Ephemeral" } else { "Persistent" }.into(),
        volume_mode: if mount.is_block { "Block" } else { "Filesystem" }.into(),
        name: mount.name.clone(),
        fs_type: volume.fs_type.clone(),
        ..Record::default()
    }
}

/// With whose it is.
fn record_for_pod(record: Record, mount: &PersistentMount) -> Record {
    let of = mount.owner.clone();
    Record { pod_namespace: of.namespace, pod_name: of.pod, pod_volume: of.volume, claim_name: of.claim, ..record }
}

/// The tokens of the Pod's account are told at publishing alone: what is staged is the node's.
fn with_tokens(mut request: StageVolume, volume: &CsiVolume) -> StageVolume {
    let told = if volume.tokens_in_secrets { &mut request.secrets } else { &mut request.context };
    told.extend(volume.tokens.0.clone());
    request
}

fn request_of(mount: &PersistentMount, volume: &CsiVolume) -> StageVolume {
    StageVolume {
        handle: volume.handle.clone(),
        fs_type: volume.fs_type.clone(),
        is_block: mount.is_block,
        access_mode: volume.access_mode.clone(),
        mount_options: mount.mount_options.clone(),
        context: volume.context.clone(),
        publish_context: volume.publish_context.clone(),
        secrets: volume.publish_secrets.0.clone(),
        mount_group: None,
    }
}

#[cfg(test)]
mod tests;
