//! What is told of Jobs.

use corten_api::resources::JOBS as RESOURCE;
use corten_meta::{ObjectMeta, Resource, Time};
use serde::Deserialize;

use crate::{
    conditions::{self, Condition},
    exposition::Samples,
    family::{Family, KindMetrics},
    owners,
};

static JOBS_AT: Resource = RESOURCE;

pub(crate) static JOBS: KindMetrics<Job> = KindMetrics {
    resource: &JOBS_AT,
    labels: &["namespace", "job_name"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Job {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    active_deadline_seconds: Option<i64>,
    completions: Option<i32>,
    parallelism: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    active: i32,
    completion_time: Option<Time>,
    conditions: Vec<Condition>,
    failed: i32,
    ready: i32,
    start_time: Option<Time>,
    succeeded: i32,
}

impl Job {
    fn condition(&self, of: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.of == of)
    }
}

const FAMILIES: &[Family<Job>] = &[
    Family::gauge("kube_job_complete", "The job has completed its execution.", &["condition"], |it, out| {
        ended(it, "Complete", out)
    }),
    Family::gauge("kube_job_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_job_failed", "The job has failed its execution.", &["condition"], |it, out| {
        ended(it, "Failed", out)
    }),
    Family::gauge("kube_job_info", "Information about job.", &[], |_, out| out.one(true)),
    Family::gauge(
        "kube_job_owner",
        "Information about the Job's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
    Family::gauge(
        "kube_job_spec_active_deadline_seconds",
        "The duration in seconds relative to the startTime that the job may be active before the system tries to terminate it.",
        &[],
        |it, out| out.one(it.spec.active_deadline_seconds),
    ),
    Family::gauge(
        "kube_job_spec_completions",
        "The desired number of successfully finished pods the job should be run with.",
        &[],
        |it, out| out.one(it.spec.completions),
    ),
    Family::gauge(
        "kube_job_spec_parallelism",
        "The maximum desired number of pods the job should run at any given time.",
        &[],
        |it, out| out.one(it.spec.parallelism),
    ),
    Family::gauge("kube_job_status_active", "The number of actively running pods.", &[], |it, out| {
        out.one(it.status.active)
    }),
    Family::gauge(
        "kube_job_status_completion_time",
        "CompletionTime represents time when the job was completed.",
        &[],
        |it, out| out.one(it.status.completion_time),
    ),
    Family::gauge(
        "kube_job_status_failed",
        "The number of pods which reached Phase Failed and the reason for failure.",
        &["reason"],
        failures,
    ),
    Family::gauge("kube_job_status_ready", "The number of ready pods that belong to this Job.", &[], |it, out| {
        out.one(it.status.ready)
    }),
    Family::gauge(
        "kube_job_status_start_time",
        "StartTime represents time when the job was acknowledged by the Job Manager.",
        &[],
        |it, out| out.one(it.status.start_time),
    ),
    Family::gauge("kube_job_status_succeeded", "The number of pods which reached Phase Succeeded.", &[], |it, out| {
        out.one(it.status.succeeded)
    }),
    Family::gauge("kube_job_status_suspended", "The number of pods which reached Phase Suspended.", &[], |it, out| {
        out.one(it.condition("Suspended").map(Condition::is_true))
    }),
];

fn ended(job: &Job, of: &str, out: &mut Samples<'_>) {
    job.status.conditions.iter().filter(|it| it.of == of).for_each(|it| conditions::of_one(it, out));
}

const REASONS: [&str; 3] = ["BackoffLimitExceeded", "DeadlineExceeded", "Evicted"];

/// The number of failed Pods by the reason for which the Job failed, where that is one of upstream's; else also without a reason.
fn failures(job: &Job, out: &mut Samples<'_>) {
    if job.status.failed == 0 {
        return out.add(&[""], 0.0);
    }
    let reason = job.condition("Failed").map(|it| &*it.reason);
    if let Some(reason) = reason {
        out.one_of(&REASONS, reason);
    }
    if !reason.is_some_and(|it| REASONS.contains(&it)) {
        out.add(&[""], f64::from(job.status.failed));
    }
}
