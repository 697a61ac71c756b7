//! The drivers of this node, as the provisioner asks them; the built-in one among them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_cli::SNAPSHOTS_MADE;
use corten_client::BoxFuture;
use corten_host::{Containerd, NodeHands};
use corten_kubelet::{EvictionConfig, GrowableVolume, Secrets};
use corten_machine::{Layout, write_whole};
use corten_provisioner::{
    AttachedVolume, Created, DriverFacts, Failure, Finality, Grown, Published, Request, Snapshotted, Source, Taking,
};
use corten_runner::{
    BuiltIn, NodeDriver, ProvisionerSettings, Refusal, SickVolume, SnapshotRefusal, Unchanged, VolumeGrowthHands,
    VolumeGrowthSettings, VolumeHands, VolumeHealthHands, VolumeHealthSettings, VolumeLimitHands,
};
use corten_volumes::{
    Code, CreateSnapshot, CreateVolume, Driver, Drivers, Expanded, Facts, Fault, LOCAL_DRIVER, LocalDriver, Mounter,
    Reserve, StageVolume, VolumeSource,
};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};

use crate::{
    cluster_access::{ClusterAccess, ServerAccess},
    in_process,
};

/// Says, in the node's folder, that the cluster was given its default class.
const CLASS_MADE: &str = "kubelet/storage-class-made";

/// Has the node know its built-in driver, before a Pod asks for it. Beside a control plane it makes, grows and removes volumes from now
/// until that stops; on a machine that has joined the control plane asks for that, and the node tells only which drivers it has.
pub(crate) async fn start(
    tasks: &mut JoinSet<()>,
    cluster: &ClusterAccess,
    hands: &NodeHands,
    containerd: &Containerd,
    (node_name, eviction): (&str, &EvictionConfig),
) {
    let (bytes, share) = eviction.node_fs_limit();
    let driver = LocalDriver::new(containerd.layout(), containerd.mounts(), node_name, Reserve { bytes, share });
    if let Err(error) = driver.recover().await {
        tracing::warn!(%error, "volumes that were being made or removed are left on the disk");
    }
    hands.mounter().drivers().add(Arc::new(driver));
    let (mounter, layout) = (hands.mounter().clone(), hands.layout().clone());
    let news = Mutex::new((mounter.drivers().follow(), false));
    let (volumes, node) =
        (Arc::new(NodeVolumes { mounter, layout, news }), cluster.client(in_process::kubelet(node_name)));
    let health = VolumeHealthSettings {
        node_name: node_name.to_owned(),
        client: node.clone(),
        hands: Arc::new(NodeHealth(hands.mounter().clone())),
        clock: cluster.clock.clone(),
    };
    tasks.spawn(corten_runner::run_volume_health(health, cluster.stopping()));
    let growth = VolumeGrowthSettings {
        node_name: node_name.to_owned(),
        client: node.clone(),
        hands: Arc::new(NodeGrowthHands(hands.mounter().clone())),
        clock: cluster.clock.clone(),
    };
    tasks.spawn(corten_runner::run_volume_growth(growth, cluster.stopping()));
    let limits = Arc::new(NodeLimits(hands.mounter().drivers().clone()));
    tasks.spawn(corten_runner::run_volume_limits(node.clone(), limits, cluster.stopping()));
    if let ServerAccess::Remote(..) = &cluster.server {
        let drivers = move || -> BoxFuture<'static, Vec<NodeDriver>> {
            let volumes = volumes.clone();
            Box::pin(async move { volumes.drivers().await })
        };
        tasks.spawn(corten_runner::run_node_drivers(node, node_name.to_owned(), drivers, cluster.stopping()));
        return;
    }
    let settings = ProvisionerSettings {
        node_name: node_name.to_owned(),
        client: cluster.client(in_process::volume_provisioner()),
        node: Some(node),
        viewer: cluster.client(in_process::controller_manager()),
        shared: None,
        hands: volumes,
        clock: cluster.clock.clone(),
    };
    tasks.spawn(corten_runner::run_provisioner(settings, cluster.stopping()));
}

/// What drivers say of how volumes are.
struct NodeHealth(Mounter);

