//! How far a rollout is: the deployment's status, its conditions, the deadline, and what it waits for.

use std::time::Duration;

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::{Actor, Effect, Plan, Wait, status::status_patch};

use super::{recreate, rollout::Rollout};
use crate::projections::{Condition, Deployment, DeploymentStatus, ReplicaSet};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const COMPLETE: &str = "NewReplicaSetAvailable";
pub(super) const CREATE_FAILED: &str = "ReplicaSetCreateError";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// Does the deployment run nothing but its newest version, all of it available?
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = deployment.spec.replicas;
    status.updated_replicas == replicas
        && status.replicas == replicas
        && status.available_replicas == replicas
        && status.observed_generation >= deployment.metadata.generation
}

/// A set was made in this very step.
pub(super) fn created_set(rollout: &mut Rollout<'_>, name: &str) {
    if deadline(rollout.deployment).is_some() {
        let message = format!("Created new replica set {name:?}");
        let condition = condition(PROGRESSING, "True", "NewReplicaSetCreated", &message, rollout.now);
        set(&mut rollout.status, condition);
    }
}

/// What the last try to make a set failed with.
pub(super) fn create_failure(rollout: &Rollout<'_>) -> Option<String> {
    let failure = rollout.view.failure(&rollout.deployment.metadata.key())?;
    matches!(failure.effect, Effect::Create { .. }).then(|| failure.message.clone())
}

pub(super) fn create_failed(rollout: &mut Rollout<'_>, message: &str) {
    if deadline(rollout.deployment).is_some() {
        set(&mut rollout.status, condition(PROGRESSING, "False", CREATE_FAILED, message, rollout.now));
    }
}

/// Ends a step of the strategy: counts, Progressing, failures of sets, and when to look at the deadline.
pub(super) fn roll_out(mut rollout: Rollout<'_>) -> Plan {
    resumed(&mut rollout);
    found_set(&mut rollout);
    count(&mut rollout);
    let deadline = deadline(rollout.deployment);
    if deadline.is_none() {
        remove(&mut rollout.status, PROGRESSING);
    }
    let current = get(&rollout.deployment.status, PROGRESSING);
    let was_complete = current.is_some_and(|it| it.reason == COMPLETE);
    let status = &rollout.status;
    let is_still = status.replicas == status.updated_replicas && was_complete;
    if let Some(deadline) = deadline.filter(|_| !is_still) {
        judge(&mut rollout, deadline);
    }
    copy_failure(&mut rollout);
    let wake_at = deadline.and_then(|it| timeout_at(&rollout.status, it));
    finish(rollout, wake_at)
}

/// Ends a step that only sized sets: paused, or resized.
pub(super) fn sized(mut rollout: Rollout<'_>) -> Plan {
    paused(&mut rollout);
    count(&mut rollout);
    finish(rollout, None)
}

/// The patch of the status where it has changed, and the waits.
pub(super) fn finish(mut rollout: Rollout<'_>, wake_at: Option<Time>) -> Plan {
    let (meta, old) = (&rollout.deployment.metadata, &rollout.deployment.status);
    let patch = status_patch(resources::DEPLOYMENTS, meta, old, &rollout.status);
    // What may fail again comes last, so that the status tells of it.
    let at = if create_failure(&rollout).is_some() { 0 } else { rollout.effects.len() };
    rollout.effects.splice(at..at, patch);
    let waits = waits(&rollout);
    Plan { effects: rollout.effects, waits, wake_at, ..Plan::default() }
}

/// The counts and the Available condition.
pub(super) fn count(rollout: &mut Rollout<'_>) {
    let sum = |count: fn(&ReplicaSet) -> i64| rollout.all().map(count).sum::<i64>();
    let wanted_by_sets = sum(|it| it.spec.replicas);
    let (replicas, ready) = (sum(|it| it.status.replicas), sum(|it| it.status.ready_replicas));
    let available = sum(|it| it.status.available_replicas);
    let is_available = available >= rollout.replicas() - rollout.unavailable_max();
    let updated = rollout.new.map_or(0, |it| it.status.replicas);
    let (generation, now) = (rollout.deployment.metadata.generation, rollout.now);
    let terminating = terminating(rollout);

    let status = &mut rollout.status;
    status.observed_generation = generation;
    status.replicas = replicas;
    status.updated_replicas = updated;
    status.ready_replicas = ready;
    status.available_replicas = available;
    status.unavailable_replicas = (wanted_by_sets - available).max(0);
    status.terminating_replicas = terminating;
    set(
        status,
        if is_available {
            let message = "Deployment has minimum availability.";
            condition(AVAILABLE, "True", "MinimumReplicasAvailable", message, now)
        } else {
            let message = "Deployment does not have minimum availability.";
            condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)
        },
    );
}

