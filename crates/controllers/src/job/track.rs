//! Writes down how pods ended, before their objects may go; and the end of the job, after that.

use std::collections::BTreeSet;

use corten_reconcile::{Actor, Effect, EventType};

use super::{
    failure_policy::verdict,
    finish::{self, COMPLETE, FAILED, FAILURE, SUCCESS},
    indexes::Indexes,
    pods,
    tally::Tally,
};
use crate::{
    metrics::{JOB_PODS_FINISHED, JOBS_FINISHED},
    projections::{Condition, Job, Pod},
};

/// `MaxUncountedPods`: so many uids fit a status, the others' turn comes next.
const UNCOUNTED_MAX: usize = 500;

/// Brings the status up to date; the effects are for after it is written.
pub(super) fn run(tally: &mut Tally<'_>) -> Vec<Effect> {
    count_released(tally);
    let (ended, is_all) = note_ended(tally);
    note_indexes(tally);
    count_finished(tally);
    announce(tally);
    // What is released now is counted when it is seen without its finalizer.
    let is_counted = ended.is_empty() && *tally.uncounted() == crate::projections::Uncounted::default();
    if is_all && is_counted {
        end(tally);
    } else if tally.end.is_some() {
        tally.wait("PodsUncounted", "its pods have ended and are being counted", Actor::Cluster);
    }
    ended.into_iter().map(pods::untrack).collect()
}

/// Pods whose uid is noted and that have no finalizer any more go into the counters.
fn count_released(tally: &mut Tally<'_>) {
    let held: BTreeSet<&str> =
        tally.pods.iter().filter(|it| pods::is_tracked(it)).map(|it| &*it.metadata.uid).collect();
    let uncounted = tally.status.uncounted_terminated_pods.get_or_insert_default();
    let release = |uids: &mut Vec<String>| {
        let n_before = uids.len();
        uids.retain(|it| held.contains(&**it));
        i64::try_from(n_before - uids.len()).unwrap_or(0)
    };
    tally.status.succeeded += release(&mut uncounted.succeeded);
    tally.status.failed += release(&mut uncounted.failed);
}

/// Notes the uids of pods that have ended. Gives those that may lose their finalizer, and whether these are all.
fn note_ended<'a>(tally: &mut Tally<'a>) -> (Vec<&'a Pod>, bool) {
    let is_success = tally.end.as_ref().is_some_and(|it| it.r#type == SUCCESS);
    let is_failure = tally.end.is_some() && !is_success;
    let mut ended = Vec::new();
    let mut n_indexes = 0;
    for pod in tally.pods.clone().into_iter().filter(|it| pods::is_tracked(it)) {
        let has_failed = pods::has_failed(tally.job, pod);
        if !may_go(tally, pod, has_failed) {
            continue;
        }
        ended.push(pod);
        let uid = &pod.metadata.uid;
        let is_noted_failed = tally.uncounted().failed.contains(uid);
        if pod.has_succeeded() && !is_noted_failed {
            if tally.job.is_indexed() {
                // The index itself is noted.
                n_indexes += usize::from(tally.valid_index(pod).is_some_and(|it| !tally.succeeded_before.has(it)));
            } else if !tally.uncounted().succeeded.contains(uid) {
                tally.uncounted().succeeded.push(uid.clone());
            }
        } else if (has_failed || is_failure) && !is_noted_failed && tally.is_valid(pod) {
            // As in `trackJobStatusAndRemoveFinalizers`: of a job that has failed, whoever has not come to an end has failed too.
            if verdict(tally.job, pod).counts() {
                tally.uncounted().failed.push(uid.clone());
            }
        }
        let uncounted = tally.uncounted();
        if n_indexes + uncounted.succeeded.len() + uncounted.failed.len() >= UNCOUNTED_MAX {
            return (ended, false);
        }
    }
    (ended, true)
}

/// As in `recordJobPodFinished`: what the counters go up by.
fn count_finished(tally: &mut Tally<'_>) {
    let (old, new) = (&tally.job.status, &tally.status);
    for (result, n_more) in [("succeeded", new.succeeded - old.succeeded), ("failed", new.failed - old.failed)] {
        if let Ok(n_more @ 1..) = u32::try_from(n_more) {
            let count = JOB_PODS_FINISHED.count(&[mode(tally.job), result], f64::from(n_more));
            tally.events.push(Effect::Count(count));
        }
    }
}

pub(super) fn mode(job: &Job) -> &'static str {
    if job.is_indexed() { "Indexed" } else { "NonIndexed" }
}

fn may_go(tally: &Tally<'_>, pod: &Pod, has_failed: bool) -> bool {
    if tally.job.metadata.is_deleting() || tally.end.is_some() || pod.has_succeeded() {
        return true;
    }
    let is_kept =
        pods::index(pod).and_then(|it| tally.kept.get(&it)).is_some_and(|it| it.metadata.uid == pod.metadata.uid);
    has_failed && !is_kept
}

fn note_indexes(tally: &mut Tally<'_>) {
    if tally.job.is_indexed() {
        tally.status.succeeded = tally.succeeded.len();
        tally.status.completed_indexes = tally.succeeded.to_string();
        tally.status.failed_indexes = tally.failed.as_ref().map(Indexes::to_string);
    }
}

/// Says what the end will be.
fn announce(tally: &mut Tally<'_>) {
    let Some(end) = tally.end.clone() else { return };
    if !tally.status.conditions.iter().any(|it| it.r#type == end.r#type && it.status == "True") {
        tally.status.conditions.push(end);
    }
}

/// Everyone has stopped and is counted.
fn end(tally: &mut Tally<'_>) {
    let Some(Condition { r#type, reason, message, .. }) = tally.end.clone() else { return };
    if tally.n_terminating > 0 {
        let message = format!("it has ended, {} pods are still stopping", tally.n_terminating);
        return tally.wait("PodsTerminating", message, Actor::Cluster);
    }
    let end = if r#type == FAILURE { FAILED } else { COMPLETE };
    tally.status.conditions.push(finish::condition(end, &reason, &message, tally.now));
    let result = if end == FAILED { "failed" } else { "succeeded" };
    tally.events.push(Effect::Count(JOBS_FINISHED.count(&[mode(tally.job), result, &reason], 1.0)));
    if end == FAILED {
        // Reasons are those that were announced: few, and known.
        let reason = known(&reason);
        return tally.events.push(tally.event(EventType::Warning, reason, message));
    }
    tally.status.completion_time = Some(tally.now);
    if tally.job.spec.completions.is_some_and(|it| tally.status.succeeded > it) {
        let message = "Too many succeeded pods running after completion count reached".to_owned();
        tally.events.push(tally.event(EventType::Warning, "TooManySucceededPods", message));
    }
    tally.events.push(tally.event(EventType::Normal, "Completed", "Job completed".to_owned()));
}

fn known(reason: &str) -> &'static str {
    const REASONS: &[&str] =
        &["BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"];
    REASONS.iter().find(|it| **it == reason).copied().unwrap_or(FAILED)
}
