//! A node, as far as traffic goes by zones: what a heartbeat changes is left out.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{ObjectMeta, Quantity};
use corten_reconcile::{Condition, or_default, projection};
use serde::{Deserialize, Deserializer};

const ZONE: &str = "topology.kubernetes.io/zone";
/// Nodes that are the control plane's give no CPU to Services (topologycache.hasExcludedLabels).
const EXCLUDED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

#[derive(Deserialize)]
pub(crate) struct ZonedNode {
    #[serde(deserialize_with = "zoned")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    status: ZonedNodeStatus,
}
projection!(ZonedNode, resources::NODES);

#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct ZonedNodeStatus {
    #[serde(rename = "conditions", deserialize_with = "ready")]
    is_ready: bool,
    #[serde(deserialize_with = "or_default")]
    allocatable: Allocatable,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct Allocatable {
    cpu: Option<Quantity>,
}

/// In all but the version.
impl PartialEq for ZonedNode {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.metadata, &other.metadata);
        (&mine.uid, &mine.labels) == (&theirs.uid, &theirs.labels) && self.status == other.status
    }
}

impl ZonedNode {
    pub(crate) fn zone(&self) -> Option<&str> {
        self.metadata.labels.get(ZONE).map(|it| &**it).filter(|it| !it.is_empty())
    }

    /// Does it count where endpoints are shared out among zones?
    pub(crate) fn counts(&self) -> bool {
        self.status.is_ready && !EXCLUDED.iter().any(|it| self.metadata.labels.contains_key(*it))
    }

    /// In thousandths of one CPU.
    pub(crate) fn allocatable_cpu(&self) -> i64 {
        self.status.allocatable.cpu.map_or(0, Quantity::milli_value)
    }
}

fn zoned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let ObjectMeta { name, uid, resource_version, labels, .. } = ObjectMeta::deserialize(deserializer)?;
    let bears = |it: &(String, String)| it.0 == ZONE || EXCLUDED.contains(&&*it.0);
    let labels: BTreeMap<String, String> = labels.into_iter().filter(bears).collect();
    Ok(ObjectMeta { name, uid, resource_version, labels, ..ObjectMeta::default() })
}

fn ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let conditions: Vec<Condition> = or_default(deserializer)?;
    Ok(conditions.iter().any(|it| it.r#type == "Ready" && it.status == "True"))
}
