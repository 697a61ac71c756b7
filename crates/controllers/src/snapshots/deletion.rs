//! A VolumeSnapshot that goes: its content goes before it, or is kept; nobody must be made of it, and it is taken of nobody.

use corten_api::snapshots::{
    BEING_DELETED, BOUND_FINALIZER, CLAIM_FINALIZER, SOURCE_FINALIZER, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS,
    VolumeSnapshot, VolumeSnapshotContent,
};
use corten_meta::Key;
use corten_reconcile::{Actor, Effect, EventType, Plan, Projection, Propagation, View, Wait, status::exact_patch};
use serde_json::json;

use super::{content_of, without_finalizers};
use crate::volumes::Claim;

pub(super) fn plan(view: &View, snapshot: &VolumeSnapshot) -> Plan {
    let (mut plan, meta) = (Plan::default(), &snapshot.metadata);
    if let Some(claim) = made_of(view, snapshot) {
        let message = "Snapshot is being used to restore a PVC";
        plan.effects.push(Effect::Event {
            about: snapshot.reference(),
            event_type: EventType::Warning,
            reason: "SnapshotDeletePending",
            message: message.to_owned(),
        });
        let wait = Wait::new("SnapshotDeletePending", message, Actor::Cluster);
        plan.waits.push(wait.on("PersistentVolumeClaim", &claim.metadata.name));
        return plan;
    }
    if let Some(content) = content_of(view, &snapshot.content_name()).filter(|it| it.is_of(meta)) {
        if let Some(effect) = mark(content) {
            plan.effects.push(effect);
            return plan;
        }
        if !content.is_kept() {
            if !content.metadata.is_deleting() {
                plan.effects.push(delete(content));
            }
            let message = format!("driver {} is to remove what it holds", content.spec.driver);
            let wait = Wait::new("SnapshotContentDeleting", message, Actor::External);
            plan.waits.push(wait.on("VolumeSnapshotContent", &content.metadata.name));
            return plan;
        }
    }
    plan.effects.extend(claim_is_free(view, snapshot));
    plan.effects.extend(without_finalizers(VOLUME_SNAPSHOTS, meta, &[SOURCE_FINALIZER, BOUND_FINALIZER]));
    plan
}

/// Says that what the content holds may go; `None`: it is said.
pub(super) fn mark(content: &VolumeSnapshotContent) -> Option<Effect> {
    let patch = json!({ "metadata": { "annotations": { BEING_DELETED: "yes" } } });
    let is_marked = content.metadata.annotations.contains_key(BEING_DELETED);
    (!is_marked).then(|| exact_patch(VOLUME_SNAPSHOT_CONTENTS, &content.metadata, patch))
}

pub(super) fn delete(content: &VolumeSnapshotContent) -> Effect {
    Effect::Delete {
        resource: VOLUME_SNAPSHOT_CONTENTS,
        key: content.metadata.key(),
        uid: content.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

/// A claim that waits for a volume with what the snapshot holds.
fn made_of<'v>(view: &'v View, snapshot: &'v VolumeSnapshot) -> Option<&'v Claim> {
    let name = &snapshot.metadata.name;
    let mut claims = view.in_namespace::<Claim>(&snapshot.metadata.namespace);
    // One that is going will not be made any more.
    claims.find(|it| it.status.phase == "Pending" && !it.metadata.is_deleting() && it.is_of_snapshot(name))
}

/// Lets the claim go that the snapshot was taken of, where no other snapshot is being taken of it.
pub(super) fn claim_is_free(view: &View, snapshot: &VolumeSnapshot) -> Option<Effect> {
    let name = snapshot.spec.source.persistent_volume_claim_name.as_ref()?;
    let namespace = &snapshot.metadata.namespace;
    let claim = view.get::<Claim>(&Key::new(&**namespace, &**name))?;
    let mut others = view.in_namespace_of::<VolumeSnapshot>(&VOLUME_SNAPSHOTS, namespace);
    let is_taken = others.any(|it| {
        it.metadata.uid != snapshot.metadata.uid
            && it.spec.source.persistent_volume_claim_name.as_ref() == Some(name)
            && !it.metadata.is_deleting()
            && !it.is_ready()
    });
    (!is_taken).then(|| without_finalizers(Claim::RESOURCE, &claim.metadata, &[CLAIM_FINALIZER])).flatten()
}
