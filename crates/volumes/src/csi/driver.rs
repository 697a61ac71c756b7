//! A driver at a socket, as the node asks it: for what concerns the node here, for what concerns volumes as such its
//! [`Controller`].

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use corten_meta::field;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{
    client::{CAPABILITIES, Client, EXPAND, INFO, PLUGIN_INFO, PUBLISH, STAGE, STATS, UNPUBLISH, UNSTAGE},
    controller::{Controller, bounded, capability},
    controller_messages::{GetPluginInfo, NodeVolumeStats, can},
    messages::{
        self, Capabilities, CapacityRange, Empty, NodeExpandVolume, NodeExpanded, NodeGetVolumeStats, NodeInfo,
        NodePublishVolume, NodeStageVolume, NodeTakeAway, VolumeCapability,
    },
};
use crate::{
    AttachedTo, Capacity, Code, CreateSnapshot, CreateVolume, CreatedVolume, Driver, Expanded, Facts, Fault,
    NodeExpand, Snapshot, StageVolume, VolumeStats,
};

/// CSI's bound for what identifies a node.
const NODE_ID_BYTES_MAX: usize = 256;
/// Nobody has as many kinds of places.
const TOPOLOGY_KEYS_MAX: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct CsiDriver {
    name: String,
    client: Client,
    facts: Facts,
    /// `None`: what concerns volumes as such is done by others.
    controller: Option<Controller>,
    /// At this node.
    capabilities: Vec<i32>,
    /// The node's folder, here and as the driver knows it.
    roots: (PathBuf, PathBuf),
    /// How many volumes the node takes, as it said last.
    limit: Arc<Mutex<Option<i32>>>,
}

impl CsiDriver {
    /// Asks it what it can do here. `socket` is where it listens, as others on this node name that.
    pub(super) async fn introduce(
        name: &str,
        client: Client,
        socket: PathBuf,
        roots: (PathBuf, PathBuf),
    ) -> Result<Self, Fault> {
        let own: GetPluginInfo = client.call(PLUGIN_INFO, Empty {}).await?;
        if own.name != name {
            let why = format!("the driver at {} is not {name}: it says it is {:?}", socket.display(), own.name);
            return Err(Fault::new(Code::InvalidArgument, why));
        }
        let answer: Capabilities = client.call(CAPABILITIES, Empty {}).await?;
        let capabilities: Vec<i32> =
            answer.capabilities.iter().filter_map(|it| it.rpc.as_ref()).map(|it| it.r#type).collect();
        let info: NodeInfo = client.call(INFO, Empty {}).await?;
        if info.node_id.is_empty() || info.node_id.len() > NODE_ID_BYTES_MAX {
            return Err(Fault::new(Code::InvalidArgument, "the driver has no name for this node, or too long a one"));
        }
        let topology = info.accessible_topology.unwrap_or_default().segments;
        check_topology(&topology)?;
        let controller = Controller::introduce(&client).await?;
        let can = |what| controller.as_ref().is_some_and(|it| it.can(what));
        let facts = Facts {
            provisions: can(can::CREATE),
            expands: can(can::EXPAND),
            node_expands: capabilities.contains(&messages::EXPANDS),
            tells_capacity: can(can::TELL_CAPACITY),
            attaches: can(can::PUBLISH),
            attaches_read_only: can(can::PUBLISH_READ_ONLY),
            tells_attached: controller.as_ref().is_some_and(Controller::tells_attached),
            snapshots: can(can::SNAPSHOT),
            clones: can(can::CLONE),
            modifies: can(can::MODIFY),
            tells_health: capabilities.contains(&messages::TELLS_CONDITION),
            tells_conditions: controller.as_ref().is_some_and(Controller::tells_conditions),
            takes_group: capabilities.contains(&messages::TAKES_GROUP),
            has_topology: controller.as_ref().is_some_and(|it| it.has_topology),
            socket: Some(socket),
            node_id: info.node_id,
            topology,
            limit: None,
        };
        let limit = Arc::new(Mutex::new(limit_of(info.max_volumes_per_node)));
        Ok(Self { name: name.to_owned(), client, facts, controller, capabilities, roots, limit })
    }

    /// A path of the node as the driver knows it.
    fn seen(&self, path: &std::path::Path) -> String {
        let (own, theirs) = &self.roots;
        let seen = path.strip_prefix(own).map_or_else(|_| path.to_owned(), |it| theirs.join(it));
        seen.to_string_lossy().into_owned()
    }

    fn has(&self, capability: i32) -> bool {
        self.capabilities.contains(&capability)
    }

    fn capability(&self, volume: &StageVolume) -> VolumeCapability {
        capability(volume, self.has(messages::SINGLE_NODE_MULTI_WRITER))
    }

    fn controller(&self) -> Result<&Controller, Fault> {
        let missing = || Fault::new(Code::Unimplemented, format!("{} has no controller at this node", self.name));
        self.controller.as_ref().ok_or_else(missing)
    }
}

/// None where it says zero.
fn limit_of(volumes: i64) -> Option<i32> {
    i32::try_from(volumes).ok().filter(|it| *it > 0)
}

impl Driver for CsiDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> Facts {
        Facts { limit: *self.limit.lock(), ..self.facts.clone() }
    }

