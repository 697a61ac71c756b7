//! ControllerRevisions: the versions of a pod template that a StatefulSet or DaemonSet has had, for rollouts and rollbacks.
//!
//! What a revision holds is a strategic merge patch of its owner (`getPatch`): `kubectl rollout undo` applies it.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta};
use corten_reconcile::{Effect, Projection, Propagation, View, status::exact_patch};
use serde_json::{Value, json};

use crate::{
    ownership::controller_reference,
    pod_template::{are_equal, hash},
    projections::ControllerRevision,
};

/// What one kind of owner has of its own in its revisions.
pub(crate) struct Owner<'a> {
    pub(crate) meta: &'a ObjectMeta,
    pub(crate) template: &'a Value,
    pub(crate) collision_count: i64,
    /// The label of a revision that holds its hash.
    pub(crate) hash_label: &'static str,
}

/// The revision of the owner's present template.
pub(crate) enum Newest<'a> {
    Found(&'a ControllerRevision),
    /// The effects make it.
    Made {
        name: String,
        hash: String,
    },
    /// Its name is another's: the collision is to be counted.
    Collides,
}

/// The revisions an owner controls, oldest first.
pub(crate) fn sorted(mut revisions: Vec<&ControllerRevision>) -> Vec<&ControllerRevision> {
    revisions.sort_by_key(|it| (it.revision, it.metadata.creation_timestamp, &it.metadata.name));
    revisions
}

/// Finds the revision of the owner's template among its `revisions` (sorted), or makes it. An old one that is found again
/// becomes the newest: a rollback.
pub(crate) fn newest<'a, O: Projection>(
    view: &View,
    owner: &Owner<'_>,
    revisions: &[&'a ControllerRevision],
) -> (Newest<'a>, Option<Effect>) {
    let next = revisions.last().map_or(0, |it| it.revision).saturating_add(1);
    let is_equal = |it: &&&ControllerRevision| are_equal(template_of(it), owner.template);
    if let Some(found) = revisions.iter().rev().find(is_equal) {
        let is_last = revisions.last().is_some_and(|it| it.metadata.uid == found.metadata.uid);
        let patch = || exact_patch(resources::CONTROLLER_REVISIONS, &found.metadata, json!({ "revision": next }));
        return (Newest::Found(found), (!is_last).then(patch));
    }
    let hash = hash(owner.template, owner.collision_count);
    let name = name(&owner.meta.name, &hash);
    if view.get::<ControllerRevision>(&Key::new(&*owner.meta.namespace, &*name)).is_some() {
        return (Newest::Collides, None);
    }
    let object = object::<O>(owner, &name, &hash, next);
    (Newest::Made { name, hash }, Some(Effect::Create { resource: resources::CONTROLLER_REVISIONS, object }))
}

/// As in `ControllerRevisionName`: a longer name is cut, so that the hash fits.
fn name(owner: &str, hash: &str) -> String {
    const OWNER_LEN_MAX: usize = 223;
    format!("{}-{hash}", &owner[..owner.len().min(OWNER_LEN_MAX)])
}

fn object<O: Projection>(owner: &Owner<'_>, name: &str, hash: &str, revision: i64) -> Value {
    let mut template = owner.template.clone();
    let mut labels = template["metadata"]["labels"].clone();
    if labels.is_null() {
        labels = json!({});
    }
    labels[owner.hash_label] = json!(hash);
    template["$patch"] = json!("replace");
    let mut metadata = json!({
        "name": name,
        "namespace": owner.meta.namespace,
        "labels": labels,
        "ownerReferences": [controller_reference::<O>(owner.meta)],
    });
    if !owner.meta.annotations.is_empty() {
        metadata["annotations"] = json!(owner.meta.annotations);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": { "spec": { "template": sorted_by_name(&template) } },
        "revision": revision,
    })
}

/// As Go writes maps: `kubectl rollout undo` compares the bytes to see whether there is anything to do.
fn sorted_by_name(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> =
                members.iter().map(|(name, value)| (name.clone(), sorted_by_name(value))).collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            sorted.into_iter().collect()
        }
        Value::Array(entries) => entries.iter().map(sorted_by_name).collect(),
        plain => plain.clone(),
    }
}

/// The pod template of a revision. The mark that says how to patch is no part of it, and [`are_equal`] knows it.
pub(crate) fn template_of(revision: &ControllerRevision) -> &Value {
    &revision.data["spec"]["template"]
}

pub(crate) fn delete(revision: &ControllerRevision) -> Effect {
    Effect::Delete {
        resource: resources::CONTROLLER_REVISIONS,
        key: revision.metadata.key(),
        uid: revision.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}
