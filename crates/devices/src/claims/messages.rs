//! Messages of the DRA plugin API; prost skips what it does not know.

use std::collections::BTreeMap;

/// The methods of one version of the API.
#[derive(Debug)]
pub(crate) struct Version {
    /// As plugins name it when they register.
    pub(crate) name: &'static str,
    pub(crate) prepare: &'static str,
    pub(crate) unprepare: &'static str,
}

/// The newest first.
pub(crate) static VERSIONS: [Version; 2] = [
    Version {
        name: "v1.DRAPlugin",
        prepare: "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
        unprepare: "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
    },
    Version {
        name: "v1beta1.DRAPlugin",
        prepare: "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
        unprepare: "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
    },
];

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Claims {
    #[prost(message, repeated, tag = "1")]
    pub(crate) claims: Vec<Claim>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Claim {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) uid: String,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

/// By the claims' uids.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PreparedClaims {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) claims: BTreeMap<String, Prepared>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Prepared {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Device>,
    #[prost(string, tag = "2")]
    pub(crate) error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    #[prost(string, repeated, tag = "1")]
    pub(crate) request_names: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) pool_name: String,
    #[prost(string, tag = "3")]
    pub(crate) device_name: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) cdi_device_ids: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UnpreparedClaims {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) claims: BTreeMap<String, Unprepared>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Unprepared {
    #[prost(string, tag = "1")]
    pub(crate) error: String,
}