impl VolumeHealthHands for NodeHealth {
    fn sick_volumes(&self) -> BoxFuture<'_, Vec<SickVolume>> {
        Box::pin(async {
            let figures = self.0.figures().await;
            let sick = figures.iter().filter_map(|it| {
                let message = it.stats.abnormal.clone()?;
                let (uid, pod, volume, claim) = (it.uid.clone(), it.pod.clone(), it.volume.clone(), it.claim.clone());
                Some(SickVolume { uid, pod, volume, claim, message })
            });
            sick.collect()
        })
    }
}

/// The drivers of this node, as they are asked how many volumes it takes.
struct NodeLimits(Drivers);

impl VolumeLimitHands for NodeLimits {
    fn ask_limit(&self, driver: &str) -> BoxFuture<'_, ()> {
        let driver = driver.to_owned();
        Box::pin(async move { self.0.ask_limit(&driver).await })
    }
}

/// Drivers of others, as this node asks them to do its part in growing volumes.
struct NodeGrowthHands(Mounter);

impl VolumeGrowthHands for NodeGrowthHands {
    fn growable(&self) -> BoxFuture<'_, Vec<GrowableVolume>> {
        Box::pin(self.0.growable())
    }

    fn grow(
        &self,
        driver: String,
        volume: AttachedVolume,
        bytes: u64,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let grown = self.0.grow(&driver, told(volume, secrets), bytes).await;
            grown.map_err(|it| ungrown(&it))
        })
    }
}

type AllDrivers = BTreeMap<String, Arc<dyn Driver>>;

struct NodeVolumes {
    mounter: Mounter,
    layout: Layout,
    /// And whether they were told once.
    news: Mutex<(watch::Receiver<AllDrivers>, bool)>,
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(crate) fn refusal(fault: Fault) -> Refusal {
    let is_exhausted = fault.code == Code::ResourceExhausted;
    Refusal { message: fault.to_string(), is_exhausted, finality: finality(&fault) }
}

/// Why the built-in driver did not grow a volume: where there is no room nothing was begun, and less may be asked for.
pub(crate) fn built_in_unexpanded(fault: Fault) -> Refusal {
    let refusal = refusal(fault);
    let finality = if refusal.is_exhausted { Finality::Infeasible } else { refusal.finality };
    Refusal { finality, ..refusal }
}

fn finality(fault: &Fault) -> Finality {
    match fault {
        it if it.is_infeasible() => Finality::Infeasible,
        it if it.is_final() => Finality::Refused,
        _ => Finality::Open,
    }
}

/// Why a driver did not grow a volume on this node. As the kubelet's `inUseError` and `isInfeasibleError`.
fn ungrown(fault: &Fault) -> Failure {
    let is_in_use = fault.code == Code::FailedPrecondition;
    Failure { message: fault.to_string(), is_in_use, finality: finality(fault), ..Failure::default() }
}

/// The same of the built-in driver: where it waits for a Pod to end or to begin, the claim says so already.
pub(crate) fn built_in_ungrown(fault: &Fault) -> Failure {
    let failure = ungrown(fault);
    let finality = if failure.is_in_use { Finality::Open } else { failure.finality };
    Failure { finality, ..failure }
}

pub(crate) fn grown(expanded: Expanded) -> Grown {
    Grown { bytes: expanded.bytes, needs_node: expanded.node_expansion_required }
}

/// What a driver is told of a volume.
fn told(volume: AttachedVolume, secrets: Secrets) -> StageVolume {
    StageVolume {
        handle: volume.handle,
        fs_type: volume.fs_type,
        is_block: volume.is_block,
        access_mode: volume.access_mode,
        mount_options: volume.mount_options,
        context: volume.context,
        secrets: secrets.0,
        ..StageVolume::default()
    }
}

/// What a driver is asked to make.
pub(crate) fn wanted(request: Request, secrets: BTreeMap<String, String>) -> CreateVolume {
    CreateVolume {
        name: request.name,
        required_bytes: request.bytes,
        fs_type: request.fs_type,
        is_block: request.is_block,
        access_modes: request.access_modes,
        mount_options: request.mount_options,
        parameters: request.parameters,
        topologies: request.topologies,
        secrets,
        mutable_parameters: request.mutable_parameters,
        source: request.source.map(|it| match it {
            Source::Snapshot(handle) => VolumeSource::Snapshot(handle),
            Source::Volume(handle) => VolumeSource::Volume(handle),
        }),
    }
}

pub(crate) fn snapshotted(snapshot: corten_volumes::Snapshot) -> Snapshotted {
    let corten_volumes::Snapshot { handle, bytes, created_at, is_ready, .. } = snapshot;
    Snapshotted { handle, bytes, created_at, is_ready }
}

pub(crate) fn snapshot_refusal(fault: &Fault) -> SnapshotRefusal {
    // As csi-snapshotter: with these it may still be made.
    let open = [Code::Canceled, Code::DeadlineExceeded, Code::Unavailable, Code::Aborted];
    let is_final = !open.contains(&fault.code);
    SnapshotRefusal { is_final, message: fault.to_string() }
}

fn by_name(drivers: &Drivers, name: &str) -> Result<Arc<dyn Driver>, Refusal> {
    let missing = || Fault::new(Code::Unavailable, format!("driver {name} is not registered on this node"));
    drivers.get(name).ok_or_else(|| refusal(missing()))
}

impl NodeVolumes {
    fn driver(&self, name: &str) -> Result<Arc<dyn Driver>, Refusal> {
        by_name(self.mounter.drivers(), name)
    }