    fn ask_limit(&self) -> BoxFuture<'_, Result<bool, Fault>> {
        Box::pin(async {
            let info: NodeInfo = self.client.call(INFO, Empty {}).await?;
            let limit = limit_of(info.max_volumes_per_node);
            Ok(std::mem::replace(&mut *self.limit.lock(), limit) != limit)
        })
    }

    fn stages(&self) -> bool {
        self.has(messages::STAGES)
    }

    fn create(&self, volume: CreateVolume) -> BoxFuture<'_, Result<CreatedVolume, Fault>> {
        Box::pin(async { self.controller()?.create(volume).await })
    }

    fn delete(&self, handle: String, secrets: BTreeMap<String, String>) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async { self.controller()?.delete(handle, secrets).await })
    }

    fn expand(&self, volume: StageVolume, bytes: u64) -> BoxFuture<'_, Result<Expanded, Fault>> {
        Box::pin(async move { self.controller()?.expand(volume, bytes).await })
    }

    fn capacity(&self, parameters: BTreeMap<String, String>) -> BoxFuture<'_, Result<Option<Capacity>, Fault>> {
        Box::pin(async {
            match &self.controller {
                Some(it) => it.capacity(parameters, &self.facts.topology).await,
                None => Ok(None),
            }
        })
    }

    fn attach(
        &self,
        volume: StageVolume,
        node_id: String,
        read_only: bool,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, Fault>> {
        Box::pin(async move { self.controller()?.attach(volume, node_id, read_only).await })
    }

    fn detach(
        &self,
        handle: String,
        node_id: String,
        secrets: BTreeMap<String, String>,
    ) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async { self.controller()?.detach(handle, node_id, secrets).await })
    }

    fn create_snapshot(&self, snapshot: CreateSnapshot) -> BoxFuture<'_, Result<Snapshot, Fault>> {
        Box::pin(async { self.controller()?.create_snapshot(snapshot).await })
    }

    fn delete_snapshot(&self, handle: String, secrets: BTreeMap<String, String>) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async { self.controller()?.delete_snapshot(handle, secrets).await })
    }

    fn find_snapshot(
        &self,
        handle: String,
        secrets: BTreeMap<String, String>,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, Fault>> {
        Box::pin(async { self.controller()?.find_snapshot(handle, secrets).await })
    }

    fn conditions(&self, handles: BTreeSet<String>) -> BoxFuture<'_, Result<BTreeMap<String, Option<String>>, Fault>> {
        Box::pin(async { self.controller()?.conditions(handles).await })
    }

    fn attached(&self, places: AttachedTo) -> BoxFuture<'_, Result<AttachedTo, Fault>> {
        Box::pin(async { self.controller()?.attached(places).await })
    }

    fn modify(
        &self,
        handle: String,
        parameters: BTreeMap<String, String>,
        secrets: BTreeMap<String, String>,
    ) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async { self.controller()?.modify(handle, parameters, secrets).await })
    }

    fn stage(&self, volume: StageVolume, staging: PathBuf) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let request = NodeStageVolume {
                volume_capability: Some(self.capability(&volume)),
                staging_target_path: self.seen(&staging),
                volume_id: volume.handle,
                publish_context: volume.publish_context,
                secrets: volume.secrets,
                volume_context: volume.context,
            };
            self.client.call(STAGE, request).await.map(|Empty {}| ())
        })
    }

    fn unstage(&self, handle: String, staging: PathBuf) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let request = NodeTakeAway { volume_id: handle, path: self.seen(&staging) };
            self.client.call(UNSTAGE, request).await.map(|Empty {}| ())
        })
    }

    fn publish(
        &self,
        volume: StageVolume,
        staging: Option<PathBuf>,
        target: PathBuf,
        read_only: bool,
    ) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let request = NodePublishVolume {
                volume_capability: Some(self.capability(&volume)),
                staging_target_path: staging.map(|it| self.seen(&it)).unwrap_or_default(),
                target_path: self.seen(&target),
                readonly: read_only,
                volume_id: volume.handle,
                publish_context: volume.publish_context,
                secrets: volume.secrets,
                volume_context: volume.context,
            };
            self.client.call(PUBLISH, request).await.map(|Empty {}| ())
        })
    }

    fn unpublish(&self, handle: String, target: PathBuf) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let request = NodeTakeAway { volume_id: handle, path: self.seen(&target) };
            self.client.call(UNPUBLISH, request).await.map(|Empty {}| ())
        })
    }

    fn node_expand(&self, asked: NodeExpand) -> BoxFuture<'_, Result<u64, Fault>> {
        Box::pin(async move {
            let NodeExpand { volume, path, staging, bytes } = asked;
            let required_bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let request = NodeExpandVolume {
                volume_path: self.seen(&path),
                capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
                staging_target_path: staging.map(|it| self.seen(&it)).unwrap_or_default(),
                volume_capability: Some(self.capability(&volume)),
                volume_id: volume.handle,
                secrets: volume.secrets,
            };
            let answer: NodeExpanded = self.client.call(EXPAND, request).await?;
            Ok(u64::try_from(answer.capacity_bytes).ok().filter(|it| *it > 0).unwrap_or(bytes))
        })
    }

    fn stats(&self, handle: String, path: PathBuf) -> BoxFuture<'_, Result<VolumeStats, Fault>> {
        Box::pin(async move {
            if !self.has(messages::TELLS_STATS) {
                return Err(Fault::new(Code::Unimplemented, format!("{} tells no statistics", self.name)));
            }
            let request = NodeGetVolumeStats {
                volume_id: handle,
                volume_path: self.seen(&path),
                staging_target_path: String::new(),
            };
            let answer: NodeVolumeStats = self.client.call(STATS, request).await?;
            let of = |unit| answer.usage.iter().find(|it| it.unit == unit).cloned().unwrap_or_default();
            let (bytes, inodes, whole) = (of(1), of(2), |it: i64| u64::try_from(it).unwrap_or(0));
            Ok(VolumeStats {
                capacity_bytes: whole(bytes.total),
                used_bytes: whole(bytes.used),
                available_bytes: whole(bytes.available),
                inodes: whole(inodes.total),
                inodes_used: whole(inodes.used),
                inodes_free: whole(inodes.available),
                abnormal: answer
                    .volume_condition
                    .filter(|it| it.abnormal && self.has(messages::TELLS_CONDITION))
                    .map(|it| bounded(&it.message)),
            })
        })
    }
}

