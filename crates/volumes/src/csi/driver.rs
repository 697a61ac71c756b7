//! A driver at a socket, as the node asks it.

use std::{collections::BTreeMap, path::PathBuf};

use futures_util::future::BoxFuture;

use super::{
    client::{CAPABILITIES, Client, EXPAND, INFO, PUBLISH, STAGE, STATS, UNPUBLISH, UNSTAGE},
    messages::{
        self, AccessMode, Capabilities, CapacityRange, Empty, MountVolume, NodeExpandVolume, NodeExpanded,
        NodeGetVolumeStats, NodeInfo, NodePublishVolume, NodeStageVolume, NodeTakeAway, NodeVolumeStats,
        VolumeCapability,
    },
};
use crate::{Capacity, Code, CreateVolume, CreatedVolume, Driver, Expanded, Facts, Fault, StageVolume, VolumeStats};

/// CSI's bound for what identifies a node.
const NODE_ID_BYTES_MAX: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct CsiDriver {
    name: String,
    client: Client,
    facts: Facts,
    capabilities: Vec<i32>,
    /// The node's folder, here and as the driver knows it.
    roots: (PathBuf, PathBuf),
}

impl CsiDriver {
    /// Asks it what it can do here.
    pub(super) async fn introduce(name: &str, client: Client, roots: (PathBuf, PathBuf)) -> Result<Self, Fault> {
        let answer: Capabilities = client.call(CAPABILITIES, Empty {}).await?;
        let capabilities: Vec<i32> =
            answer.capabilities.iter().filter_map(|it| it.rpc.as_ref()).map(|it| it.r#type).collect();
        let info: NodeInfo = client.call(INFO, Empty {}).await?;
        if info.node_id.is_empty() || info.node_id.len() > NODE_ID_BYTES_MAX {
            return Err(Fault::new(Code::InvalidArgument, "the driver has no name for this node, or too long a one"));
        }
        let facts = Facts {
            node_expands: capabilities.contains(&messages::EXPANDS),
            node_id: info.node_id,
            topology: info.accessible_topology.unwrap_or_default().segments,
            limit: i32::try_from(info.max_volumes_per_node).ok().filter(|it| *it > 0),
            ..Facts::default()
        };
        Ok(Self { name: name.to_owned(), client, facts, capabilities, roots })
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
        let mount = || MountVolume { fs_type: volume.fs_type.clone(), mount_flags: volume.mount_options.clone() };
        VolumeCapability {
            block: volume.is_block.then(Empty::default),
            mount: (!volume.is_block).then(mount),
            access_mode: Some(AccessMode { mode: self.access_mode(&volume.access_mode) }),
        }
    }

    /// As the kubelet's `asCSIAccessModeV1` and `asSingleNodeMultiWriterCapableCSIAccessModeV1`.
    fn access_mode(&self, mode: &str) -> i32 {
        match (mode, self.has(messages::SINGLE_NODE_MULTI_WRITER)) {
            ("ReadWriteOnce", true) => 7,
            ("ReadWriteOncePod", true) => 6,
            ("ReadWriteOnce" | "ReadWriteOncePod", false) => 1,
            ("ReadOnlyMany", _) => 3,
            ("ReadWriteMany", _) => 5,
            _ => 0,
        }
    }
}

/// What its sidecars do for it.
fn of_sidecars<T>(what: &str, name: &str) -> Result<T, Fault> {
    Err(Fault::new(Code::Unimplemented, format!("volumes of {name} are {what} by its own controller")))
}

impl Driver for CsiDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn stages(&self) -> bool {
        self.has(messages::STAGES)
    }

    fn create(&self, _: CreateVolume) -> BoxFuture<'_, Result<CreatedVolume, Fault>> {
        Box::pin(async { of_sidecars("made", &self.name) })
    }

    fn delete(&self, _: String, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async { of_sidecars("removed", &self.name) })
    }

    fn expand(&self, _: String, _: u64, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<Expanded, Fault>> {
        Box::pin(async { of_sidecars("grown", &self.name) })
    }

    fn capacity(&self, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<Option<Capacity>, Fault>> {
        Box::pin(async { Ok(None) })
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

    fn node_expand(
        &self,
        handle: String,
        path: PathBuf,
        staging: Option<PathBuf>,
        bytes: u64,
    ) -> BoxFuture<'_, Result<u64, Fault>> {
        Box::pin(async move {
            let required_bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let request = NodeExpandVolume {
                volume_id: handle,
                volume_path: self.seen(&path),
                capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
                staging_target_path: staging.map(|it| self.seen(&it)).unwrap_or_default(),
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
            let request = NodeGetVolumeStats { volume_id: handle, volume_path: self.seen(&path) };
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
            })
        })
    }
}