    fn is_marked(&self, mark: &str) -> bool {
        self.layout.data.join(mark).exists()
    }

    async fn mark(&self, mark: &str) {
        let mark = self.layout.data.join(mark);
        let written = tokio::task::spawn_blocking(move || {
            mark.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            write_whole(&mark, 0o600, b"")
        });
        if let Err(error) = written.await.map_err(std::io::Error::other).and_then(|it| it) {
            tracing::warn!(%error, "the classes local come back at the next start where somebody deletes them");
        }
    }
}

impl VolumeHands for NodeVolumes {
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>> {
        Box::pin(async {
            let mut news = self.news.lock().await;
            let (drivers, is_told) = &mut *news;
            if *is_told && drivers.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            *is_told = true;
            let found: Vec<Arc<dyn Driver>> = drivers.borrow_and_update().values().cloned().collect();
            found.iter().map(|it| node_driver(it.name(), it.facts())).collect()
        })
    }

    fn create(&self, request: Request, secrets: Secrets) -> BoxFuture<'_, Result<Created, Refusal>> {
        Box::pin(async move {
            let driver = self.driver(&request.driver)?;
            let made = driver.create(wanted(request, secrets.0)).await.map_err(refusal)?;
            let corten_volumes::CreatedVolume { handle, bytes, context, topology, fs_type, refused } = made;
            let refused = refused.map(|it| it.to_string());
            Ok(Created { handle, bytes, context, topology, fs_type, refused })
        })
    }