/// Where the node is, its labels and its CSINode say: one driver's nonsense must not keep the others from being told of.
fn check_topology(topology: &BTreeMap<String, String>) -> Result<(), Fault> {
    let invalid = |why: String| Fault::new(Code::InvalidArgument, why);
    if topology.len() > TOPOLOGY_KEYS_MAX {
        return Err(invalid(format!("the driver says with more than {TOPOLOGY_KEYS_MAX} labels where this node is")));
    }
    match topology.iter().find(|it| !field::qualified_name(it.0).is_empty() || !field::label_value(it.1).is_empty()) {
        Some((key, value)) => {
            let bounded = |it: &str| it.chars().take(64).collect::<String>();
            let (key, value) = (bounded(key), bounded(value));
            Err(invalid(format!("the driver says where this node is with what is no label: {key:?}: {value:?}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_said_in_labels() {
        let place = |all: &[(&str, &str)]| all.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
        check_topology(&place(&[("topology.x/zone", "a"), ("host", "n1")])).expect("labels");
        for bad in [[("no label", "a")], [("x/y/z", "a")], [("zone", "a b")]] {
            check_topology(&place(&bad)).expect_err("no label");
        }
        let many = (0..17).map(|it| (format!("k{it}"), String::new())).collect();
        assert!(check_topology(&many).expect_err("too many").message.contains("more than 16"));
    }
}
