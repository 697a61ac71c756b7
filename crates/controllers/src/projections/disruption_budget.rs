//! PodDisruptionBudgets.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_zero, projection};

#[derive(Deserialize)]
pub(crate) struct DisruptionBudget {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: DisruptionBudgetSpec,
    #[serde(default)]
    pub(crate) status: DisruptionStatus,
}
projection!(DisruptionBudget, resources::POD_DISRUPTION_BUDGETS);

/// Numbers of pods, or percentages.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DisruptionBudgetSpec {
    pub(crate) selector: Option<super::Selecting>,
    pub(crate) min_available: Option<Value>,
    pub(crate) max_unavailable: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DisruptionStatus {
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: i64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) disrupted_pods: BTreeMap<String, Time>,
    pub(crate) disruptions_allowed: i64,
    pub(crate) current_healthy: i64,
    pub(crate) desired_healthy: i64,
    pub(crate) expected_pods: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<DisruptionCondition>,
}

/// `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DisruptionCondition {
    pub(crate) r#type: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) observed_generation: i64,
    pub(crate) last_transition_time: Option<Time>,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl DisruptionBudget {
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.spec.selector.as_ref().is_some_and(|it| it.selector.matches(labels))
    }
}
