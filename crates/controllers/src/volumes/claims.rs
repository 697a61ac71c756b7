//! What becomes of one claim: bound, waiting, or lost. After `syncClaim`, in its words.

use std::time::Duration;

use corten_api::volumes::{
    BETA_STORAGE_PROVISIONER, DataSource, SELECTED_NODE, STORAGE_PROVISIONER, attributes_classes_differ,
    has_access_modes, is_default_class, is_for, is_too_small, mismatch, modes_differ,
};
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Effect, EventType, Plan, Projection, View, Wait, status::exact_patch};
use serde_json::json;

use super::{
    binding::{bind, without_volume},
    classes::{has_candidate, waits_for_consumer},
    projections::{Claim, StorageClass, Volume, of_claim},
};
use crate::projections::{Pod, reference};

/// A volume fits; if it has gone to another claim by then, this one goes on.
const RESERVE_PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn plan(view: &View, claim: &Claim, now: Time) -> Plan {
    match (claim.is_completed(), &*claim.spec.volume_name) {
        (true, "") => lost(claim, LOST_REFERENCE),
        (true, name) => completed(claim, volume(view, name), now),
        (false, "") => any_volume(view, claim, now),
        (false, name) => named_volume(claim, name, volume(view, name), now),
    }
}

fn volume<'a>(view: &'a View, name: &str) -> Option<&'a Volume> {
    view.get(&Key::cluster(name))
}

const LOST_REFERENCE: (&str, &str) =
    ("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
const LOST_VOLUME: (&str, &str) =
    ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
const MISBOUND: (&str, &str) =
    ("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");

/// It was bound; as long as the volume is there and nobody else's, it is.
fn completed(claim: &Claim, volume: Option<&Volume>, now: Time) -> Plan {
    let Some(volume) = volume else { return lost(claim, LOST_VOLUME) };
    match &volume.spec.claim_ref {
        None => Plan { effects: bind(volume, claim, now), ..Plan::default() },
        Some(it) if it.uid == claim.metadata.uid => Plan { effects: bind(volume, claim, now), ..Plan::default() },
        Some(_) => lost(claim, MISBOUND),
    }
}

fn lost(claim: &Claim, (reason, message): (&'static str, &str)) -> Plan {
    let mut plan = Plan::default();
    if let Some(effect) = without_volume(claim, "Lost") {
        plan.effects.push(effect);
        plan.effects.push(event(claim, EventType::Warning, reason, message.into()));
    }
    let wait = Wait::new(reason, "its volume is lost: no other is bound to it, it is to be deleted", Actor::Author);
    plan.waits.push(match &*claim.spec.volume_name {
        "" => wait,
        volume => wait.on("PersistentVolume", volume),
    });
    plan
}

/// It names a volume.
fn named_volume(claim: &Claim, name: &str, volume: Option<&Volume>, now: Time) -> Plan {
    let on_volume = |it: Wait| it.on("PersistentVolume", name);
    let Some(volume) = volume else {
        return pending(
            claim,
            on_volume(Wait::new("VolumeNotFound", "the volume it names is not there", Actor::Author)),
        );
    };
    if volume.spec.claim_ref.is_none() {
        let seen = ((&claim.metadata, &claim.spec), (&volume.metadata, &volume.spec));
        let Some(mismatch) = mismatch(seen.0, seen.1) else {
            return Plan { effects: bind(volume, claim, now), ..Plan::default() };
        };
        let message = format!("Cannot bind to requested volume {name:?}: {mismatch}");
        let mut plan = pending(claim, on_volume(Wait::new("VolumeMismatch", mismatch, Actor::Author)));
        plan.effects.push(event(claim, EventType::Warning, "VolumeMismatch", message));
        return plan;
    }
    if is_for(&volume.spec, &claim.metadata) {
        return Plan { effects: bind(volume, claim, now), ..Plan::default() };
    }
    let holder = volume.claim().map(|it| it.to_string()).unwrap_or_default();
    let message = format!("the volume it names belongs to the claim {holder}");
    let mut plan = pending(claim, on_volume(Wait::new("VolumeTaken", message, Actor::Author)));
    let message = format!("volume {name:?} already bound to a different claim.");
    plan.effects.push(event(claim, EventType::Warning, "FailedBinding", message));
    plan
}

/// It takes any volume: one that is reserved for it, one that fits, one that is made for it.
fn any_volume(view: &View, claim: &Claim, now: Time) -> Plan {
    if let Some(volume) = reserved(view, claim) {
        return Plan { effects: bind(volume, claim, now), ..Plan::default() };
    }
    if claim.metadata.is_deleting() {
        return Plan::default();
    }
    let class = claim.class();
    let is_delayed = waits_for_consumer(view, class);
    if !is_delayed && has_candidate(view, claim) {
        let mut plan = pending(claim, Wait::new("VolumeBinding", "a volume that fits is bound to it", Actor::Cluster));
        plan.wake_at = Some(now.after(RESERVE_PATIENCE));
        return plan;
    }
    if !claim.has_class()
        && let Some(default) = default_class(view)
    {
        let patch = json!({ "spec": { "storageClassName": default.metadata.name } });
        let effects = vec![exact_patch(Claim::RESOURCE, &claim.metadata, patch)];
        return Plan { effects, ..Plan::default() };
    }
    if is_delayed && !claim.metadata.annotations.contains_key(SELECTED_NODE) {
        return waits_for_pod(view, claim);
    }
    if class.is_empty() { no_class(claim) } else { provision(view, claim, class) }
}

/// The volume that says it is for this claim, where the claim can have it. Its class is not looked at
/// (`FindMatchingVolume`).
pub(super) fn reserved<'a>(view: &'a View, claim: &Claim) -> Option<&'a Volume> {
    let meta = &claim.metadata;
    let mut volumes = view.found_by::<Volume>(&of_claim(&meta.namespace, &meta.name));
    volumes.find(|it| {
        is_for(&it.spec, meta)
            && !it.metadata.is_deleting()
            && !is_too_small(&claim.spec, &it.spec)
            && !modes_differ(&claim.spec, &it.spec)
            && !attributes_classes_differ(&claim.spec, &it.spec)
            && has_access_modes(&claim.spec, &it.spec)
    })
}

