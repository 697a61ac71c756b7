//! What policies are about, of Pods, Namespaces and NetworkPolicies, and nothing else of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::{Key, LabelSelector, address::is_reachable};
use serde::{Deserialize, Deserializer};

use crate::rules::Protocol;

/// How many numbers a Pod may give to one name: each container may give it another one, and each fills sets on every node.
const NUMBERS_MAX: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Meta {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub annotations: Annotations,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// Of the object that shows a static Pod: the uid that the node knows that Pod by.
    #[serde(rename = "kubernetes.io/config.mirror")]
    pub mirror: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    pub metadata: Meta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Meta,
    pub spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub status: PodStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: String,
    pub host_network: bool,
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    #[serde(deserialize_with = "or_default")]
    pub restart_policy: String,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ContainerPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    pub name: String,
    pub protocol: String,
    pub container_port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    pub phase: String,
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    pub pod_ips: Vec<PodIp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodIp {
    pub ip: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NetworkPolicy {
    pub metadata: Meta,
    pub spec: PolicySpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySpec {
    #[serde(deserialize_with = "or_default")]
    pub pod_selector: LabelSelector,
    #[serde(deserialize_with = "or_default")]
    pub ingress: Vec<PolicyRule>,
    #[serde(deserialize_with = "or_default")]
    pub egress: Vec<PolicyRule>,
    #[serde(deserialize_with = "or_default")]
    pub policy_types: Vec<String>,
}

/// A rule of either direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PolicyRule {
    #[serde(alias = "from", alias = "to", deserialize_with = "or_default")]
    pub peers: Vec<Peer>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<PolicyPort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Peer {
    pub pod_selector: Option<LabelSelector>,
    pub namespace_selector: Option<LabelSelector>,
    pub ip_block: Option<IpBlock>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IpBlock {
    pub cidr: String,
    #[serde(deserialize_with = "or_default")]
    pub except: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyPort {
    #[serde(deserialize_with = "or_default")]
    pub protocol: String,
    pub port: Option<IntOrString>,
    pub end_port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(u16),
    String(String),
}

/// `null` stands for nothing, as in Go.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Meta {
    pub fn key(&self) -> Key {
        Key::new(&*self.namespace, &*self.name)
    }
}

impl Pod {
    /// What its node calls it. Whoever writes Pods chooses the annotation: so a Pod is never another one's, whatever uid it names.
    pub fn id(&self) -> String {
        let uid = self.metadata.annotations.mirror.as_deref().unwrap_or(&self.metadata.uid);
        id(uid, &self.metadata.key())
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(&*self.status.phase, "Succeeded" | "Failed")
    }

    /// One of each family that others can reach, as a Pod has them: a status may say whatever its node likes.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let all = || self.status.pod_ips.iter().filter_map(|it| it.ip.parse().ok()).filter(|it| is_reachable(*it));
        all().find(IpAddr::is_ipv4).into_iter().chain(all().find(IpAddr::is_ipv6))
    }

    /// The ports of the containers that run beside each other: name, protocol, number.
    pub(crate) fn named_ports(&self) -> impl Iterator<Item = (&str, Protocol, u16)> {
        let sidecars = self.spec.init_containers.iter().filter(|it| it.restart_policy == "Always");
        let ports = self.spec.containers.iter().chain(sidecars).flat_map(|it| &it.ports);
        ports.filter_map(|it| Some((&*it.name, Protocol::parse(&it.protocol)?, it.container_port)))
    }

    /// The numbers of a name, the first of them where they are too many.
    pub(crate) fn numbers_of(&self, name: &str, protocol: Protocol) -> BTreeSet<u16> {
        let mut numbers = BTreeSet::new();
        for (_, _, port) in self.named_ports().filter(|it| it.0 == name && it.1 == protocol) {
            if numbers.len() == NUMBERS_MAX {
                break;
            }
            numbers.insert(port);
        }
        numbers
    }
}

/// A Pod of one uid, namespace and name.
pub(crate) fn id(uid: &str, key: &Key) -> String {
    format!("{uid}/{}/{}", key.namespace, key.name)
}
