//! A cron job, as its controller sees it.

use corten_api::resources;
use corten_meta::{ObjectMeta, ObjectReference, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::projection;

#[derive(Deserialize)]
pub(crate) struct CronJob {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: CronJobSpec,
    #[serde(default)]
    pub(crate) status: CronJobStatus,
}
projection!(CronJob, resources::CRON_JOBS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CronJobSpec {
    pub(crate) schedule: String,
    #[serde(default)]
    pub(crate) time_zone: Option<String>,
    #[serde(default)]
    pub(crate) starting_deadline_seconds: Option<i64>,
    #[serde(default)]
    pub(crate) concurrency_policy: String,
    #[serde(default)]
    pub(crate) suspend: bool,
    #[serde(default)]
    pub(crate) job_template: Value,
    #[serde(default)]
    pub(crate) successful_jobs_history_limit: Option<i64>,
    #[serde(default)]
    pub(crate) failed_jobs_history_limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CronJobStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) active: Vec<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_schedule_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_successful_time: Option<Time>,
}
