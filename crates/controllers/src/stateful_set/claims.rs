//! The storage of each pod: claims made from the set's templates, and who they go with when pods or the set go.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, OwnerReference};
use corten_reconcile::{Effect, View, status::exact_patch};
use serde_json::{Value, json};

use super::identity;
use crate::{
    ownership::controller_reference,
    projections::{PersistentVolumeClaim, Pod, StatefulSet},
};

/// Whom a pod's claims must wait for.
pub(super) enum Obstacle {
    /// It belongs to an earlier pod of this name, and goes with it.
    Stale(String),
    Deleting(String),
}

pub(super) fn name(set: &StatefulSet, template: &Value, ordinal: i64) -> String {
    let template = template["metadata"]["name"].as_str().unwrap_or_default();
    format!("{template}-{}-{ordinal}", set.metadata.name)
}

fn existing<'a>(
    view: &'a View,
    set: &StatefulSet,
    template: &Value,
    ordinal: i64,
) -> Option<&'a PersistentVolumeClaim> {
    view.get(&Key::new(&*set.metadata.namespace, name(set, template, ordinal)))
}

/// What keeps a pod that is not there from being made.
pub(super) fn obstacle(view: &View, set: &StatefulSet, ordinal: i64) -> Option<Obstacle> {
    let pod = identity::name(set, ordinal);
    set.spec.volume_claim_templates.iter().find_map(|template| {
        let claim = existing(view, set, template, ordinal)?;
        let is_of_earlier = |it: &OwnerReference| it.kind == "Pod" && it.name == pod;
        if claim.metadata.owner_references.iter().any(is_of_earlier) {
            return Some(Obstacle::Stale(claim.metadata.name.clone()));
        }
        claim.metadata.is_deleting().then(|| Obstacle::Deleting(claim.metadata.name.clone()))
    })
}

/// The claims of an ordinal that are not there, with their names.
pub(super) fn missing<'a>(
    view: &'a View,
    set: &'a StatefulSet,
    ordinal: i64,
) -> impl Iterator<Item = (String, Value)> + use<'a> {
    let absent = set.spec.volume_claim_templates.iter().filter(move |it| existing(view, set, it, ordinal).is_none());
    absent.map(move |template| (name(set, template, ordinal), claim(set, template, ordinal)))
}

fn claim(set: &StatefulSet, template: &Value, ordinal: i64) -> Value {
    let mut metadata = json!({ "name": name(set, template, ordinal), "namespace": set.metadata.namespace });
    let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.extend(set.spec.selector.written.match_labels.iter().map(|(label, value)| (label.clone(), json!(value))));
    metadata["labels"] = Value::Object(labels);
    if !template["metadata"]["annotations"].is_null() {
        metadata["annotations"] = template["metadata"]["annotations"].clone();
    }
    if set.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete" {
        metadata["ownerReferences"] = json!([controller_reference::<StatefulSet>(&set.metadata)]);
    }
    json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"] })
}

/// The patches that make a pod's claims go with whom the retention policy says: the set, the pod, or nobody.
pub(super) fn retained(view: &View, set: &StatefulSet, ordinal: i64, pod: &Pod, is_condemned: bool) -> Vec<Effect> {
    let policy = &set.spec.persistent_volume_claim_retention_policy;
    let owner = if policy.when_scaled == "Delete" && is_condemned {
        Some(controller_reference::<Pod>(&pod.metadata))
    } else if policy.when_deleted == "Delete" {
        Some(controller_reference::<StatefulSet>(&set.metadata))
    } else {
        None
    };
    let claims = set.spec.volume_claim_templates.iter().filter_map(|it| existing(view, set, it, ordinal));
    claims
        .filter_map(|claim| {
            let owners = owners(&claim.metadata, set, pod, owner.as_ref());
            (owners != claim.metadata.owner_references).then(|| {
                let owners = if owners.is_empty() { Value::Null } else { json!(owners) };
                let patch = json!({ "metadata": { "ownerReferences": owners } });
                exact_patch(resources::PERSISTENT_VOLUME_CLAIMS, &claim.metadata, patch)
            })
        })
        .collect()
}

/// As in `claimOwnerMatchesSetAndPod`: a claim that somebody else controls is left to them.
fn owners(claim: &ObjectMeta, set: &StatefulSet, pod: &Pod, owner: Option<&OwnerReference>) -> Vec<OwnerReference> {
    let is_ours = |it: &OwnerReference| it.uid == set.metadata.uid || it.uid == pod.metadata.uid;
    let is_foreign = claim.controller().is_some_and(|it| !is_ours(it));
    if let Some(owner) = owner.filter(|_| !is_foreign)
        && claim.owner_references.iter().filter(|it| is_ours(it)).eq([owner])
    {
        return claim.owner_references.clone();
    }
    let others = claim.owner_references.iter().filter(|it| !is_ours(it)).cloned();
    others.chain(owner.filter(|_| !is_foreign).cloned()).collect()
}
