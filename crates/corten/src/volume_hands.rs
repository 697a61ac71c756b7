//! The drivers of one node as the provisioner asks them, wherever the node is: what it wants becomes calls, and what is replied its words.

use std::collections::{BTreeMap, BTreeSet};

use corten_client::BoxFuture;
use corten_kubelet::Secrets;
use corten_provisioner::{
    AttachedTo, AttachedVolume, Created, DriverFacts, Failure, FailureKind, Grown, Published, Request, Snapshotted,
    Source, Taking,
};
use corten_runner::{BuiltIn, NodeDriver, Refusal, SnapshotRefusal, Unchanged, VolumeHands};
use corten_volumes::{
    Call, Code, CreateSnapshot, CreateVolume, Expanded, Facts, Fault, LOCAL_DRIVER, Reply, StageVolume, VolumeSource,
};

/// A node whose drivers can be asked. What each call means, [`VolumeHands`] says.
pub(crate) trait NodeDrivers: Send + Sync + 'static {
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>>;
    fn call(&self, driver: String, call: Call) -> BoxFuture<'_, Result<Reply, Fault>>;
    fn expand_on_node(&self, volume: AttachedVolume, bytes: u64) -> BoxFuture<'_, Result<(), Failure>>;
    fn built_in(&self) -> BoxFuture<'_, BuiltIn>;
    fn class_is_made(&self) -> BoxFuture<'_, ()>;
    fn snapshots_are_made(&self) -> BoxFuture<'_, ()>;
}

pub(crate) struct Hands<N>(pub(crate) N);

pub(crate) fn unexpected() -> Fault {
    Fault::internal("the node answers what it was not asked")
}