    fn delete(&self, driver: String, handle: String, secrets: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.driver(&driver)?.delete(handle, secrets.0).await.map_err(refusal) })
    }

    fn expand(
        &self,
        driver: String,
        volume: AttachedVolume,
        bytes: u64,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<Grown, Refusal>> {
        Box::pin(async move {
            let expanded = self.driver(&driver)?.expand(told(volume, secrets), bytes).await;
            let refused = if driver == LOCAL_DRIVER { built_in_unexpanded } else { refusal };
            expanded.map(grown).map_err(refused)
        })
    }

    fn attach(
        &self,
        driver: String,
        volume: AttachedVolume,
        node_id: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, Refusal>> {
        Box::pin(async move {
            let read_only = volume.read_only;
            self.driver(&driver)?.attach(told(volume, secrets), node_id, read_only).await.map_err(refusal)
        })
    }

    fn detach(
        &self,
        driver: String,
        handle: String,
        node_id: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.driver(&driver)?.detach(handle, node_id, secrets.0).await.map_err(refusal) })
    }

    fn expand_on_node(&self, volume: AttachedVolume, bytes: u64) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let staged = self.mounter.staged(LOCAL_DRIVER, &volume.handle).await;
            if staged.is_none() && self.mounter.published(LOCAL_DRIVER, &volume.handle).await.is_empty() {
                let why = "no pod has the volume on this node";
                return Err(built_in_ungrown(&Fault::new(Code::FailedPrecondition, why)));
            }
            let grown = self.mounter.grow(LOCAL_DRIVER, told(volume, Secrets::default()), bytes).await;
            grown.map_err(|it| built_in_ungrown(&it))
        })
    }

    fn create_snapshot(&self, taking: Taking, secrets: Secrets) -> BoxFuture<'_, Result<Snapshotted, SnapshotRefusal>> {
        Box::pin(async move {
            let not_there = |it: Refusal| SnapshotRefusal { message: it.message, is_final: false };
            let driver = self.driver(&taking.driver).map_err(not_there)?;
            let Taking { name, volume: source, parameters, .. } = taking;
            let wanted = CreateSnapshot { name, source, parameters, secrets: secrets.0 };
            let taken = driver.create_snapshot(wanted).await;
            taken.map(snapshotted).map_err(|it| snapshot_refusal(&it))
        })
    }

    fn delete_snapshot(&self, driver: String, handle: String, secrets: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            let driver = self.driver(&driver)?;
            driver.delete_snapshot(handle, secrets.0).await.map_err(refusal)
        })
    }

    fn find_snapshot(
        &self,
        driver: String,
        handle: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<Option<Snapshotted>, Refusal>> {
        Box::pin(async move {
            let found = self.driver(&driver)?.find_snapshot(handle, secrets.0).await.map_err(refusal)?;
            Ok(found.map(snapshotted))
        })
    }

    fn conditions(
        &self,
        driver: String,
        handles: BTreeSet<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, Option<String>>, Refusal>> {
        Box::pin(async move { self.driver(&driver)?.conditions(handles).await.map_err(refusal) })
    }

    fn modify(
        &self,
        driver: String,
        handle: String,
        parameters: BTreeMap<String, String>,
    ) -> BoxFuture<'_, Result<(), Unchanged>> {
        Box::pin(async move {
            let not_there = |it: Refusal| Unchanged { message: it.message, finality: Finality::Open };
            let driver = self.driver(&driver).map_err(not_there)?;
            // As external-resizer: no Secret.
            let changed = driver.modify(handle, parameters, BTreeMap::new()).await;
            changed.map_err(|fault| {
                let finality = match fault.code {
                    Code::InvalidArgument => Finality::Infeasible,
                    _ if fault.is_final() => Finality::Refused,
                    _ => Finality::Open,
                };
                Unchanged { message: fault.to_string(), finality }
            })
        })
    }

    fn capacity(&self, of: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>> {
        Box::pin(async move {
            let told = self.driver(&of.driver).ok()?.capacity(of.parameters).await;
            let told = told.inspect_err(|error| tracing::debug!(%error, driver = of.driver, "no capacity is told"));
            told.ok()?.map(|it| (it.available_bytes, it.maximum_bytes))
        })
    }

    fn built_in(&self) -> BoxFuture<'_, BuiltIn> {
        Box::pin(async {
            let (has_class, has_snapshots) = (self.is_marked(CLASS_MADE), self.is_marked(SNAPSHOTS_MADE));
            BuiltIn { driver: LOCAL_DRIVER.to_owned(), has_class, has_snapshots }
        })
    }

    fn class_is_made(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.mark(CLASS_MADE))
    }

    fn snapshots_are_made(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.mark(SNAPSHOTS_MADE))
    }
}

pub(crate) fn node_driver(name: &str, facts: Facts) -> NodeDriver {
    NodeDriver {
        facts: DriverFacts {
            name: name.to_owned(),
            provisions: facts.provisions,
            expands: facts.expands,
            expands_nothing: facts.socket.is_some() && facts.node_expands && !facts.expands,
            node_expands: facts.node_expands,
            tells_capacity: facts.tells_capacity,
            attaches: facts.attaches,
            attaches_read_only: facts.attaches_read_only,
            attaches_nothing: facts.socket.is_some() && !facts.attaches,
            snapshots: facts.snapshots,
            clones: facts.clones,
            modifies: facts.modifies,
            tells_conditions: facts.tells_conditions,
            socket: facts.socket.map(|it| it.display().to_string()),
            topology: facts.topology,
        },
        node_id: facts.node_id,
        limit: facts.limit,
    }
}
