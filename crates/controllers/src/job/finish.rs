//! When a job ends: it has succeeded as often as it should, or may not be tried any more.
//!
//! The end is announced first (`SuccessCriteriaMet`, `FailureTarget`), and takes effect (`Complete`, `Failed`) when every
//! pod has stopped and is counted.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::{Actor, EventType, Wait};

use super::{
    failure_policy::{Verdict, verdict},
    indexes::Indexes,
    pods,
    tally::Tally,
};
use crate::projections::{Condition, Job, Pod, SuccessRule};

pub(super) const SUCCESS: &str = "SuccessCriteriaMet";
pub(super) const FAILURE: &str = "FailureTarget";
pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";

pub(super) fn condition(r#type: &str, reason: &str, message: &str, now: Time) -> Condition {
    Condition {
        r#type: r#type.into(),
        status: "True".into(),
        last_probe_time: Some(now),
        last_transition_time: Some(now),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

/// Has it ended, whatever its pods do from here on?
pub(super) fn decide(tally: &mut Tally<'_>) {
    let (job, now) = (tally.job, tally.now);
    let announced = job.condition(SUCCESS).or_else(|| job.condition(FAILURE));
    let failure = |(reason, message): (&str, &str)| condition(FAILURE, reason, message, now);
    tally.end = announced
        .cloned()
        .or_else(|| fail_message(tally).map(|it| failure(("PodFailurePolicy", &it))))
        .or_else(|| exhausted(tally).map(failure))
        .or_else(|| failed_indexes(tally).map(failure))
        .or_else(|| policy_met(tally).map(|it| condition(SUCCESS, "SuccessPolicy", &it, now)));
    if tally.end.is_none()
        && let Some(deadline) = deadline(tally)
    {
        tally.wake(deadline);
    }
}

fn fail_message(tally: &Tally<'_>) -> Option<String> {
    tally.job.spec.pod_failure_policy.as_ref()?;
    let failed = tally.pods.iter().filter(|it| pods::has_failed(tally.job, it));
    failed.filter_map(|it| if let Verdict::FailJob(why) = verdict(tally.job, it) { Some(why) } else { None }).next()
}

fn exhausted(tally: &Tally<'_>) -> Option<(&'static str, &'static str)> {
    let limit = tally.job.spec.backoff_limit.unwrap_or(6);
    if tally.n_failed > limit || has_restarted_too_often(tally.job, &tally.pods, limit) {
        return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let is_late = deadline(tally).is_some_and(|it| it <= tally.now);
    is_late.then_some(("DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// Containers that are restarted in their pods: their restarts count as failures.
fn has_restarted_too_often(job: &Job, pods: &[&Pod], limit: i64) -> bool {
    if job.spec.template["spec"]["restartPolicy"] != "OnFailure" {
        return false;
    }
    let running = pods.iter().filter(|it| matches!(&*it.status.phase, "Running" | "Pending"));
    let containers =
        running.flat_map(|it| it.status.container_statuses.iter().chain(&it.status.init_container_statuses));
    let n_restarts: i64 = containers.map(|it| it.restart_count).sum();
    if limit == 0 { n_restarts > 0 } else { n_restarts >= limit }
}

fn deadline(tally: &Tally<'_>) -> Option<Time> {
    let seconds = tally.job.spec.active_deadline_seconds.filter(|_| !tally.job.spec.suspend)?;
    Some(tally.status.start_time?.after(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))))
}

fn failed_indexes(tally: &Tally<'_>) -> Option<(&'static str, &'static str)> {
    let failed = tally.failed.as_ref()?;
    if tally.job.spec.max_failed_indexes.is_some_and(|it| failed.len() > it) {
        return Some(("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"));
    }
    let is_all = failed.len() + tally.succeeded.len() >= tally.completions();
    (!failed.is_empty() && is_all).then_some(("FailedIndexes", "Job has failed indexes"))
}

fn policy_met(tally: &Tally<'_>) -> Option<String> {
    let policy = tally.job.spec.success_policy.as_ref().filter(|_| !tally.succeeded.is_empty())?;
    let at = policy.rules.iter().position(|it| is_met(it, tally))?;
    Some(format!("Matched rules at index {at}"))
}

fn is_met(rule: &SuccessRule, tally: &Tally<'_>) -> bool {
    let Some(indexes) = &rule.succeeded_indexes else {
        return rule.succeeded_count.is_some_and(|it| tally.succeeded.len() >= it);
    };
    let required = Indexes::parse(indexes, tally.completions());
    let n_done = required.overlap(&tally.succeeded);
    !required.is_empty() && (n_done == required.len() || rule.succeeded_count.is_some_and(|it| n_done >= it))
}

/// Has every completion succeeded? Else it is running, or suspended.
pub(super) fn complete(tally: &mut Tally<'_>) {
    let is_complete = match tally.job.spec.completions {
        None => tally.n_succeeded > 0,
        Some(wanted) => tally.n_succeeded >= wanted,
    };
    if is_complete && tally.n_active == 0 {
        let message = "Reached expected number of succeeded pods";
        tally.end = Some(condition(SUCCESS, "CompletionsReached", message, tally.now));
    } else if !tally.job.metadata.is_deleting() {
        suspend(tally);
        wait_for_pods(tally);
    }
}

fn suspend(tally: &mut Tally<'_>) {
    const TYPE: &str = "Suspended";
    let at = tally.status.conditions.iter().position(|it| it.r#type == TYPE);
    let is_suspended = at.is_some_and(|at| tally.status.conditions[at].status == "True");
    if tally.job.spec.suspend == is_suspended {
        return;
    }
    let (reason, message) =
        if tally.job.spec.suspend { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
    let mut new = condition(TYPE, reason, message, tally.now);
    if !tally.job.spec.suspend {
        new.status = "False".into();
        // As in `syncJob`: whoever is resumed begins anew, its deadline too.
        tally.status.start_time = Some(tally.now);
    }
    match at {
        Some(at) => tally.status.conditions[at] = new,
        None => tally.status.conditions.push(new),
    }
    let what = if tally.job.spec.suspend { "Suspended" } else { "Resumed" };
    tally.events.push(tally.event(EventType::Normal, what, message.to_owned()));
}

fn wait_for_pods(tally: &mut Tally<'_>) {
    if tally.job.spec.suspend {
        tally.wait("JobSuspended", "it is suspended: no pod runs until it is resumed", Actor::Author);
    } else if tally.n_active > 0 {
        let of = tally.job.spec.completions.map(|it| format!(" of {it}")).unwrap_or_default();
        let message = format!("{} pods are running, {}{of} have succeeded", tally.n_active, tally.n_succeeded);
        // The pod that has not even begun explains more than one that works.
        let pod = tally.pods.iter().filter(|it| it.is_active()).min_by_key(|it| it.is_ready());
        let wait = Wait::new("PodsRunning", message, Actor::Cluster);
        tally.waits.push(match pod {
            Some(pod) => wait.on("Pod", &pod.metadata.name),
            None => wait,
        });
    }
}
