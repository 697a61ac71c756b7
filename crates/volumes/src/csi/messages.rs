//! Messages of CSI version 1, as far as Corten uses them; prost skips what it does not know.

use std::collections::BTreeMap;

/// Says no more than its type.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Capabilities {
    #[prost(message, repeated, tag = "1")]
    pub(crate) capabilities: Vec<Capability>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Capability {
    #[prost(message, optional, tag = "1")]
    pub(crate) rpc: Option<Rpc>,
}

/// For a node: [`STAGES`], [`TELLS_STATS`], [`EXPANDS`], [`TELLS_CONDITION`], [`SINGLE_NODE_MULTI_WRITER`], [`TAKES_GROUP`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Rpc {
    #[prost(int32, tag = "1")]
    pub(crate) r#type: i32,
}

pub(crate) const STAGES: i32 = 1;
pub(crate) const TELLS_STATS: i32 = 2;
pub(crate) const EXPANDS: i32 = 3;
pub(crate) const TELLS_CONDITION: i32 = 4;
pub(crate) const SINGLE_NODE_MULTI_WRITER: i32 = 5;
pub(crate) const TAKES_GROUP: i32 = 6;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeInfo {
    #[prost(string, tag = "1")]
    pub(crate) node_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) max_volumes_per_node: i64,
    #[prost(message, optional, tag = "3")]
    pub(crate) accessible_topology: Option<Topology>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Topology {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(crate) segments: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VolumeCapability {
    #[prost(message, optional, tag = "1")]
    pub(crate) block: Option<Empty>,
    #[prost(message, optional, tag = "2")]
    pub(crate) mount: Option<MountVolume>,
    #[prost(message, optional, tag = "3")]
    pub(crate) access_mode: Option<AccessMode>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MountVolume {
    #[prost(string, tag = "1")]
    pub(crate) fs_type: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) mount_flags: Vec<String>,
    /// For a driver that gives files to a group itself.
    #[prost(string, tag = "3")]
    pub(crate) volume_mount_group: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AccessMode {
    #[prost(int32, tag = "1")]
    pub(crate) mode: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CapacityRange {
    #[prost(int64, tag = "1")]
    pub(crate) required_bytes: i64,
    #[prost(int64, tag = "2")]
    pub(crate) limit_bytes: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeStageVolume {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) publish_context: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    pub(crate) staging_target_path: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) volume_capability: Option<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) volume_context: BTreeMap<String, String>,
}

/// Of staging and publishing: the volume, and where it is.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeTakeAway {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(string, tag = "2")]
    pub(crate) path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodePublishVolume {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) publish_context: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    pub(crate) staging_target_path: String,
    #[prost(string, tag = "4")]
    pub(crate) target_path: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) volume_capability: Option<VolumeCapability>,
    #[prost(bool, tag = "6")]
    pub(crate) readonly: bool,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "8")]
    pub(crate) volume_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeExpandVolume {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(string, tag = "2")]
    pub(crate) volume_path: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) capacity_range: Option<CapacityRange>,
    #[prost(string, tag = "4")]
    pub(crate) staging_target_path: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) volume_capability: Option<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeExpanded {
    #[prost(int64, tag = "1")]
    pub(crate) capacity_bytes: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeGetVolumeStats {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(string, tag = "2")]
    pub(crate) volume_path: String,
    #[prost(string, tag = "3")]
    pub(crate) staging_target_path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Usage {
    #[prost(int64, tag = "1")]
    pub(crate) available: i64,
    #[prost(int64, tag = "2")]
    pub(crate) total: i64,
    #[prost(int64, tag = "3")]
    pub(crate) used: i64,
    /// 1: bytes, 2: inodes.
    #[prost(int32, tag = "4")]
    pub(crate) unit: i32,
}
