//! What is written to bind a claim and a volume to each other: first the volume, so that nobody else takes it.

use corten_api::volumes::{BIND_COMPLETED, BOUND_BY_CONTROLLER, PRE_RESIZE_CAPACITY, is_for, reference_to};
use corten_meta::{Named, ObjectMeta, Quantity, Time};
use corten_reconcile::{
    Effect, Projection,
    status::{exact_patch, status_patch},
};
use serde_json::{Value, json};

use super::projections::{Claim, ClaimStatus, Volume};

/// All that is missing, in upstream's order (`bind`).
pub(super) fn bind(volume: &Volume, claim: &Claim, now: Time) -> Vec<Effect> {
    let mut effects: Vec<Effect> = claim_volume(volume, claim).into_iter().collect();
    effects.extend(volume_phase(volume, "Bound", now));
    effects.extend(name_volume(claim, volume));
    effects.extend(claim_status(claim, bound_status(claim, volume)));
    effects
}

/// Writes into the volume whose it is, where it does not say so. Such patches of several volumes go side by side.
pub(super) fn claim_volume(volume: &Volume, claim: &Claim) -> Option<Effect> {
    let meta = &claim.metadata;
    if is_for(&volume.spec, meta) && volume.spec.claim_ref.as_ref().is_some_and(|it| !it.uid.is_empty()) {
        return None;
    }
    let mut patch = json!({ "spec": { "claimRef": reference_to(meta) } });
    if !is_for(&volume.spec, meta) {
        patch["metadata"]["annotations"] = json!({ BOUND_BY_CONTROLLER: "yes" });
    }
    Some(side_by_side(exact_patch(Volume::RESOURCE, &volume.metadata, patch)))
}

/// None of the lists in it is touched, so that both sorts of patches mean the same.
fn side_by_side(effect: Effect) -> Effect {
    match effect {
        Effect::Patch { resource, key, subresource, patch } => {
            Effect::StrategicPatch { resource, key, subresource, patch }
        }
        other => other,
    }
}

/// Right after another write of the volume: only its uid is known.
fn volume_phase(volume: &Volume, phase: &str, now: Time) -> Option<Effect> {
    (volume.status.phase != phase).then(|| Effect::Patch {
        resource: Volume::RESOURCE,
        key: volume.metadata.key(),
        subresource: Some("status"),
        patch: json!({ "metadata": { "uid": volume.metadata.uid },
            "status": { "phase": phase, "message": null, "reason": null, "lastPhaseTransitionTime": now } }),
    })
}

fn name_volume(claim: &Claim, volume: &Volume) -> Option<Effect> {
    let (meta, mut patch) = (&claim.metadata, json!({}));
    if claim.spec.volume_name != volume.metadata.name {
        patch["spec"]["volumeName"] = json!(volume.metadata.name);
        annotate(&mut patch, meta, BOUND_BY_CONTROLLER);
    }
    annotate(&mut patch, meta, BIND_COMPLETED);
    (patch != json!({})).then(|| exact_patch(Claim::RESOURCE, meta, patch))
}

fn annotate(patch: &mut Value, meta: &ObjectMeta, annotation: &str) {
    if !meta.annotations.contains_key(annotation) {
        patch["metadata"]["annotations"][annotation] = json!("yes");
    }
}

/// A claim that becomes bound sees how large its volume is; later that changes only when growing has ended.
fn bound_status(claim: &Claim, volume: &Volume) -> ClaimStatus {
    let mut status = claim.status.clone();
    status.access_modes.clone_from(&volume.spec.access_modes);
    if status.phase != "Bound" {
        let before = volume.meta().annotations.get(PRE_RESIZE_CAPACITY).and_then(|it| it.parse::<Quantity>().ok());
        let capacity = before.or(volume.spec.capacity.storage);
        status.capacity = capacity.map(|it| ("storage".to_owned(), it)).into_iter().collect();
        status
            .current_volume_attributes_class_name
            .clone_from(&volume.spec.volume_attributes_class_name.clone().filter(|it| !it.is_empty()));
    }
    "Bound".clone_into(&mut status.phase);
    status
}

/// In another phase than bound it has nothing of a volume.
pub(super) fn without_volume(claim: &Claim, phase: &str) -> Option<Effect> {
    let status = ClaimStatus { phase: phase.into(), ..ClaimStatus::default() };
    claim_status(claim, status)
}

fn claim_status(claim: &Claim, new: ClaimStatus) -> Option<Effect> {
    let old = ClaimStatus { modify_volume_status: None, ..claim.status.clone() };
    status_patch(Claim::RESOURCE, &claim.metadata, &old, &ClaimStatus { modify_volume_status: None, ..new })
}
