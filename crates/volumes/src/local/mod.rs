//! The driver that is built in: a volume is a file with a file system in it, as large as was asked for, in the node's own folder.
//! With the parameter `limit: quota` it is a folder whose size a project quota holds; with `limit: none` nobody holds it.

mod allowance;
mod answering;
mod copy;
mod copy_tree;
mod kept;
mod moving;
mod promises;
mod quiesce;
mod room;
mod store;
mod under_way;
mod volume;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use corten_machine::{Layout, NodeMounts, mounts};
use futures_util::future::BoxFuture;
use rustix::mount::MountFlags;

use crate::{
    Capacity, Code, CreateSnapshot, CreateVolume, CreatedVolume, Driver, Expanded, Facts, Fault, NodeExpand, Snapshot,
    StageVolume, VolumeSource, VolumeStats,
    file_system::{self, Kind},
    loop_device, with_faults_named,
};
pub use room::Reserve;
use store::{NewVolume, Store};
use volume::{Form, Volume};

pub const NAME: &str = "local.corten.dev";
/// The one key of its topology.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// See the module's documentation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalDriver {
    store: Arc<Store>,
    mounts: NodeMounts,
    node_name: String,
}

impl LocalDriver {
    pub fn new(layout: &Layout, mounts: NodeMounts, node_name: &str, reserve: Reserve) -> Self {
        Self { store: Arc::new(Store::new(layout, reserve)), mounts, node_name: node_name.to_owned() }
    }

    /// Removes what a crash left of volumes that were being made or removed.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn recover(&self) -> Result<(), Fault> {
        self.there(Store::recover).await
    }

    /// The same, again and again while something holds what is to be unmounted.
    async fn unless_busy(
        &self,
        work: impl Fn(&Store) -> Result<(), Fault> + Clone + Send + 'static,
    ) -> Result<(), Fault> {
        for _ in 0..BUSY_TRIES {
            match self.there(work.clone()).await {
                Err(fault) if fault.code == Code::Aborted => tokio::time::sleep(BUSY_PAUSE).await,
                other => return other,
            }
        }
        self.there(work).await
    }

    async fn there<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let store = self.store.clone();
        self.mounts.run(move || work(&store)).await.map_err(Fault::internal)?
    }
}

/// How often, and with which pause, what is busy is tried again: a program that is being started holds for a moment all that
/// whoever starts it has open.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Work on plain files, which are the same in every mount namespace.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(Fault::internal)?
}

/// What the driver is and can do on the node of this name.
pub fn facts(node_name: &str) -> Facts {
    Facts {
        provisions: true,
        expands: true,
        node_expands: true,
        tells_capacity: true,
        tells_health: true,
        snapshots: true,
        clones: true,
        node_id: node_name.to_owned(),
        topology: topology(node_name),
        ..Facts::default()
    }
}

/// The labels of the one node that reaches a volume.
pub fn topology(node_name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(HOSTNAME.to_owned(), node_name.to_owned())])
}

/// Lets go of all files of a node's volumes that are attached as disks; nothing may be mounted any more.
pub fn detach_all(layout: &Layout) {
    let folder = store::folder(layout);
    let removed = loop_device::removed_in(&folder);
    for (device, _) in loop_device::all_in(&folder).into_iter().chain(removed) {
        if let Err(error) = loop_device::detach(&device) {
            tracing::warn!(%error, device = %device.display(), "a volume's file stays attached");
        }
    }
}

/// What the class asks for, checked.
fn form_of(request: &CreateVolume) -> Result<Form, Fault> {
    let invalid = |why: String| Err(Fault::new(Code::InvalidArgument, why));
    if let Some(mode) = request.access_modes.iter().find(|it| it.ends_with("Many")) {
        return invalid(format!("a volume of {NAME} is on one node: {mode} is not supported, use ReadWriteOnce"));
    }
    // What may be a folder, instead of a file.
    let mut folder = None;
    for (name, value) in &request.parameters {
        match (name.as_str(), value.as_str()) {
            ("limit", "none") => folder = Some(Form::Folder),
            ("limit", "quota") => folder = Some(Form::Quota),
            ("limit", "file") => {}
            ("limit", other) => {
                return invalid(format!("parameter limit is {other:?}, and may be file, quota or none"));
            }
            (other, _) => {
                return invalid(format!(
                    "{NAME} has no parameter {other:?}: it has limit and csi.storage.k8s.io/fstype"
                ));
            }
        }
    }
    if request.is_block {
        let is_file = folder.is_none();
        return if is_file { Ok(Form::Disk) } else { invalid("a block volume is a file: leave limit out".into()) };
    }
    let kind = Kind::parse(&request.fs_type)?;
    if let Some(folder) = folder {
        return Ok(folder);
    }
    kind.can_be_made()?;
    Ok(Form::FileSystem(kind))
}

