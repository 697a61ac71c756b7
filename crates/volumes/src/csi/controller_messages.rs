//! Messages of CSI version 1 for what concerns volumes as such, up to version 1.12: the services Identity and Controller.

use std::collections::BTreeMap;

use super::messages::{CapacityRange, Topology, Usage, VolumeCapability};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetPluginInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) vendor_version: String,
}

/// `google.protobuf.Int64Value`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Int64 {
    #[prost(int64, tag = "1")]
    pub(crate) value: i64,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PluginCapabilities {
    #[prost(message, repeated, tag = "1")]
    pub(crate) capabilities: Vec<PluginCapability>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PluginCapability {
    #[prost(message, optional, tag = "1")]
    pub(crate) service: Option<Kind>,
    #[prost(message, optional, tag = "2")]
    pub(crate) volume_expansion: Option<Kind>,
}

/// One of a list.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Kind {
    #[prost(int32, tag = "1")]
    pub(crate) r#type: i32,
}

/// Of the plugin: it has the service Controller.
pub(crate) const HAS_CONTROLLER: i32 = 1;
/// Of the plugin: not every node reaches each of its volumes.
pub(crate) const HAS_TOPOLOGY: i32 = 2;

/// What a controller can do (`ControllerServiceCapability.RPC`).
pub(crate) mod can {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const PUBLISH: i32 = 2;
    pub(crate) const LIST: i32 = 3;
    pub(crate) const TELL_CAPACITY: i32 = 4;
    pub(crate) const SNAPSHOT: i32 = 5;
    pub(crate) const LIST_SNAPSHOTS: i32 = 6;
    pub(crate) const CLONE: i32 = 7;
    pub(crate) const PUBLISH_READ_ONLY: i32 = 8;
    pub(crate) const EXPAND: i32 = 9;
    pub(crate) const TELL_ATTACHED: i32 = 10;
    pub(crate) const TELL_CONDITION: i32 = 11;
    pub(crate) const GET: i32 = 12;
    pub(crate) const SINGLE_NODE_MULTI_WRITER: i32 = 13;
    pub(crate) const MODIFY: i32 = 14;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CreateVolume {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) capacity_range: Option<CapacityRange>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) volume_capabilities: Vec<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(crate) parameters: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(message, optional, tag = "6")]
    pub(crate) volume_content_source: Option<ContentSource>,
    #[prost(message, optional, tag = "7")]
    pub(crate) accessibility_requirements: Option<TopologyRequirement>,
    #[prost(btree_map = "string, string", tag = "8")]
    pub(crate) mutable_parameters: BTreeMap<String, String>,
}

/// One of the two.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContentSource {
    #[prost(message, optional, tag = "1")]
    pub(crate) snapshot: Option<Id>,
    #[prost(message, optional, tag = "2")]
    pub(crate) volume: Option<Id>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Id {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TopologyRequirement {
    #[prost(message, repeated, tag = "1")]
    pub(crate) requisite: Vec<Topology>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) preferred: Vec<Topology>,
}

/// Of volumes.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct List {
    #[prost(int32, tag = "1")]
    pub(crate) max_entries: i32,
    #[prost(string, tag = "2")]
    pub(crate) starting_token: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListedVolumes {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<VolumeStanding>,
    #[prost(string, tag = "2")]
    pub(crate) next_token: String,
}

/// Of `CreateVolume`, too.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VolumeStanding {
    #[prost(message, optional, tag = "1")]
    pub(crate) volume: Option<Volume>,
    #[prost(message, optional, tag = "2")]
    pub(crate) status: Option<VolumeStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VolumeStatus {
    #[prost(string, repeated, tag = "1")]
    pub(crate) published_node_ids: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) volume_condition: Option<Condition>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Condition {
    #[prost(bool, tag = "1")]
    pub(crate) abnormal: bool,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Volume {
    #[prost(int64, tag = "1")]
    pub(crate) capacity_bytes: i64,
    #[prost(string, tag = "2")]
    pub(crate) volume_id: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) volume_context: BTreeMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub(crate) content_source: Option<ContentSource>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) accessible_topology: Vec<Topology>,
}

/// A volume or a snapshot that is to go.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Delete {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ControllerPublish {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(string, tag = "2")]
    pub(crate) node_id: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) volume_capability: Option<VolumeCapability>,
    #[prost(bool, tag = "4")]
    pub(crate) readonly: bool,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) volume_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ControllerPublished {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(crate) publish_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ControllerUnpublish {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(string, tag = "2")]
    pub(crate) node_id: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetCapacity {
    #[prost(message, repeated, tag = "1")]
    pub(crate) volume_capabilities: Vec<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) parameters: BTreeMap<String, String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) accessible_topology: Option<Topology>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AvailableCapacity {
    #[prost(int64, tag = "1")]
    pub(crate) available_capacity: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) maximum_volume_size: Option<Int64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CreateSnapshot {
    #[prost(string, tag = "1")]
    pub(crate) source_volume_id: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(crate) parameters: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SnapshotStanding {
    #[prost(message, optional, tag = "1")]
    pub(crate) snapshot: Option<Snapshot>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Snapshot {
    #[prost(int64, tag = "1")]
    pub(crate) size_bytes: i64,
    #[prost(string, tag = "2")]
    pub(crate) snapshot_id: String,
    #[prost(string, tag = "3")]
    pub(crate) source_volume_id: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) creation_time: Option<Timestamp>,
    #[prost(bool, tag = "5")]
    pub(crate) ready_to_use: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListSnapshots {
    #[prost(int32, tag = "1")]
    pub(crate) max_entries: i32,
    #[prost(string, tag = "2")]
    pub(crate) starting_token: String,
    #[prost(string, tag = "3")]
    pub(crate) source_volume_id: String,
    #[prost(string, tag = "4")]
    pub(crate) snapshot_id: String,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(crate) secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListedSnapshots {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<SnapshotStanding>,
    #[prost(string, tag = "2")]
    pub(crate) next_token: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ControllerExpand {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) capacity_range: Option<CapacityRange>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub(crate) volume_capability: Option<VolumeCapability>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ControllerExpanded {
    #[prost(int64, tag = "1")]
    pub(crate) capacity_bytes: i64,
    #[prost(bool, tag = "2")]
    pub(crate) node_expansion_required: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetVolume {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ControllerModify {
    #[prost(string, tag = "1")]
    pub(crate) volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(crate) secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) mutable_parameters: BTreeMap<String, String>,
}

/// What a volume holds, and how it is.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeVolumeStats {
    #[prost(message, repeated, tag = "1")]
    pub(crate) usage: Vec<Usage>,
    #[prost(message, optional, tag = "2")]
    pub(crate) volume_condition: Option<Condition>,
}
