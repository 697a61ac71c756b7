//! Nodes and their leases.

use corten_api::{resources, scheduling};
use corten_meta::{MicroTime, ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use super::{Condition, Toleration, projection};

#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: NodeSpec,
    #[serde(default)]
    pub(crate) status: NodeStatus,
}
projection!(Node, resources::NODES);

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    pub(crate) taints: Vec<Taint>,
    pub(crate) unschedulable: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    pub(crate) effect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_added: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeStatus {
    pub(crate) conditions: Vec<Condition>,
    /// What the kubelet has mounted or is about to, by unique names.
    pub(crate) volumes_in_use: Vec<Box<str>>,
    pub(crate) volumes_attached: Vec<AttachedVolume>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AttachedVolume {
    pub(crate) name: Box<str>,
    pub(crate) device_path: Box<str>,
}

impl Node {
    pub(crate) fn condition(&self, r#type: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.r#type == r#type)
    }

    /// `True`, `False` or `Unknown`; nothing where the node has never said.
    pub(crate) fn ready(&self) -> Option<&str> {
        self.condition("Ready").map(|it| &*it.status)
    }

    pub(crate) fn taint(&self, key: &str, effect: &str) -> Option<&Taint> {
        self.spec.taints.iter().find(|it| it.key == key && it.effect == effect)
    }

    /// Its region and zone, as its labels say.
    pub(crate) fn zone(&self) -> (&str, &str) {
        let label = |it: &str| self.metadata.labels.get(it).map_or("", |it| &**it);
        (label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"))
    }
}

impl Taint {
    pub(crate) fn rule(&self) -> scheduling::Taint<'_> {
        let Self { key, value, effect, .. } = self;
        scheduling::Taint { key, value, effect }
    }
}

impl Toleration {
    pub(crate) fn rule(&self) -> scheduling::Toleration<'_> {
        let Self { key, operator, value, effect, .. } = self;
        scheduling::Toleration { key, operator, value, effect }
    }

    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        self.rule().tolerates(taint.rule())
    }
}

#[derive(Deserialize)]
pub(crate) struct Lease {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: LeaseSpec,
}
projection!(Lease, resources::LEASES);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LeaseSpec {
    pub(crate) renew_time: Option<MicroTime>,
}
