//! What is told of CronJobs.

use corten_api::resources::CRON_JOBS as RESOURCE;
use corten_meta::{ObjectMeta, Resource, Schedule, Time, schedule::time_zone};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    resource_version,
};

static CRON_JOBS_AT: Resource = RESOURCE;

pub(crate) static CRON_JOBS: KindMetrics<CronJob> = KindMetrics {
    resource: &CRON_JOBS_AT,
    labels: &["namespace", "cronjob"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CronJob {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    concurrency_policy: String,
    failed_jobs_history_limit: Option<i32>,
    schedule: String,
    starting_deadline_seconds: Option<i64>,
    successful_jobs_history_limit: Option<i32>,
    suspend: bool,
    time_zone: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    active: Vec<serde::de::IgnoredAny>,
    last_schedule_time: Option<Time>,
    last_successful_time: Option<Time>,
}

impl CronJob {
    /// The time after the last one that was acted on; `None` while it is suspended.
    fn next_time(&self) -> Option<Time> {
        let (spec, status) = (&self.spec, &self.status);
        let since = status.last_schedule_time.or(self.metadata.creation_timestamp).filter(|_| !spec.suspend)?;
        let zone = time_zone(spec.time_zone.as_deref().unwrap_or_default()).ok()?;
        Schedule::parse(&spec.schedule).ok()?.next(since, &zone)
    }
}

const FAMILIES: &[Family<CronJob>] = &[
    Family::gauge("kube_cronjob_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_cronjob_info",
        "Info about cronjob.",
        &["schedule", "concurrency_policy", "timezone"],
        |it, out| {
            let zone = it.spec.time_zone.as_deref().unwrap_or("local");
            out.add(&[&it.spec.schedule, &it.spec.concurrency_policy, zone], 1.0);
        },
    ),
    Family::gauge(
        "kube_cronjob_metadata_resource_version",
        "Resource version representing a specific version of the cronjob.",
        &[],
        |it, out| resource_version::of(&it.metadata, out),
    ),
    Family::gauge(
        "kube_cronjob_next_schedule_time",
        "Next time the cronjob should be scheduled. The time after lastScheduleTime, or after the cron job's creation time if it's never been scheduled. Use this to determine if the job is delayed.",
        &[],
        |it, out| out.one(it.next_time()),
    ),
    Family::gauge(
        "kube_cronjob_spec_failed_job_history_limit",
        "Failed job history limit tells the controller how many failed jobs should be preserved.",
        &[],
        |it, out| out.one(it.spec.failed_jobs_history_limit),
    ),
    Family::gauge(
        "kube_cronjob_spec_starting_deadline_seconds",
        "Deadline in seconds for starting the job if it misses scheduled time for any reason.",
        &[],
        |it, out| out.one(it.spec.starting_deadline_seconds),
    ),
    Family::gauge(
        "kube_cronjob_spec_successful_job_history_limit",
        "Successful job history limit tells the controller how many completed jobs should be preserved.",
        &[],
        |it, out| out.one(it.spec.successful_jobs_history_limit),
    ),
    Family::gauge(
        "kube_cronjob_spec_suspend",
        "Suspend flag tells the controller to suspend subsequent executions.",
        &[],
        |it, out| out.one(it.spec.suspend),
    ),
    Family::gauge("kube_cronjob_status_active", "Active holds pointers to currently running jobs.", &[], |it, out| {
        out.one(i64::try_from(it.status.active.len()).ok())
    }),
    Family::gauge(
        "kube_cronjob_status_last_schedule_time",
        "LastScheduleTime keeps information of when was the last time the job was successfully scheduled.",
        &[],
        |it, out| out.one(it.status.last_schedule_time),
    ),
    Family::gauge(
        "kube_cronjob_status_last_successful_time",
        "LastSuccessfulTime keeps information of when was the last time the job was completed successfully.",
        &[],
        |it, out| out.one(it.status.last_successful_time),
    ),
];
