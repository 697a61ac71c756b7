//! Jobs that have ended, and CronJobs whose last Job did not end well.

use corten_api::resources::PODS;
use corten_meta::Time;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    duration::duration,
    fields::{condition, items, text, time},
    reader::Reader,
};

pub(super) async fn job(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let is_true = |name: &str| condition(object, name).filter(|it| it["status"] == "True");
    if let Some(complete) = is_true("Complete").filter(|_| !object["metadata"]["deletionTimestamp"].is_string()) {
        let at = time(&object["status"]["completionTime"]).or(time(&complete["lastTransitionTime"]));
        let took = time(&object["status"]["startTime"]).zip(at).map(|(begin, end)| duration(end.since(begin)));
        let took = took.map(|it| format!(" in {it}")).unwrap_or_default();
        found.verdict = Some((State::Finished, format!("it is complete: its pods have succeeded{took}")));
        return;
    }
    let last = last_failed(reader, object).await;
    let n_failed = object["status"]["failed"].as_i64().unwrap_or(0);
    if let Some(failed) = is_true("Failed") {
        let (reason, message) = (text(failed, "/reason"), text(failed, "/message"));
        let summary = format!("{reason}: {message}");
        let mut wait = Wait::new(reason, message, Actor::Author);
        wait.since = time(&failed["lastTransitionTime"]);
        wait.on = last.map(|it| format!("pod/{it}"));
        found.wait(wait);
        found.verdict = Some((State::Failed, summary));
    } else if let Some(pod) = last.filter(|_| n_failed > 0) {
        let limit = object["spec"]["backoffLimit"].as_i64().unwrap_or(6);
        let message = format!("{n_failed} of its pods failed; after {limit} retries it gives up");
        found.wait(Wait::new("PodFailed", message, Actor::Cluster).on("Pod", &pod));
    }
}

async fn last_failed(reader: &Reader<'_>, job: &Value) -> Option<String> {
    let pods = reader.list(&PODS, text(job, "/metadata/namespace")).await;
    let uid = text(job, "/metadata/uid");
    let is_owned = |it: &Value| items(it, "/metadata/ownerReferences").iter().any(|it| it["uid"] == uid);
    let failed = pods.iter().filter(|it| text(it, "/status/phase") == "Failed" && is_owned(it));
    let newest = failed.max_by_key(|it| text(it, "/metadata/creationTimestamp").to_owned())?;
    Some(text(newest, "/metadata/name").to_owned())
}

pub(super) async fn cron_job(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let namespace = text(object, "/metadata/namespace");
    let Some(kind) = corten_kinds::by_name("job") else { return };
    let jobs = reader.list(&kind.resource, namespace).await;
    let uid = text(object, "/metadata/uid");
    let is_owned = |it: &&Value| items(it, "/metadata/ownerReferences").iter().any(|it| it["uid"] == uid);
    let newest = jobs.iter().filter(is_owned).max_by_key(|it| text(it, "/metadata/creationTimestamp").to_owned());
    let Some(newest) = newest else { return };
    let name = text(newest, "/metadata/name");
    if condition(newest, "Failed").is_some_and(|it| it["status"] == "True") {
        let at = condition(newest, "Failed").and_then(|it| time(&it["lastTransitionTime"]));
        let mut wait = Wait::new("LastJobFailed", format!("its newest job, {name}, failed"), Actor::Author);
        wait.since = at;
        found.wait(wait.on("Job", name));
    }
    let active = jobs.iter().filter(is_owned).find(|it| is_held_up(it));
    if let Some(job) = active {
        let name = text(job, "/metadata/name");
        let mut wait = Wait::new("JobActive", format!("its job {name} has not got its pods running"), Actor::Cluster);
        wait.since = time(&job["metadata"]["creationTimestamp"]);
        found.wait(wait.on("Job", name));
    }
    missed(reader.now, object, found);
}

/// Has it neither ended nor all its pods running? What it waits for, its CronJob waits for, too.
fn is_held_up(job: &Value) -> bool {
    let has_ended = ["Complete", "Failed"].iter().any(|it| condition(job, it).is_some_and(|it| it["status"] == "True"));
    let number = |name: &str| job["status"][name].as_i64().unwrap_or(0);
    !has_ended && (number("active") == 0 || number("ready") < number("active"))
}

fn missed(now: Time, object: &Value, found: &mut Findings) {
    let Some(due) = missed_at(now, object) else { return };
    let deadline = object["spec"]["startingDeadlineSeconds"].as_u64().unwrap_or(0);
    let message = format!("the job due at {due} was not started within {deadline} s, and is not made up for");
    let mut wait = Wait::new("ScheduleMissed", message, Actor::Operator);
    wait.since = Some(due);
    found.wait(wait);
}

/// A time that has passed by more than its deadline without a Job is never made up for.
pub(crate) fn missed_at(now: Time, object: &Value) -> Option<Time> {
    let deadline = object["spec"]["startingDeadlineSeconds"].as_u64()?;
    let last = time(&object["status"]["lastScheduleTime"])?;
    let schedule = corten_meta::Schedule::parse(text(object, "/spec/schedule")).ok()?;
    let zone = Some(text(object, "/spec/timeZone")).filter(|it| !it.is_empty()).unwrap_or("UTC");
    let zone = corten_meta::schedule::time_zone(zone).ok()?;
    let due = schedule.next(last, &zone)?;
    let is_missed = due.after(std::time::Duration::from_secs(deadline)) < now && object["spec"]["suspend"] != true;
    is_missed.then_some(due)
}
