//! A job, as its controller and those of cron jobs and finished jobs see it.

use corten_api::resources;
use corten_meta::{ObjectMeta, Selector, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Condition, is_zero, projection};

#[derive(Deserialize)]
pub(crate) struct Job {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: JobSpec,
    #[serde(default)]
    pub(crate) status: JobStatus,
}
projection!(Job, resources::JOBS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobSpec {
    #[serde(default)]
    pub(crate) parallelism: Option<i64>,
    #[serde(default)]
    pub(crate) completions: Option<i64>,
    #[serde(default)]
    pub(crate) completion_mode: String,
    #[serde(default)]
    pub(crate) backoff_limit: Option<i64>,
    #[serde(default)]
    pub(crate) backoff_limit_per_index: Option<i64>,
    #[serde(default)]
    pub(crate) max_failed_indexes: Option<i64>,
    #[serde(default)]
    pub(crate) pod_failure_policy: Option<PodFailurePolicy>,
    #[serde(default)]
    pub(crate) pod_replacement_policy: String,
    #[serde(default)]
    pub(crate) success_policy: Option<SuccessPolicy>,
    #[serde(default)]
    pub(crate) suspend: bool,
    #[serde(default)]
    pub(crate) selector: Option<Selector>,
    #[serde(default)]
    pub(crate) template: Value,
    #[serde(default)]
    pub(crate) active_deadline_seconds: Option<i64>,
    #[serde(default)]
    pub(crate) ttl_seconds_after_finished: Option<i64>,
    #[serde(default)]
    pub(crate) managed_by: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodFailurePolicy {
    pub(crate) rules: Vec<FailureRule>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FailureRule {
    pub(crate) action: String,
    pub(crate) on_exit_codes: Option<OnExitCodes>,
    pub(crate) on_pod_conditions: Vec<OnPodCondition>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OnExitCodes {
    pub(crate) container_name: Option<String>,
    pub(crate) operator: String,
    pub(crate) values: Vec<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct OnPodCondition {
    pub(crate) r#type: String,
    pub(crate) status: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct SuccessPolicy {
    pub(crate) rules: Vec<SuccessRule>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SuccessRule {
    pub(crate) succeeded_indexes: Option<String>,
    pub(crate) succeeded_count: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JobStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completion_time: Option<Time>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) active: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) succeeded: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) failed: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) completed_indexes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed_indexes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uncounted_terminated_pods: Option<Uncounted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<i64>,
}

/// Pods that have finished and whose finalizer may be there still: in no counter yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Uncounted {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) succeeded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<String>,
}

impl Job {
    pub(crate) fn is_indexed(&self) -> bool {
        self.spec.completion_mode == "Indexed"
    }

    /// The condition of this type, where it is true.
    pub(crate) fn condition(&self, r#type: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.r#type == r#type && it.status == "True")
    }

    /// The condition that says how it ended, if it has.
    pub(crate) fn finish(&self) -> Option<&Condition> {
        self.condition("Complete").or_else(|| self.condition("Failed"))
    }
}
