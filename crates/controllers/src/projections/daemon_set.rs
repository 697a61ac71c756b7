//! A daemon set and the nodes, as its controller sees them.

use corten_api::resources;
use corten_meta::{ObjectMeta, Selector};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Taint, is_zero, projection};

#[derive(Deserialize)]
pub(crate) struct DaemonSet {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: DaemonSetSpec,
    #[serde(default)]
    pub(crate) status: DaemonSetStatus,
}
projection!(DaemonSet, resources::DAEMON_SETS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DaemonSetSpec {
    pub(crate) selector: Selector,
    pub(crate) template: Value,
    #[serde(default)]
    pub(crate) update_strategy: super::Strategy,
    #[serde(default)]
    pub(crate) min_ready_seconds: i64,
    #[serde(default)]
    pub(crate) revision_history_limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DaemonSetStatus {
    pub(crate) current_number_scheduled: i64,
    pub(crate) number_misscheduled: i64,
    pub(crate) desired_number_scheduled: i64,
    pub(crate) number_ready: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) updated_number_scheduled: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) number_available: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) number_unavailable: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collision_count: Option<i64>,
}

/// A node, as far as it matters where daemon pods may run: what a heartbeat changes is left out.
#[derive(Deserialize)]
pub(crate) struct DaemonNode {
    #[serde(deserialize_with = "named")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: DaemonNodeSpec,
}
projection!(DaemonNode, resources::NODES);

#[derive(Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct DaemonNodeSpec {
    pub(crate) taints: Vec<Taint>,
}

/// In all but the version.
impl PartialEq for DaemonNode {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.metadata, &other.metadata);
        (&mine.uid, &mine.name, &mine.labels) == (&theirs.uid, &theirs.name, &theirs.labels) && self.spec == other.spec
    }
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = ObjectMeta::deserialize(deserializer)?;
    let ObjectMeta { name, uid, resource_version, labels, .. } = meta;
    Ok(ObjectMeta { name, uid, resource_version, labels, ..ObjectMeta::default() })
}
