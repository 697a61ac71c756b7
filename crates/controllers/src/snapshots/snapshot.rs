//! One VolumeSnapshot that is to be there: its content is found or made, and it is told how that is.

use corten_api::snapshots::{
    BOUND_FINALIZER, SOURCE_FINALIZER, SnapshotError, SnapshotStatus, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS,
    VolumeSnapshot, VolumeSnapshotContent,
};
use corten_meta::{Quantity, Time};
use corten_reconcile::{
    Actor, Effect, EventType, Plan, View, Wait,
    status::{exact_patch, status_patch},
};
use serde_json::json;

use super::{content_of, creation, deletion::claim_is_free, with_finalizers};

/// Why it does not go on: the event's reason, what is told, and who must act.
pub(super) struct SnapshotProblem {
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) actor: Actor,
}

impl SnapshotProblem {
    pub(super) fn new(reason: &'static str, message: impl Into<String>, actor: Actor) -> Self {
        Self { reason, message: message.into(), actor }
    }
}

pub(super) fn plan(view: &View, snapshot: &VolumeSnapshot, now: Time) -> Plan {
    let content = content_of(view, &snapshot.content_name());
    let bound = content.filter(|it| it.is_of(&snapshot.metadata));
    let wanted: &[&str] = if bound.is_some() { &[SOURCE_FINALIZER, BOUND_FINALIZER] } else { &[SOURCE_FINALIZER] };
    if let Some(effect) = with_finalizers(VOLUME_SNAPSHOTS, &snapshot.metadata, wanted) {
        return Plan { effects: vec![effect], ..Plan::default() };
    }
    let going_on = match (&snapshot.spec.source.volume_snapshot_content_name, content) {
        (Some(_), Some(content)) if bound.is_none() => bind(snapshot, content),
        (Some(_), None) => {
            Err(SnapshotProblem::new("SnapshotContentMissing", "VolumeSnapshotContent is missing", Actor::Author))
        }
        (None, None) => creation::plan(view, snapshot),
        (None, Some(_)) if bound.is_none() => Err(misbound(&snapshot.content_name())),
        (_, Some(content)) => return follow(view, snapshot, content),
    };
    going_on.unwrap_or_else(|it| refuse(snapshot, it, now))
}

fn misbound(content: &str) -> SnapshotProblem {
    let message = format!("VolumeSnapshotContent [{content}] is bound to a different snapshot");
    SnapshotProblem::new("SnapshotContentMisbound", message, Actor::Author)
}

/// A content that was there before becomes this snapshot's, where it is for it.
fn bind(snapshot: &VolumeSnapshot, content: &VolumeSnapshotContent) -> Result<Plan, SnapshotProblem> {
    if content.spec.source.snapshot_handle.is_none() {
        let message = "VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one";
        return Err(SnapshotProblem::new("SnapshotContentMismatch", message, Actor::Author));
    }
    let to = &content.spec.volume_snapshot_ref;
    let is_for = to.namespace == snapshot.metadata.namespace && to.name == snapshot.metadata.name;
    if !is_for || !to.uid.is_empty() {
        return Err(misbound(&content.metadata.name));
    }
    let patch = json!({ "spec": { "volumeSnapshotRef": { "uid": snapshot.metadata.uid } } });
    let effects = vec![exact_patch(VOLUME_SNAPSHOT_CONTENTS, &content.metadata, patch)];
    Ok(Plan { effects, ..Plan::default() })
}

/// Tells the snapshot what its content is like.
fn follow(view: &View, snapshot: &VolumeSnapshot, content: &VolumeSnapshotContent) -> Plan {
    let (mut plan, of) = (Plan::default(), &content.status);
    let status = SnapshotStatus {
        bound_volume_snapshot_content_name: content.metadata.name.clone(),
        creation_time: of.creation_time.map(|it| Time::from_unix_millis(it / 1_000_000).whole_seconds()),
        ready_to_use: Some(of.ready_to_use == Some(true)),
        restore_size: of.restore_size.map(Quantity::bytes),
        error: of.error.clone(),
    };
    let was_ready = snapshot.is_ready();
    let is_ready = of.ready_to_use == Some(true);
    let told = |reason, message: String| Effect::Event {
        about: snapshot.reference(),
        event_type: EventType::Normal,
        reason,
        message,
    };
    let name = snapshot.metadata.key();
    if snapshot.status.creation_time.is_none() && status.creation_time.is_some() {
        plan.effects
            .push(told("SnapshotCreated", format!("Snapshot {name} was successfully created by the CSI driver.")));
    }
    if !was_ready && is_ready {
        plan.effects.push(told("SnapshotReady", format!("Snapshot {name} is ready to use.")));
    }
    plan.effects.extend(status_patch(VOLUME_SNAPSHOTS, &snapshot.metadata, &snapshot.status, &status));
    if is_ready {
        plan.effects.extend(claim_is_free(view, snapshot));
    } else {
        let (message, actor) = match &of.error {
            Some(error) => (error.message.clone(), Actor::Operator),
            None => (format!("driver {} is to take it", content.spec.driver), Actor::External),
        };
        plan.waits
            .push(Wait::new("SnapshotNotReady", message, actor).on("VolumeSnapshotContent", &content.metadata.name));
    }
    plan
}

/// Says why, once.
pub(super) fn refuse(snapshot: &VolumeSnapshot, why: SnapshotProblem, now: Time) -> Plan {
    let SnapshotProblem { reason, message, actor } = why;
    let mut plan = Plan { waits: vec![Wait::new(reason, message.clone(), actor)], ..Plan::default() };
    let is_told = snapshot.status.error.as_ref().is_some_and(|it| it.message == message);
    if !is_told {
        let error = Some(SnapshotError { message: message.clone(), time: Some(now.whole_seconds()) });
        let status = SnapshotStatus { error, ready_to_use: Some(false), ..snapshot.status.clone() };
        plan.effects.extend(status_patch(VOLUME_SNAPSHOTS, &snapshot.metadata, &snapshot.status, &status));
        let about = snapshot.reference();
        plan.effects.push(Effect::Event { about, event_type: EventType::Warning, reason, message });
    }
    plan
}
