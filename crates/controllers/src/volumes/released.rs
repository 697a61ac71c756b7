//! In which phase a volume is, and what becomes of one whose claim is gone. After `syncVolume`, in its words.

use corten_api::volumes::{BOUND_BY_CONTROLLER, PROVISIONED_BY, modes_differ};
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Effect, EventType, Plan, Projection, View, Wait, status::exact_patch};
use serde_json::json;

use super::projections::{Claim, Volume};
use crate::projections::reference;

pub(super) fn plan(view: &View, volume: &Volume, now: Time) -> Plan {
    let Some(claim_ref) = volume.spec.claim_ref.as_ref().filter(|it| !it.uid.is_empty()) else {
        // Nobody's, or reserved for a claim that has not been bound to it yet.
        return phase(volume, "Available", now);
    };
    let claim = view.get::<Claim>(&Key::new(&*claim_ref.namespace, &*claim_ref.name));
    let Some(claim) = claim.filter(|it| it.metadata.uid == claim_ref.uid) else { return released(volume, now) };
    match &*claim.spec.volume_name {
        "" if modes_differ(&claim.spec, &volume.spec) => modes_mismatch(volume, claim),
        // The claim's own turn ends the binding.
        "" => Plan::default(),
        name if name == volume.metadata.name => phase(volume, "Bound", now),
        _ if is_provisioned(volume) && volume.spec.persistent_volume_reclaim_policy == "Delete" => {
            released(volume, now)
        }
        _ => unbound(volume),
    }
}

fn is_provisioned(volume: &Volume) -> bool {
    volume.metadata.annotations.contains_key(PROVISIONED_BY)
}

/// As long as the object is as it was seen.
fn phase(volume: &Volume, phase: &str, now: Time) -> Plan {
    if volume.status.phase == phase {
        return Plan::default();
    }
    Plan { effects: vec![phase_patch(volume, phase, "", now)], ..Plan::default() }
}

fn phase_patch(volume: &Volume, phase: &str, message: &str, now: Time) -> Effect {
    let message = if message.is_empty() { json!(null) } else { json!(message) };
    let status = json!({ "phase": phase, "message": message, "reason": null, "lastPhaseTransitionTime": now });
    match exact_patch(Volume::RESOURCE, &volume.metadata, json!({ "status": status })) {
        Effect::Patch { resource, key, patch, .. } => {
            Effect::Patch { resource, key, subresource: Some("status"), patch }
        }
        other => other,
    }
}

/// Its claim is gone, or has another volume that was made for it.
fn released(volume: &Volume, now: Time) -> Plan {
    let mut plan = Plan::default();
    let policy = &*volume.spec.persistent_volume_reclaim_policy;
    let failed = match policy {
        "Retain" => None,
        "Delete" if is_provisioned(volume) => None,
        "Delete" => Some((
            "VolumeFailedDelete",
            format!(
                "error getting deleter volume plugin for volume {:?}: no deletable volume plugin matched",
                volume.metadata.name
            ),
        )),
        "Recycle" => Some(("VolumeFailedRecycle", "No recycler plugin found for the volume!".to_owned())),
        _ => Some(("VolumeUnknownReclaimPolicy", "Volume has an unrecognized reclaim policy".to_owned())),
    };
    match failed {
        // What went wrong once stays to be read while it is tried again.
        _ if volume.status.phase == "Failed" => {}
        Some((reason, message)) => {
            plan.effects.push(phase_patch(volume, "Failed", &message, now));
            let about = reference(volume);
            plan.effects.push(Effect::Event { about, event_type: EventType::Warning, reason, message });
        }
        None if volume.status.phase != "Released" => plan.effects.push(phase_patch(volume, "Released", "", now)),
        None => {}
    }
    if !volume.metadata.is_deleting() {
        plan.waits.push(wait(volume, policy));
    }
    plan
}

fn wait(volume: &Volume, policy: &str) -> Wait {
    if volume.status.phase == "Failed" && !volume.status.message.is_empty() {
        return Wait::new("VolumeFailed", volume.status.message.clone(), Actor::Operator);
    }
    match (policy, volume.metadata.annotations.get(PROVISIONED_BY)) {
        ("Delete", Some(by)) => {
            Wait::new("VolumeReleased", format!("its claim is gone, {by} is to delete it"), Actor::External)
        }
        ("Retain", _) => {
            let told = "its claim is gone and what is on it is kept: delete the volume, or its spec.claimRef to give it to another claim";
            Wait::new("VolumeReleased", told, Actor::Operator)
        }
        _ => Wait::new("VolumeReleased", "its claim is gone, and nobody here can clear it", Actor::Operator),
    }
}

fn modes_mismatch(volume: &Volume, claim: &Claim) -> Plan {
    let (volume_name, claim_name) = (&volume.metadata.name, &claim.metadata.name);
    let to_volume = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {claim_name:?} due to incompatible volumeMode."
    );
    let to_claim = format!(
        "Cannot bind PersistentVolume {volume_name:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
    );
    let event =
        |about, message| Effect::Event { about, event_type: EventType::Warning, reason: "VolumeMismatch", message };
    let wait = Wait::new("VolumeMismatch", "its claim asks for the other volumeMode", Actor::Author);
    let waits = vec![wait.on("PersistentVolumeClaim", claim_name)];
    let effects = vec![event(reference(volume), to_volume), event(reference(claim), to_claim)];
    Plan { effects, waits, ..Plan::default() }
}

/// Its claim has another volume (`unbindVolume`). What a person reserved stays reserved by name.
fn unbound(volume: &Volume) -> Plan {
    let is_ours = volume.metadata.annotations.contains_key(BOUND_BY_CONTROLLER);
    let patch = if is_ours {
        json!({ "metadata": { "annotations": { BOUND_BY_CONTROLLER: null } }, "spec": { "claimRef": null } })
    } else {
        json!({ "spec": { "claimRef": { "uid": null, "resourceVersion": null } } })
    };
    let unbind = exact_patch(Volume::RESOURCE, &volume.metadata, patch);
    // The phase follows at the next look, which sees what this one has written.
    Plan { effects: vec![unbind], ..Plan::default() }
}