impl Driver for LocalDriver {
    fn name(&self) -> &str {
        NAME
    }

    fn facts(&self) -> Facts {
        facts(&self.node_name)
    }

    fn stages(&self) -> bool {
        true
    }

    fn create(&self, request: CreateVolume) -> BoxFuture<'_, Result<CreatedVolume, Fault>> {
        Box::pin(async move {
            let form = form_of(&request)?;
            let made = self.there(move |store| create(store, request, form)).await?;
            Ok(CreatedVolume {
                handle: made.handle,
                bytes: made.bytes,
                context: BTreeMap::new(),
                topology: vec![topology(&self.node_name)],
                fs_type: made.form.fs_type().to_owned(),
                refused: None,
            })
        })
    }

    fn delete(&self, handle: String, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.there(move |store| store.delete(&handle)))
    }

    fn expand(&self, volume: StageVolume, bytes: u64) -> BoxFuture<'_, Result<Expanded, Fault>> {
        Box::pin(self.there(move |store| {
            let volume = store.expand(&volume.handle, bytes)?;
            let is_done = grow(store, &volume)?;
            Ok(Expanded { bytes: volume.bytes, node_expansion_required: !is_done })
        }))
    }

    fn capacity(&self, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<Option<Capacity>, Fault>> {
        let store = self.store.clone();
        Box::pin(beside(move || {
            let available_bytes = store.available()?;
            Ok(Some(Capacity { available_bytes, maximum_bytes: Some(available_bytes) }))
        }))
    }

    fn stage(&self, request: StageVolume, staging: PathBuf) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.there(move |store| {
            let _hold = store.hold(&request.handle)?;
            let volume = store.get(&request.handle)?;
            store.stays(&request.handle)?;
            if volume.form.is_block() != request.is_block {
                return Err(Fault::new(Code::InvalidArgument, "the volume is of another volumeMode"));
            }
            stage(store, &volume, &staging, &request.mount_options)
        }))
    }

    fn unstage(&self, handle: String, staging: PathBuf) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let of = handle.clone();
            let detached = self.unless_busy(move |store| {
                let _hold = store.hold(&of)?;
                file_system::unmount_all(&staging)?;
                store.let_removed_disks_go(&of)?;
                match loop_device::of(&store.disk(&of)?) {
                    Some(device) => loop_device::detach(&device),
                    None => Ok(()),
                }
            });
            detached.await?;
            // Who looks at all disks of the machine holds it for a moment, and until then nothing could be mounted of it.
            let disk = self.store.disk(&handle)?;
            for _ in 0..BUSY_TRIES {
                if loop_device::of(&disk).is_none() {
                    break;
                }
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Ok(())
        })
    }

    fn publish(
        &self,
        request: StageVolume,
        staging: Option<PathBuf>,
        target: PathBuf,
        read_only: bool,
    ) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.there(move |store| {
            let staging = staging.ok_or_else(|| Fault::new(Code::FailedPrecondition, "it is not staged"))?;
            let volume = store.get(&request.handle)?;
            let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
            if volume.form.is_block() {
                let device = loop_device::of(&store.disk(&volume.handle)?);
                let device = device.ok_or_else(|| Fault::new(Code::FailedPrecondition, "it is not staged"))?;
                with_faults_named(
                    fs::File::options().create(true).append(true).open(&target),
                    "make the device's place",
                )?;
                return file_system::bind(&device, &target, MountFlags::empty());
            }
            if !mounts::is_mount_point(&staging) {
                return Err(Fault::new(Code::FailedPrecondition, "it is not staged"));
            }
            with_faults_named(fs::create_dir_all(&target), "make the mount's place")?;
            file_system::bind(&staging, &target, flags)
        }))
    }

    fn unpublish(&self, _: String, target: PathBuf) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.unless_busy(move |_| file_system::remove_place(&target)))
    }

    fn node_expand(&self, asked: NodeExpand) -> BoxFuture<'_, Result<u64, Fault>> {
        Box::pin(self.there(move |store| {
            let handle = &asked.volume.handle;
            let _hold = store.hold(handle)?;
            let volume = store.get(handle)?;
            store.stays(handle)?;
            if grow(store, &volume)? {
                return Ok(volume.bytes);
            }
            let why = "the kernel grows this file system only while no pod has it";
            Err(Fault::new(Code::FailedPrecondition, why))
        }))
    }

    fn stats(&self, handle: String, path: PathBuf) -> BoxFuture<'_, Result<VolumeStats, Fault>> {
        Box::pin(self.there(move |store| {
            let volume = store.get(&handle)?;
            if volume.form.is_block() {
                return Ok(VolumeStats { capacity_bytes: volume.bytes, ..VolumeStats::default() });
            }
            file_system::stats_of(&path)
        }))
    }

    fn create_snapshot(&self, request: CreateSnapshot) -> BoxFuture<'_, Result<Snapshot, Fault>> {
        Box::pin(self.there(move |store| {
            if let Some(name) = request.parameters.keys().next() {
                let why = format!("{NAME} has no parameter {name:?} for snapshots");
                return Err(Fault::new(Code::InvalidArgument, why));
            }
            let kept = store.keep(&request)?;
            Ok(snapshot(kept))
        }))
    }

    fn delete_snapshot(&self, handle: String, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.there(move |store| store.forget(&handle)))
    }

    fn find_snapshot(
        &self,
        handle: String,
        _: BTreeMap<String, String>,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, Fault>> {
        Box::pin(self.there(move |store| {
            let kept = store.kept(&handle)?;
            store.kept_content(&kept)?;
            Ok(Some(snapshot(kept)))
        }))
    }

    fn answer(&self, message: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, Fault>> {
        Box::pin(async move { answering::answer(self, &message).await })
    }
}

fn snapshot(kept: volume::SnapshotRecord) -> Snapshot {
    let volume::SnapshotRecord { handle, source, bytes, created_at, .. } = kept;
    Snapshot { handle, source, bytes, created_at, is_ready: true }
}

/// Makes a volume; where the class names no file system, of the one that its source has.
fn create(store: &Store, request: CreateVolume, form: Form) -> Result<Volume, Fault> {
    let there = match &request.source {
        _ if !request.fs_type.is_empty() => None,
        Some(VolumeSource::Snapshot(handle)) => Some(store.kept(handle)?.form),
        Some(VolumeSource::Volume(handle)) => Some(store.get(handle)?.form),
        None => None,
    };
    let form = match (form, there) {
        (Form::FileSystem(_), Some(it @ Form::FileSystem(_))) => it,
        (form, _) => form,
    };
    store.create(&NewVolume { name: request.name, bytes: request.required_bytes, form, source: request.source })
}

/// Mounts the volume for the node; harmless where it is.
fn stage(store: &Store, volume: &Volume, staging: &Path, options: &[String]) -> Result<(), Fault> {
    with_faults_named(fs::create_dir_all(staging), "make the mount's place")?;
    match volume.form {
        Form::Folder | Form::Quota => {
            let content = store.content(&volume.handle)?;
            store.hold_size(volume, &content)?;
            file_system::bind(&content, staging, MountFlags::NOSUID | MountFlags::NODEV)
        }
        Form::Disk => loop_device::attach(&store.whole_disk(volume)?).map(drop),
        Form::FileSystem(kind) => {
            if mounts::is_mount_point(staging) {
                // Staged for a Pod that is gone: what grows only while nobody has it is mounted anew for the next.
                let device = loop_device::of(&store.disk(&volume.handle)?).filter(|_| volume.grows);
                let is_had = device.is_none_or(|it| file_system::all_mounts(&it).iter().any(|it| it != staging));
                if is_had || file_system::unmount_all(staging).is_err() {
                    return Ok(());
                }
            }
            let made = volume.blank.then(|| store.make_file_system(volume, kind)).transpose()?;
            let (is_new, volume) = (made.is_some(), made.as_ref().unwrap_or(volume));
            let device = loop_device::attach(&store.whole_disk(volume)?)?;
            // Where a place of before a crash is left, the kernel shows the same file system at both.
            if file_system::mounted_at(&device).is_none() && !is_new {
                kind.check(&device)?;
                if volume.grows {
                    loop_device::refresh(&device)?;
                    kind.grow_unmounted(&device)?;
                }
            }
            kind.mount(&device, staging, options)?;
            file_system::clear_new(staging);
            grow(store, volume).map(drop)
        }
    }
}

/// Has disk and file system be as large as the file. Of a volume that is not in use the next staging does it. False: it is in
/// use, and the kernel refuses.
fn grow(store: &Store, volume: &Volume) -> Result<bool, Fault> {
    if !volume.grows {
        return Ok(true);
    }
    let Some(device) = loop_device::of(&store.disk(&volume.handle)?) else { return Ok(true) };
    loop_device::refresh(&device)?;
    if let Form::FileSystem(kind) = volume.form {
        let Some(place) = file_system::mounted_at(&device) else { return Ok(true) };
        if !kind.grow(&device, &place)? {
            return Ok(false);
        }
    }
    store.has_grown(volume)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
