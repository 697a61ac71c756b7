//! What is kept of a pod's containers, volumes and tolerations: of each only what some controller reads.

use std::{collections::BTreeMap, sync::LazyLock};

use corten_meta::ObjectMeta;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

use super::{ContainerStatus, Pod};

/// A port that a service may name.
pub(crate) struct NamedPort {
    pub(crate) name: Box<str>,
    pub(crate) number: i64,
    pub(crate) protocol: Box<str>,
}

/// A volume that is a claim.
pub(crate) enum Claim {
    Named(Box<str>),
    /// Made for the pod, and named after it and the volume.
    OfVolume {
        volume: Box<str>,
        template: Box<Value>,
    },
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Toleration {
    pub(crate) key: Box<str>,
    pub(crate) operator: Box<str>,
    pub(crate) value: Box<str>,
    pub(crate) effect: Box<str>,
    pub(crate) toleration_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    restart_policy: Box<str>,
    ports: Option<Vec<Port>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    name: Box<str>,
    container_port: i64,
    protocol: Box<str>,
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(super) fn named_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[NamedPort]>, D::Error> {
    list(deserializer).map(ports_of)
}

/// A container of its own beginning that runs on beside the others.
pub(super) fn sidecars_named_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[NamedPort]>, D::Error> {
    let containers: Vec<Container> = list(deserializer)?;
    Ok(ports_of(containers.into_iter().filter(|it| &*it.restart_policy == "Always").collect()))
}

fn ports_of(containers: Vec<Container>) -> Box<[NamedPort]> {
    let ports = containers.into_iter().flat_map(|it| it.ports.unwrap_or_default());
    let named = ports.filter(|it| !it.name.is_empty());
    named.map(|it| NamedPort { name: it.name, number: it.container_port, protocol: it.protocol }).collect()
}

pub(super) fn claims<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Claim]>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Volume {
        name: Box<str>,
        #[serde(default)]
        persistent_volume_claim: Option<Source>,
        #[serde(default)]
        ephemeral: Option<Ephemeral>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ephemeral {
        #[serde(default)]
        volume_claim_template: Value,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Source {
        claim_name: Box<str>,
    }
    let claim = |it: Volume| match (it.persistent_volume_claim, it.ephemeral) {
        (Some(source), _) => Some(Claim::Named(source.claim_name)),
        (None, Some(made)) => Some(Claim::OfVolume { volume: it.name, template: Box::new(made.volume_claim_template) }),
        (None, None) => None,
    };
    Ok(list::<D, Volume>(deserializer)?.into_iter().filter_map(claim).collect())
}

pub(super) fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|it| it.is_some())
}

pub(super) fn any_runs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(list::<D, ContainerStatus>(deserializer)?.iter().any(|it| it.state.runs()))
}

/// Nearly all pods have the two that admission gives, which are then held once for all of them.
#[derive(Default)]
pub(crate) enum Tolerations {
    #[default]
    None,
    Given,
    Own(Box<[Toleration]>),
}

static GIVEN: LazyLock<[Toleration; 2]> = LazyLock::new(|| {
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(|key| Toleration {
        key: key.into(),
        operator: "Exists".into(),
        effect: "NoExecute".into(),
        toleration_seconds: Some(300),
        ..Toleration::default()
    })
});

impl Tolerations {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Toleration> {
        match self {
            Self::None => [].iter(),
            Self::Given => GIVEN.iter(),
            Self::Own(list) => list.iter(),
        }
    }
}

/// What else is tolerated is the scheduler's business.
pub(super) fn of_no_execute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tolerations, D::Error> {
    let all: Vec<Toleration> = list(deserializer)?;
    let own: Box<[Toleration]> = all.into_iter().filter(|it| matches!(&*it.effect, "" | "NoExecute")).collect();
    Ok(match &own[..] {
        [] => Tolerations::None,
        list if list == &GIVEN[..] => Tolerations::Given,
        _ => Tolerations::Own(own),
    })
}

pub(super) fn ips<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Box<str>]>, D::Error> {
    #[derive(Deserialize)]
    struct Ip {
        #[serde(default)]
        ip: Box<str>,
    }
    Ok(list::<D, Ip>(deserializer)?.into_iter().map(|it| it.ip).collect())
}

impl Pod {
    /// Its addresses, of either family.
    pub(crate) fn ips(&self) -> impl Iterator<Item = &str> {
        let first = self.status.pod_ips.is_empty().then_some(&*self.status.pod_ip);
        self.status.pod_ips.iter().map(|it| &**it).chain(first).filter(|it| !it.is_empty())
    }

    /// The claims its volumes are of.
    pub(crate) fn claims(&self) -> impl Iterator<Item = String> {
        self.spec.claims.iter().map(|it| match it {
            Claim::Named(name) => name.to_string(),
            Claim::OfVolume { volume, .. } => format!("{}-{volume}", self.metadata.name),
        })
    }

    /// Is one of its volumes this claim? One that is made for pods has to be made for this one (`VolumeIsForPod`).
    pub(crate) fn uses_claim(&self, claim: &ObjectMeta) -> bool {
        let is_named_after = |volume: &str| {
            let rest = claim.name.strip_prefix(&*self.metadata.name).and_then(|it| it.strip_prefix('-'));
            rest == Some(volume)
        };
        let is_its_own = || claim.controller().is_some_and(|it| it.uid == self.metadata.uid);
        self.spec.claims.iter().any(|it| match it {
            Claim::Named(name) => **name == *claim.name,
            Claim::OfVolume { volume, .. } => is_named_after(volume) && is_its_own(),
        })
    }

    /// The claims that are to be made for it, by name, each with its template.
    pub(crate) fn own_claims(&self) -> impl Iterator<Item = (String, &Value)> {
        self.spec.claims.iter().filter_map(|it| match it {
            Claim::OfVolume { volume, template } => Some((format!("{}-{volume}", self.metadata.name), &**template)),
            Claim::Named(_) => None,
        })
    }

    /// Its ports that have names, for whoever looks for many.
    pub(crate) fn named_ports(&self) -> NamedPorts<'_> {
        let mut named = BTreeMap::new();
        for port in self.spec.named_ports.iter().chain(&self.spec.sidecars_named_ports) {
            named.entry((&*port.name, or_tcp(&port.protocol))).or_insert(port.number);
        }
        NamedPorts(named)
    }

    pub(crate) fn condition(&self, r#type: &str) -> Option<&super::Condition> {
        self.status.conditions.iter().find(|it| it.r#type == r#type)
    }
}

/// The numbers of a pod's ports by name and protocol.
pub(crate) struct NamedPorts<'a>(BTreeMap<(&'a str, &'a str), i64>);

impl NamedPorts<'_> {
    pub(crate) fn number(&self, name: &str, protocol: &str) -> Option<i64> {
        self.0.get(&(name, or_tcp(protocol))).copied()
    }
}

fn or_tcp(protocol: &str) -> &str {
    if protocol.is_empty() { "TCP" } else { protocol }
}
