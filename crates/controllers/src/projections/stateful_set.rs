//! A stateful set, as its controller sees it.

use corten_api::resources;
use corten_meta::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_zero, one, projection};

#[derive(Deserialize)]
pub(crate) struct StatefulSet {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: StatefulSetSpec,
    #[serde(default)]
    pub(crate) status: StatefulSetStatus,
}
projection!(StatefulSet, resources::STATEFUL_SETS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatefulSetSpec {
    #[serde(default = "one")]
    pub(crate) replicas: i64,
    pub(crate) selector: super::Selecting,
    pub(crate) template: Value,
    #[serde(default)]
    pub(crate) volume_claim_templates: Vec<Value>,
    #[serde(default)]
    pub(crate) service_name: String,
    #[serde(default)]
    pub(crate) pod_management_policy: String,
    #[serde(default)]
    pub(crate) update_strategy: UpdateStrategy,
    #[serde(default)]
    pub(crate) revision_history_limit: Option<i64>,
    #[serde(default)]
    pub(crate) min_ready_seconds: i64,
    #[serde(default)]
    pub(crate) persistent_volume_claim_retention_policy: RetentionPolicy,
    #[serde(default)]
    pub(crate) ordinals: Ordinals,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UpdateStrategy {
    pub(crate) r#type: String,
    pub(crate) rolling_update: Option<Partition>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Partition {
    pub(crate) partition: i64,
    pub(crate) max_unavailable: Value,
}

/// `Retain` or `Delete`, each.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RetentionPolicy {
    pub(crate) when_deleted: String,
    pub(crate) when_scaled: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ordinals {
    pub(crate) start: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSetStatus {
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: i64,
    pub(crate) replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) ready_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) current_replicas: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) updated_replicas: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) current_revision: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) update_revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collision_count: Option<i64>,
    /// Absent only before the first write: afterwards zero is said too.
    pub(crate) available_replicas: Option<i64>,
}