/// How many pods are on their way out; nothing where a set that has told of itself has not told that.
fn terminating(rollout: &Rollout<'_>) -> Option<i64> {
    let told = rollout.all().filter(|it| it.status.observed_generation > 0 || it.status.terminating_replicas.is_some());
    told.map(|it| it.status.terminating_replicas).sum()
}

/// A set of this template was there already: a rollback, or an adopted one.
fn found_set(rollout: &mut Rollout<'_>) {
    let Some(new) = rollout.new else { return };
    if deadline(rollout.deployment).is_some() && get(&rollout.status, PROGRESSING).is_none() {
        let message = format!("Found new replica set {:?}", new.metadata.name);
        let condition = condition(PROGRESSING, "True", "FoundNewReplicaSet", &message, rollout.now);
        set(&mut rollout.status, condition);
    }
}

/// Complete, progressing, or out of time.
fn judge(rollout: &mut Rollout<'_>, deadline: Duration) {
    let (deployment, now) = (rollout.deployment, rollout.now);
    let subject = match rollout.new {
        Some(it) => format!("ReplicaSet {:?}", it.metadata.name),
        None => format!("Deployment {:?}", deployment.metadata.name),
    };
    if is_complete(deployment, &rollout.status) {
        let message = format!("{subject} has successfully progressed.");
        set(&mut rollout.status, condition(PROGRESSING, "True", COMPLETE, &message, now));
    } else if has_progressed(&deployment.status, &rollout.status) {
        let message = format!("{subject} is progressing.");
        let mut new = condition(PROGRESSING, "True", "ReplicaSetUpdated", &message, now);
        if let Some(old) = get(&deployment.status, PROGRESSING).filter(|it| it.status == "True") {
            new.last_transition_time = old.last_transition_time;
        }
        // Always written anew: its update time is where the deadline counts from.
        remove(&mut rollout.status, PROGRESSING);
        rollout.status.conditions.push(new);
    } else if timeout_at(&rollout.status, deadline).is_some_and(|it| it < now) {
        let message = format!("{subject} has timed out progressing.");
        set(&mut rollout.status, condition(PROGRESSING, "False", TIMED_OUT, &message, now));
    }
}

fn has_progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    new.updated_replicas > old.updated_replicas
        || new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

/// When the rollout is out of time; nothing if it is done, or has been told so.
fn timeout_at(status: &DeploymentStatus, deadline: Duration) -> Option<Time> {
    let condition = get(status, PROGRESSING).filter(|it| it.reason != COMPLETE && it.reason != TIMED_OUT)?;
    // One second later than the whole seconds an API time has, so that the deadline has surely passed.
    Some(condition.last_update_time?.after(deadline + Duration::from_secs(1)))
}

fn deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds = deployment.spec.progress_deadline_seconds.filter(|it| *it != i64::from(i32::MAX))?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn paused(rollout: &mut Rollout<'_>) {
    let current = get(&rollout.status, PROGRESSING);
    let has_reason = |reason: &str| current.is_some_and(|it| it.reason == reason);
    if deadline(rollout.deployment).is_none() || has_reason(TIMED_OUT) {
        return;
    }
    let is_paused = rollout.deployment.spec.paused;
    if is_paused && !has_reason("DeploymentPaused") {
        let new = condition(PROGRESSING, "Unknown", "DeploymentPaused", "Deployment is paused", rollout.now);
        set(&mut rollout.status, new);
    } else if !is_paused {
        resumed(rollout);
    }
}

fn resumed(rollout: &mut Rollout<'_>) {
    if get(&rollout.status, PROGRESSING).is_some_and(|it| it.reason == "DeploymentPaused") {
        let new = condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", rollout.now);
        set(&mut rollout.status, new);
    }
}

