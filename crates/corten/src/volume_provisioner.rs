//! The drivers of this node, as the provisioner asks them; the built-in one among them.

use std::{collections::BTreeMap, sync::Arc};

use corten_cli::SNAPSHOTS_MADE;
use corten_client::BoxFuture;
use corten_host::{Containerd, NodeHands};
use corten_kubelet::{EvictionConfig, GrowableVolume, Secrets};
use corten_machine::{Layout, write_whole};
use corten_provisioner::{AttachedVolume, Failure};
use corten_runner::{
    BuiltIn, NodeDriver, ProvisionerSettings, SickVolume, VolumeGrowthHands, VolumeGrowthSettings, VolumeHealthHands,
    VolumeHealthSettings, VolumeLimitHands,
};
use corten_volumes::{Call, Code, Driver, Drivers, Fault, LOCAL_DRIVER, LocalDriver, Mounter, Reply, Reserve};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
};

use crate::{
    cluster_access::{ClusterAccess, ServerAccess},
    in_process,
    volume_hands::{Hands, NodeDrivers, built_in_ungrown, node_driver, staged_volume, ungrown},
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
    let (volumes, node) = (NodeVolumes { mounter, layout, news }, cluster.client(in_process::kubelet(node_name)));
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
        let volumes = Arc::new(volumes);
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
        hands: Arc::new(Hands(volumes)),
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
            let grown = self.0.grow(&driver, staged_volume(volume, secrets), bytes).await;
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

impl NodeVolumes {
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

impl NodeDrivers for NodeVolumes {
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

    fn call(&self, driver: String, call: Call) -> BoxFuture<'_, Result<Reply, Fault>> {
        Box::pin(async move {
            let missing = || Fault::new(Code::Unavailable, format!("driver {driver} is not registered on this node"));
            let driver = self.mounter.drivers().get(&driver).ok_or_else(missing)?;
            call.put_to(&*driver).await
        })
    }

    fn expand_on_node(&self, volume: AttachedVolume, bytes: u64) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let staged = self.mounter.staged(LOCAL_DRIVER, &volume.handle).await;
            if staged.is_none() && self.mounter.published(LOCAL_DRIVER, &volume.handle).await.is_empty() {
                let why = "no pod has the volume on this node";
                return Err(built_in_ungrown(&Fault::new(Code::FailedPrecondition, why)));
            }
            let grown = self.mounter.grow(LOCAL_DRIVER, staged_volume(volume, Secrets::default()), bytes).await;
            grown.map_err(|it| built_in_ungrown(&it))
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
