//! The fields of Services, EndpointSlices and Namespaces that names are made of.

use std::{collections::BTreeMap, net::IpAddr};

use corten_meta::{Key, ObjectMeta};
use serde::{Deserialize, Serialize};

pub(crate) const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Namespace {
    pub metadata: ObjectMeta,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Service {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: ServiceSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServiceSpec {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(rename = "clusterIP")]
    pub(crate) cluster_ip: String,
    #[serde(rename = "clusterIPs")]
    pub(crate) cluster_ips: Vec<String>,
    pub(crate) external_name: String,
    pub(crate) ports: Vec<ServicePort>,
    pub(crate) selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSlice {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) address_type: String,
    #[serde(default)]
    pub(crate) endpoints: Option<Vec<Endpoint>>,
    #[serde(default)]
    pub(crate) ports: Option<Vec<SlicePort>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Endpoint {
    pub(crate) addresses: Vec<String>,
    pub(crate) hostname: Option<String>,
    pub(crate) conditions: Conditions,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Conditions {
    pub(crate) ready: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SlicePort {
    pub(crate) name: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) port: Option<u16>,
}

impl EndpointSlice {
    /// The Service it belongs to.
    pub(crate) fn service(&self) -> Option<Key> {
        let name = self.metadata.labels.get(SERVICE_OF_SLICE)?;
        Some(Key::new(self.metadata.namespace.clone(), name.clone()))
    }

    /// Those that are ready: where it is not said, they are (`EndpointConditions.ready`). Services that publish addresses
    /// which are not ready have slices that say they are.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (IpAddr, Option<&str>)> {
        // Names of machines have no records of their own.
        let endpoints = self.endpoints.iter().flatten().filter(|_| self.address_type != "FQDN");
        endpoints.filter(|it| it.conditions.ready != Some(false)).flat_map(|endpoint| {
            let hostname = endpoint.hostname.as_deref().filter(|it| !it.is_empty());
            endpoint.addresses.iter().filter_map(move |it| Some((it.parse().ok()?, hostname)))
        })
    }
}