impl<N: NodeDrivers> Hands<N> {
    async fn done(&self, driver: String, call: Call) -> Result<(), Fault> {
        match self.0.call(driver, call).await? {
            Reply::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn snapshot(&self, driver: String, call: Call) -> Result<Option<Snapshotted>, Fault> {
        match self.0.call(driver, call).await? {
            Reply::Snapshot(found) => Ok(found.map(snapshotted)),
            _ => Err(unexpected()),
        }
    }

    async fn make(&self, request: Request, secrets: Secrets) -> Result<Created, Fault> {
        let driver = request.driver.clone();
        let Reply::Created(made) = self.0.call(driver, Call::Create(wanted(request, secrets.0))).await? else {
            return Err(unexpected());
        };
        let corten_volumes::CreatedVolume { handle, bytes, context, topology, fs_type, refused } = made;
        let refused = refused.map(|it| it.to_string());
        Ok(Created { handle, bytes, context, topology, fs_type, refused })
    }
}

impl<N: NodeDrivers> VolumeHands for Hands<N> {
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>> {
        self.0.drivers()
    }

    fn create(&self, request: Request, secrets: Secrets) -> BoxFuture<'_, Result<Created, Refusal>> {
        Box::pin(async move { self.make(request, secrets).await.map_err(refusal) })
    }

    fn delete(&self, driver: String, handle: String, Secrets(secrets): Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(driver, Call::Delete { handle, secrets }).await.map_err(refusal) })
    }

    fn expand(
        &self,
        driver: String,
        volume: AttachedVolume,
        bytes: u64,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<Grown, Refusal>> {
        Box::pin(async move {
            let refused = if driver == LOCAL_DRIVER { built_in_unexpanded } else { refusal };
            let call = Call::Expand { volume: staged_volume(volume, secrets), bytes };
            match self.0.call(driver, call).await.map_err(refused)? {
                Reply::Expanded(it) => Ok(grown(it)),
                _ => Err(refusal(unexpected())),
            }
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
            let call = Call::Attach { volume: staged_volume(volume, secrets), node_id, read_only };
            match self.0.call(driver, call).await.map_err(refusal)? {
                Reply::Attached(it) => Ok(it),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn detach(
        &self,
        driver: String,
        handle: String,
        node_id: String,
        Secrets(secrets): Secrets,
    ) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(driver, Call::Detach { handle, node_id, secrets }).await.map_err(refusal) })
    }

    fn expand_on_node(&self, volume: AttachedVolume, bytes: u64) -> BoxFuture<'_, Result<(), Failure>> {
        self.0.expand_on_node(volume, bytes)
    }

    fn create_snapshot(&self, taking: Taking, secrets: Secrets) -> BoxFuture<'_, Result<Snapshotted, SnapshotRefusal>> {
        Box::pin(async move {
            let Taking { name, driver, volume: source, parameters, .. } = taking;
            let wanted = CreateSnapshot { name, source, parameters, secrets: secrets.0 };
            let taken = self.snapshot(driver, Call::CreateSnapshot(wanted)).await;
            taken.and_then(|it| it.ok_or_else(unexpected)).map_err(|it| snapshot_refusal(&it))
        })
    }

    fn delete_snapshot(
        &self,
        driver: String,
        handle: String,
        Secrets(secrets): Secrets,
    ) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(driver, Call::DeleteSnapshot { handle, secrets }).await.map_err(refusal) })
    }

    fn find_snapshot(
        &self,
        driver: String,
        handle: String,
        Secrets(secrets): Secrets,
    ) -> BoxFuture<'_, Result<Option<Snapshotted>, Refusal>> {
        Box::pin(async move { self.snapshot(driver, Call::FindSnapshot { handle, secrets }).await.map_err(refusal) })
    }

    fn conditions(
        &self,
        driver: String,
        handles: BTreeSet<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, Option<String>>, Refusal>> {
        Box::pin(async move {
            match self.0.call(driver, Call::Conditions { handles }).await.map_err(refusal)? {
                Reply::Conditions(it) => Ok(it),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn attached(&self, driver: String, places: AttachedTo) -> BoxFuture<'_, Result<AttachedTo, Refusal>> {
        Box::pin(async move {
            match self.0.call(driver, Call::Attached { places }).await.map_err(refusal)? {
                Reply::AttachedTo(it) => Ok(it),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn modify(
        &self,
        driver: String,
        handle: String,
        parameters: BTreeMap<String, String>,
        Secrets(secrets): Secrets,
    ) -> BoxFuture<'_, Result<(), Unchanged>> {
        Box::pin(async move {
            let changed = self.done(driver, Call::Modify { handle, parameters, secrets }).await;
            changed.map_err(|fault| {
                let kind = match fault.code {
                    Code::InvalidArgument => FailureKind::Infeasible,
                    _ if fault.is_final() => FailureKind::Refused,
                    _ => FailureKind::Open,
                };
                Unchanged { message: fault.to_string(), kind }
            })
        })
    }

    fn capacity(&self, of: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>> {
        Box::pin(async move {
            let Published { driver, parameters, .. } = of;
            let told = self.0.call(driver.clone(), Call::Capacity { parameters }).await;
            match told.inspect_err(|error| tracing::debug!(%error, driver, "no capacity is told")).ok()? {
                Reply::Capacity(it) => it.map(|it| (it.available_bytes, it.maximum_bytes)),
                _ => None,
            }
        })
    }

    fn built_in(&self) -> BoxFuture<'_, BuiltIn> {
        self.0.built_in()
    }

    fn class_is_made(&self) -> BoxFuture<'_, ()> {
        self.0.class_is_made()
    }

    fn snapshots_are_made(&self) -> BoxFuture<'_, ()> {
        self.0.snapshots_are_made()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(crate) fn refusal(fault: Fault) -> Refusal {
    let is_exhausted = fault.code == Code::ResourceExhausted;
    Refusal { message: fault.to_string(), is_exhausted, kind: kind(&fault) }
}

/// Why the built-in driver did not grow a volume: where there is no room nothing was begun, and less may be asked for.
fn built_in_unexpanded(fault: Fault) -> Refusal {
    let refusal = refusal(fault);
    let kind = if refusal.is_exhausted { FailureKind::Infeasible } else { refusal.kind };
    Refusal { kind, ..refusal }
}

fn kind(fault: &Fault) -> FailureKind {
    match fault {
        it if it.is_infeasible() => FailureKind::Infeasible,
        it if it.is_final() => FailureKind::Refused,
        _ => FailureKind::Open,
    }
}

/// Why a driver did not grow a volume on this node. As the kubelet's `inUseError` and `isInfeasibleError`.
pub(crate) fn ungrown(fault: &Fault) -> Failure {
    let is_in_use = fault.code == Code::FailedPrecondition;
    Failure { message: fault.to_string(), is_in_use, kind: kind(fault), ..Failure::default() }
}

/// The same of the built-in driver: where it waits for a Pod to end or to begin, the claim says so already.
pub(crate) fn built_in_ungrown(fault: &Fault) -> Failure {
    let failure = ungrown(fault);
    let kind = if failure.is_in_use { FailureKind::Open } else { failure.kind };
    Failure { kind, ..failure }
}

fn grown(expanded: Expanded) -> Grown {
    Grown { bytes: expanded.bytes, needs_node: expanded.node_expansion_required }
}

/// What a driver is told of a volume.
pub(crate) fn staged_volume(volume: AttachedVolume, secrets: Secrets) -> StageVolume {
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
fn wanted(request: Request, secrets: BTreeMap<String, String>) -> CreateVolume {
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

fn snapshotted(snapshot: corten_volumes::Snapshot) -> Snapshotted {
    let corten_volumes::Snapshot { handle, bytes, created_at, is_ready, .. } = snapshot;
    Snapshotted { handle, bytes, created_at, is_ready }
}

fn snapshot_refusal(fault: &Fault) -> SnapshotRefusal {
    // As csi-snapshotter: with these it may still be made.
    let open = [Code::Canceled, Code::DeadlineExceeded, Code::Unavailable, Code::Aborted];
    let is_final = !open.contains(&fault.code);
    SnapshotRefusal { is_final, message: fault.to_string() }
}

pub(crate) fn node_driver(name: &str, facts: Facts) -> NodeDriver {
    NodeDriver {
        facts: DriverFacts {
            name: name.to_owned(),
            provisions: facts.provisions,
            expands: facts.expands,
            expands_nothing: !facts.is_built_in() && facts.node_expands && !facts.expands,
            node_expands: facts.node_expands,
            tells_capacity: facts.tells_capacity,
            attaches: facts.attaches,
            attaches_read_only: facts.attaches_read_only,
            attaches_nothing: !facts.is_built_in() && !facts.attaches,
            snapshots: facts.snapshots,
            clones: facts.clones,
            modifies: facts.modifies,
            tells_conditions: facts.tells_conditions,
            tells_attached: facts.tells_attached,
            socket: facts.socket.map(|it| it.display().to_string()),
            topology: facts.topology,
        },
        node_id: facts.node_id,
        limit: facts.limit,
    }
}
