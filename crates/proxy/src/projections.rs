//! What the proxy reads of Services and EndpointSlices, and nothing else of them.

use std::{collections::BTreeMap, net::IpAddr};

use corten_api::load_balancer::POOL_ADDRESSES;
use corten_meta::{Key, Time, address::Cidr};
use serde::{Deserialize, Deserializer};

use crate::rules::Family;

/// The label that says whose slice it is.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// A Service with this label is another proxy's.
const OTHER_PROXY: &str = "service.kubernetes.io/service-proxy-name";

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    pub name: String,
    pub namespace: String,
    pub creation_timestamp: Option<Time>,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Of the annotations this alone, where it is a time: when that began of which a slice's change is the consequence.
    #[serde(rename = "annotations", deserialize_with = "trigger_time")]
    pub triggered_at: Option<Time>,
}

/// A range of Services' addresses. One that is about to go counts until it is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceCidr {
    pub metadata: Meta,
    pub spec: ServiceCidrSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceCidrSpec {
    #[serde(deserialize_with = "or_default")]
    pub cidrs: Vec<String>,
}

impl ServiceCidr {
    pub(crate) fn cidrs(&self) -> Vec<Cidr> {
        self.spec.cidrs.iter().filter_map(|it| Cidr::parse(it)).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Service {
    pub metadata: Meta,
    pub spec: ServiceSpec,
    pub status: ServiceStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    pub r#type: String,
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    pub cluster_ips: Vec<String>,
    #[serde(rename = "externalIPs", deserialize_with = "or_default")]
    pub external_ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ServicePort>,
    #[serde(deserialize_with = "or_default")]
    pub load_balancer_source_ranges: Vec<String>,
    pub external_traffic_policy: String,
    pub internal_traffic_policy: String,
    pub health_check_node_port: u16,
    pub load_balancer_class: Option<String>,
    pub session_affinity: String,
    pub session_affinity_config: Option<AffinityConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    pub name: String,
    pub protocol: String,
    pub port: u16,
    pub node_port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AffinityConfig {
    #[serde(rename = "clientIP")]
    pub client_ip: Option<ClientIp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientIp {
    pub timeout_seconds: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    pub load_balancer: LoadBalancer,
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<ServiceCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceCondition {
    pub r#type: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    #[serde(deserialize_with = "or_default")]
    pub ingress: Vec<Ingress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ingress {
    pub ip: String,
    pub ip_mode: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    pub metadata: Meta,
    pub address_type: String,
    #[serde(deserialize_with = "or_default")]
    pub endpoints: Vec<Endpoint>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<EndpointPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    #[serde(deserialize_with = "or_default")]
    pub addresses: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub conditions: Conditions,
    pub node_name: Option<String>,
    pub hints: Option<Hints>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Conditions {
    pub ready: Option<bool>,
    pub serving: Option<bool>,
    pub terminating: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    #[serde(deserialize_with = "or_default")]
    pub for_zones: Vec<EndpointHint>,
    #[serde(deserialize_with = "or_default")]
    pub for_nodes: Vec<EndpointHint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointHint {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointPort {
    pub name: Option<String>,
    pub port: Option<u16>,
    pub protocol: Option<String>,
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn trigger_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    #[derive(Default, Deserialize)]
    struct Annotations {
        #[serde(rename = "endpoints.kubernetes.io/last-change-trigger-time")]
        triggered_at: Option<String>,
    }
    let annotations: Option<Annotations> = Option::deserialize(deserializer)?;
    Ok(annotations.and_then(|it| it.triggered_at?.parse().ok()))
}

impl Meta {
    pub fn key(&self) -> Key {
        Key::new(&*self.namespace, &*self.name)
    }
}

impl Service {
    /// Is there anything to forward? Not to a headless one, an alias, or another proxy's.
    pub(crate) fn is_proxied(&self) -> bool {
        self.spec.r#type != "ExternalName"
            && !matches!(&*self.spec.cluster_ip, "" | "None")
            && !self.metadata.labels.contains_key(OTHER_PROXY)
    }

    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let spec = &self.spec;
        let all = if spec.cluster_ips.is_empty() { std::slice::from_ref(&spec.cluster_ip) } else { &spec.cluster_ips };
        parsed(all)
    }

    pub(crate) fn external_addresses(&self) -> Vec<IpAddr> {
        parsed(&self.spec.external_ips)
    }

    pub(crate) fn has_outside_addresses(&self) -> bool {
        !self.spec.external_ips.is_empty() || !self.status.load_balancer.ingress.is_empty()
    }

    /// The load balancer's addresses to which packets come as they are; those of a proxy come back as the node's.
    pub(crate) fn balancer_addresses(&self) -> Vec<IpAddr> {
        let kept = |it: &&Ingress| it.ip_mode.as_deref().is_none_or(|it| it == "VIP");
        let ingress = self.status.load_balancer.ingress.iter().filter(kept);
        parsed(&ingress.map(|it| it.ip.clone()).collect::<Vec<_>>())
    }

    /// The addresses that it has from the pool: they are no node's, and one node answers for each.
    pub(crate) fn pool_addresses(&self) -> Vec<IpAddr> {
        let is_of_pool = self.spec.r#type == "LoadBalancer"
            && self.spec.load_balancer_class.is_none()
            && self.status.conditions.iter().any(|it| it.r#type == POOL_ADDRESSES);
        if is_of_pool { self.balancer_addresses() } else { Vec::new() }
    }

    /// How long a client stays with its endpoint; `None` where each connection is on its own.
    pub(crate) fn affinity_seconds(&self) -> Option<u32> {
        // `DefaultClientIPServiceAffinitySeconds`: three hours.
        const DEFAULT: u32 = 10_800;
        let config = self.spec.session_affinity_config.as_ref().and_then(|it| it.client_ip.as_ref());
        let seconds = config.and_then(|it| it.timeout_seconds).filter(|it| *it > 0).unwrap_or(DEFAULT);
        (self.spec.session_affinity == "ClientIP").then_some(seconds)
    }
}

fn parsed(texts: &[String]) -> Vec<IpAddr> {
    texts.iter().filter_map(|it| it.parse().ok()).collect()
}

impl EndpointSlice {
    pub(crate) fn family(&self) -> Option<Family> {
        match &*self.address_type {
            "IPv4" => Some(Family::V4),
            "IPv6" => Some(Family::V6),
            _ => None,
        }
    }

    /// The Service it belongs to, if the proxy has to do with it.
    pub(crate) fn service(&self) -> Option<Key> {
        let name = self.metadata.labels.get(SERVICE_NAME).filter(|it| !it.is_empty())?;
        Some(Key::new(&*self.metadata.namespace, &**name))
    }
}