/// A set that cannot make its pods says so at the deployment too, the new set first.
fn copy_failure(rollout: &mut Rollout<'_>) {
    let failure = |it: &ReplicaSet| it.status.conditions.iter().find(|it| it.r#type == REPLICA_FAILURE).cloned();
    match rollout.new.and_then(failure).or_else(|| rollout.all().find_map(failure)) {
        Some(found) => {
            let time = found.last_transition_time;
            let last_update_time = time.or(Some(rollout.now));
            set(&mut rollout.status, Condition { last_update_time, ..found });
        }
        None => remove(&mut rollout.status, REPLICA_FAILURE),
    }
}

fn get<'s>(status: &'s DeploymentStatus, r#type: &str) -> Option<&'s Condition> {
    status.conditions.iter().find(|it| it.r#type == r#type)
}

fn remove(status: &mut DeploymentStatus, r#type: &str) {
    status.conditions.retain(|it| it.r#type != r#type);
}

/// As in `SetDeploymentCondition`: the same status for the same reason is no news, whatever the message.
fn set(status: &mut DeploymentStatus, mut new: Condition) {
    if let Some(old) = get(status, &new.r#type) {
        if old.status == new.status && old.reason == new.reason {
            return;
        }
        if old.status == new.status {
            new.last_transition_time = old.last_transition_time;
        }
    }
    remove(status, &new.r#type);
    status.conditions.push(new);
}

fn condition(r#type: &str, status: &str, reason: &str, message: &str, now: Time) -> Condition {
    Condition {
        r#type: r#type.into(),
        status: status.into(),
        last_update_time: Some(now),
        last_transition_time: Some(now),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

/// Why the deployment is not yet what it should be; on the set that explains it.
fn waits(rollout: &Rollout<'_>) -> Vec<Wait> {
    let mut waits = Vec::new();
    let has_more_to_do = rollout.new.is_none() || rollout.old.iter().any(|it| it.spec.replicas > 0);
    if rollout.deployment.spec.paused && has_more_to_do {
        let message = "it is paused: changes of its pod template are not rolled out until it is resumed";
        waits.push(Wait::new("DeploymentPaused", message, Actor::Author));
    }
    if get(&rollout.status, PROGRESSING).is_some_and(|it| it.reason == TIMED_OUT) {
        let message = "its new version has made no progress within the progress deadline";
        waits.push(Wait::new(TIMED_OUT, message, Actor::Author));
    }
    let wanted = rollout.replicas();
    let mut new = None;
    if let Some(set) = rollout.new.filter(|it| it.status.available_replicas < wanted) {
        let available = set.status.available_replicas;
        let message = format!("{available} of {wanted} pods of replica set {} are available", set.metadata.name);
        let wait = Wait::new("ReplicaSetPodsNotReady", message, Actor::Cluster);
        new = Some(wait.on("ReplicaSet", &set.metadata.name));
    }
    let old = old_pods(rollout);
    if rollout.new.is_none() && old.is_none() && !rollout.deployment.spec.paused {
        let message = "the replica set of its pod template is being made";
        new = Some(Wait::new("ReplicaSetMissing", message, Actor::Cluster));
    }
    if let Some(error) = create_failure(rollout).filter(|_| rollout.new.is_none()) {
        let message = format!("its new replica set cannot be made: {error}");
        new = Some(Wait::new(CREATE_FAILED, message, Actor::Operator));
    }
    waits.into_iter().chain(new).chain(old).collect()
}

fn old_pods(rollout: &Rollout<'_>) -> Option<Wait> {
    if let Some(set) = rollout.old.iter().find(|it| it.status.replicas > 0) {
        let n_pods: i64 = rollout.old.iter().map(|it| it.status.replicas).sum();
        let message = format!("{n_pods} pods of older versions are still there");
        return Some(Wait::new("OldPodsRemain", message, Actor::Cluster).on("ReplicaSet", &set.metadata.name));
    }
    // The last ones may be on their way out: no set counts them any more, but they run until they are gone.
    let pod = recreate::old_pod(rollout)?;
    let message = "the last pods of older versions are still stopping";
    Some(Wait::new("OldPodsRemain", message, Actor::Cluster).on("Pod", &pod.metadata.name))
}
