//! The jobs of a cron job: how they are named and made, and which have had their time.

use corten_api::resources;
use corten_meta::{ObjectReference, Time, schedule::time_zone};
use corten_reconcile::{Effect, Propagation};
use serde_json::{Value, json};

use crate::{
    ownership::controller_reference,
    projections::{CronJob, Job, reference},
};

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// As in `getJobName`: the minutes since 1970 at which it was due.
pub(super) fn name(cron_job: &CronJob, due: Time) -> String {
    format!("{}-{}", cron_job.metadata.name, due.0.as_second() / 60)
}

/// When a job was due that this controller made.
pub(super) fn due(cron_job: &CronJob, job: &Job) -> Option<Time> {
    let due: Time = job.metadata.annotations.get(SCHEDULED)?.parse().ok()?;
    (job.metadata.name == name(cron_job, due)).then_some(due)
}

pub(super) fn job(cron_job: &CronJob, due: Time) -> Value {
    let template = &cron_job.spec.job_template;
    let mut metadata = json!({
        "name": name(cron_job, due),
        "namespace": cron_job.metadata.namespace,
        "ownerReferences": [controller_reference::<CronJob>(&cron_job.metadata)],
    });
    for field in ["labels", "annotations"] {
        if !template["metadata"][field].is_null() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    metadata["annotations"][SCHEDULED] = json!(written(cron_job, due));
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"] })
}

/// By the clock of the cron job's time zone.
fn written(cron_job: &CronJob, due: Time) -> String {
    match cron_job.spec.time_zone.as_deref().map(time_zone) {
        Some(Ok(zone)) if cron_job.spec.time_zone.as_deref() != Some("UTC") => {
            due.0.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        _ => due.to_string(),
    }
}

/// As the status lists it.
pub(super) fn active(job: &Job) -> ObjectReference {
    reference(job)
}

pub(super) fn delete(job: &Job) -> Effect {
    Effect::Delete {
        resource: resources::JOBS,
        key: job.metadata.key(),
        uid: job.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

/// Of the finished jobs that ended in one way, the oldest beyond the limit.
pub(super) fn beyond<'a>(jobs: &[&'a Job], end: &str, limit: Option<i64>) -> Vec<&'a Job> {
    let Some(limit) = limit.and_then(|it| usize::try_from(it).ok()) else { return Vec::new() };
    let mut ended: Vec<&Job> =
        jobs.iter().copied().filter(|it| it.finish().is_some_and(|it| it.r#type == end)).collect();
    ended.sort_by_key(|it| (it.status.start_time, &it.metadata.name));
    let n_surplus = ended.len().saturating_sub(limit);
    ended.truncate(n_surplus);
    ended.retain(|it| !it.metadata.is_deleting());
    ended
}
