//! One VolumeSnapshotContent: protected as long as it is somebody's, gone or kept after that.

use corten_api::snapshots::{
    BEING_DELETED, CONTENT_FINALIZER, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, VolumeSnapshot, VolumeSnapshotContent,
};
use corten_meta::Key;
use corten_reconcile::{Actor, Plan, View, Wait};

use super::{
    deletion::{delete, mark},
    with_finalizers, without_finalizers,
};

pub(super) fn plan(view: &View, content: &VolumeSnapshotContent) -> Plan {
    let (mut plan, meta, to) = (Plan::default(), &content.metadata, &content.spec.volume_snapshot_ref);
    let snapshot = view.get_in::<VolumeSnapshot>(&VOLUME_SNAPSHOTS, &Key::new(&*to.namespace, &*to.name));
    let is_there = snapshot.is_some_and(|it| content.is_of(&it.metadata));
    if meta.is_deleting() {
        let may_go = to.uid.is_empty() || !is_there || meta.annotations.contains_key(BEING_DELETED);
        if !may_go {
            let message = "it is deleted when its VolumeSnapshot is";
            plan.waits.push(Wait::new("SnapshotBound", message, Actor::Author).on("VolumeSnapshot", &to.name));
        } else if content.is_kept() {
            // What it holds is kept: no driver has anything to do.
            plan.effects.extend(without_finalizers(VOLUME_SNAPSHOT_CONTENTS, meta, &[CONTENT_FINALIZER]));
        } else if !to.uid.is_empty() {
            plan.effects.extend(mark(content));
        }
        return plan;
    }
    if let Some(effect) = with_finalizers(VOLUME_SNAPSHOT_CONTENTS, meta, &[CONTENT_FINALIZER]) {
        plan.effects.push(effect);
        return plan;
    }
    if to.uid.is_empty() {
        let message = "no VolumeSnapshot has been bound to it yet";
        plan.waits.push(Wait::new("SnapshotUnbound", message, Actor::Author).on("VolumeSnapshot", &to.name));
    } else if !is_there && content.is_kept() {
        let message =
            "its VolumeSnapshot is gone and what it holds is kept: delete it, or name its handle in a new one";
        plan.waits.push(Wait::new("SnapshotReleased", message, Actor::Operator));
    } else if !is_there {
        // It was deleted against its finalizers.
        match mark(content) {
            Some(effect) => plan.effects.push(effect),
            None => plan.effects.push(delete(content)),
        }
    }
    plan
}