/// The newest, as at admission.
fn default_class(view: &View) -> Option<&StorageClass> {
    let defaults = view.list::<StorageClass>().filter(|it| is_default_class(&it.metadata));
    // Of several that came at once the first by name.
    defaults.max_by(|a, b| {
        let age = a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp);
        age.then_with(|| b.metadata.name.cmp(&a.metadata.name))
    })
}

fn waits_for_pod(view: &View, claim: &Claim) -> Plan {
    let is_unplaced = |it: &&Pod| {
        it.spec.node_name.is_empty() && !it.is_finished() && it.claims().any(|it| it == claim.metadata.name)
    };
    let pods: Vec<&str> =
        view.in_namespace::<Pod>(&claim.metadata.namespace).filter(is_unplaced).map(|it| &*it.metadata.name).collect();
    let (reason, message, wait) = match *pods {
        [] => {
            let message = "waiting for first consumer to be created before binding";
            (
                "WaitForFirstConsumer",
                message.to_owned(),
                Wait::new(
                    "WaitForFirstConsumer",
                    "no pod uses it yet: it gets a volume where its first pod runs",
                    Actor::Cluster,
                ),
            )
        }
        [first, ..] => {
            let names = if pods.len() == 1 { "pod" } else { "pods" };
            let message = format!("waiting for {names} {} to be scheduled", pods.join(","));
            let told = "the pod that uses it has no node yet";
            ("WaitForPodScheduled", message, Wait::new("WaitForPodScheduled", told, Actor::Cluster).on("Pod", first))
        }
    };
    let mut plan = pending(claim, wait);
    plan.effects.push(event(claim, EventType::Normal, reason, message));
    plan
}

fn no_class(claim: &Claim) -> Plan {
    let told = "no volume fits, and without a storage class none is made";
    let mut plan = pending(claim, Wait::new("NoStorageClass", told, Actor::Operator));
    let message = "no persistent volumes available for this claim and no storage class is set";
    plan.effects.push(event(claim, EventType::Normal, "FailedBinding", message.into()));
    plan
}

/// Tells the class's provisioner that a volume is to be made (`provisionClaimOperationExternal`).
fn provision(view: &View, claim: &Claim, class_name: &str) -> Plan {
    let Some(class) = view.get::<StorageClass>(&Key::cluster(class_name)) else {
        let told = "no volume of this class fits, and a class of this name is not there to make one";
        let wait = Wait::new("StorageClassNotFound", told, Actor::Operator).on("StorageClass", class_name);
        let message = format!("storageclass.storage.k8s.io {class_name:?} not found");
        return not_provisioned(claim, wait, message);
    };
    let provisioner = &class.fields.provisioner;
    if provisioner.starts_with("kubernetes.io/") {
        let told = "no volume of this class fits, and its volumes are made by hand";
        let wait = Wait::new("NoVolumeFits", told, Actor::Operator).on("StorageClass", class_name);
        return not_provisioned(claim, wait, format!("no volume plugin matched name: {provisioner}"));
    }
    let populator = claim.spec.data_source_ref.as_ref().and_then(DataSource::of_populator);
    let who = populator.map_or_else(|| provisioner.clone(), |it| format!("a populator for {it}"));
    let told = match claim.metadata.annotations.get(SELECTED_NODE) {
        Some(node) => format!("{who} is to make its volume for node {node}"),
        None => format!("{who} is to make its volume"),
    };
    let wait = Wait::new("ExternalProvisioning", told, Actor::External).on("StorageClass", class_name);
    let mut plan = pending(claim, wait);
    let annotations = &claim.metadata.annotations;
    if [STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER].iter().any(|it| annotations.get(*it) != Some(provisioner)) {
        let both = json!({ STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner });
        let patch = json!({ "metadata": { "annotations": both } });
        // Before the status, whose patch makes the claim another revision.
        plan.effects.insert(0, exact_patch(Claim::RESOURCE, &claim.metadata, patch));
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
         system administrator. If volume creation is delayed, please verify that the provisioner is running and \
         correctly registered."
    );
    plan.effects.push(event(claim, EventType::Normal, "ExternalProvisioning", message));
    plan
}

fn not_provisioned(claim: &Claim, wait: Wait, message: String) -> Plan {
    let mut plan = pending(claim, wait);
    plan.effects.push(event(claim, EventType::Warning, "ProvisioningFailed", message));
    plan
}

fn pending(claim: &Claim, wait: Wait) -> Plan {
    Plan { effects: without_volume(claim, "Pending").into_iter().collect(), waits: vec![wait], ..Plan::default() }
}

fn event(claim: &Claim, event_type: EventType, reason: &'static str, message: String) -> Effect {
    Effect::Event { about: reference(claim), event_type, reason, message }
}
