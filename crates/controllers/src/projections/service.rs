//! Services and the objects that say where their backends are.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{ObjectMeta, ObjectReference};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::projection;

#[derive(Deserialize)]
pub(crate) struct Service {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: ServiceSpec,
}
projection!(Service, resources::SERVICES);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServiceSpec {
    pub(crate) r#type: String,
    pub(crate) selector: Option<BTreeMap<String, String>>,
    #[serde(rename = "clusterIP")]
    pub(crate) cluster_ip: String,
    pub(crate) ip_families: Vec<String>,
    pub(crate) ports: Vec<ServicePort>,
    pub(crate) publish_not_ready_addresses: bool,
    pub(crate) traffic_distribution: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) port: i64,
    /// A number, or the name of a container's port.
    pub(crate) target_port: Value,
    pub(crate) app_protocol: Option<String>,
}

impl Endpoint {
    pub(crate) fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

impl Service {
    /// Is the cluster to find out whom it stands for? Not where it has no selector, or is an alias.
    pub(crate) fn has_selector(&self) -> bool {
        self.spec.r#type != "ExternalName" && self.spec.selector.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// Does it stand for a pod with these labels?
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let wanted = self.spec.selector.iter().flatten();
        self.has_selector() && wanted.into_iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    pub(crate) fn is_headless(&self) -> bool {
        matches!(&*self.spec.cluster_ip, "" | "None")
    }

    /// `IPv4` and `IPv6`, in its order.
    pub(crate) fn families(&self) -> Vec<&str> {
        if !self.spec.ip_families.is_empty() {
            return self.spec.ip_families.iter().map(|it| &**it).collect();
        }
        vec![if self.spec.cluster_ip.contains(':') { "IPv6" } else { "IPv4" }]
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointSlice {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) address_type: String,
    #[serde(default, deserialize_with = "super::or_default")]
    pub(crate) endpoints: Vec<Endpoint>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub(crate) ports: Vec<EndpointPort>,
}
projection!(EndpointSlice, resources::ENDPOINT_SLICES);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Endpoint {
    pub(crate) addresses: Vec<String>,
    pub(crate) conditions: EndpointConditions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hints: Option<Hints>,
}

/// Whose traffic an endpoint is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Hints {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "super::or_default")]
    pub(crate) for_zones: Vec<Hint>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "super::or_default")]
    pub(crate) for_nodes: Vec<Hint>,
}

/// The name of a zone or of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Hint {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EndpointConditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating: Option<bool>,
}

/// A port of an EndpointSlice; those of Endpoints have the same fields, the name only where it is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointPort {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app_protocol: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Endpoints {
    pub(crate) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "super::or_default")]
    pub(crate) subsets: Vec<EndpointSubset>,
}
projection!(Endpoints, resources::ENDPOINTS);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointSubset {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<EndpointAddress>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_ready_addresses: Vec<EndpointAddress>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<EndpointPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointAddress {
    pub(crate) ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target_ref: Option<ObjectReference>,
}

impl Endpoints {
    /// Old leader elections keep their record in one: it is nobody's list of backends.
    pub(crate) fn is_leader_election(&self) -> bool {
        self.metadata.annotations.contains_key("control-plane.alpha.kubernetes.io/leader")
    }
}
