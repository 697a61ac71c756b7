//! What drivers are asked that Corten does not ask them.

use std::collections::BTreeMap;

use crate::csi::{controller_messages::VolumeStanding, messages::VolumeCapability};

pub(in crate::csi) const PROBE: &str = "/csi.v1.Identity/Probe";
pub(in crate::csi) const VALIDATE: &str = "/csi.v1.Controller/ValidateVolumeCapabilities";
pub(in crate::csi) const LIST: &str = "/csi.v1.Controller/ListVolumes";
pub(in crate::csi) const GET: &str = "/csi.v1.Controller/ControllerGetVolume";

/// What a controller can do, beside `controller_messages::can`.
pub(in crate::csi) mod can {
    pub(in crate::csi) const LIST: i32 = 3;
    pub(in crate::csi) const TELL_CONDITION: i32 = 11;
    pub(in crate::csi) const GET: i32 = 12;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct Probed {
    #[prost(message, optional, tag = "1")]
    pub(in crate::csi) ready: Option<Bool>,
}

/// `google.protobuf.BoolValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct Bool {
    #[prost(bool, tag = "1")]
    pub(in crate::csi) value: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct ValidateCapabilities {
    #[prost(string, tag = "1")]
    pub(in crate::csi) volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(in crate::csi) volume_context: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::csi) volume_capabilities: Vec<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(in crate::csi) parameters: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct ValidatedCapabilities {
    #[prost(message, optional, tag = "1")]
    pub(in crate::csi) confirmed: Option<Confirmed>,
    #[prost(string, tag = "2")]
    pub(in crate::csi) message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct Confirmed {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(in crate::csi) volume_context: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::csi) volume_capabilities: Vec<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(in crate::csi) parameters: BTreeMap<String, String>,
}

/// Of volumes.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct List {
    #[prost(int32, tag = "1")]
    pub(in crate::csi) max_entries: i32,
    #[prost(string, tag = "2")]
    pub(in crate::csi) starting_token: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::csi) struct ListedVolumes {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::csi) entries: Vec<VolumeStanding>,
    #[prost(string, tag = "2")]
    pub(in crate::csi) next_token: String,
}
