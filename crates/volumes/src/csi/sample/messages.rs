//! What drivers are asked that Corten does not ask them.

use std::collections::BTreeMap;

use crate::csi::messages::VolumeCapability;

pub(in crate::csi) const PROBE: &str = "/csi.v1.Identity/Probe";
pub(in crate::csi) const VALIDATE: &str = "/csi.v1.Controller/ValidateVolumeCapabilities";

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
