//! Deletes what has lost all its owners, and lets an owner go when its dependents have been seen to.
//!
//! A key is the uid of an owner. An owner that the view does not hold is asked for at the server before anything is
//! deleted for its sake: a cache may be behind.
//!
//! ```text
//! dependent of gone owners only    -> deleted
//! of gone and of living owners     -> the references to the gone are removed
//! owner in foreground deletion     -> dependents deleted; the finalizer goes when none blocks it any more
//! and waits so for itself          -> those it waits for block it no longer
//! owner in orphan deletion         -> references to it removed, then the finalizer
//! ```

use std::collections::BTreeSet;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, OwnerReference, Resource, Time};
use corten_reconcile::{Actor, Answer, Controller, Effect, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write};
use serde_json::{Value, json};

use crate::{
    EFFECTS_MAX,
    everything::{delete_of, with_cluster_scoped, with_namespaced},
    go_on_after_failed,
    seen::any,
    status::exact_patch,
};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

macro_rules! collected {
    ([$($namespaced:ident)*] [$($cluster:ident)*]) => {
        const COLLECTED: &[Resource] = &[$(resources::$namespaced,)* $(resources::$cluster),*];
        const WRITES: &[Write] = &[
            $(delete_of(resources::$namespaced), patch_of(resources::$namespaced),)*
            $(delete_of(resources::$cluster), patch_of(resources::$cluster)),*
        ];
    };
}
macro_rules! with_both {
    ([$($namespaced:ident)*]) => { with_cluster_scoped! { with_both [$($namespaced)*] } };
    ([$($cluster:ident)*] [$($namespaced:ident)*]) => { collected! { [$($namespaced)*] [$($cluster)*] } };
}
// As upstream, events are not collected: they refer to objects without being owned by them.
with_namespaced! { with_both }

const fn patch_of(resource: Resource) -> Write {
    Write { verb: Verb::Patch, resource, fields: &["metadata.ownerReferences", "metadata.finalizers"] }
}

pub struct GarbageCollector;

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    fn watches(&self) -> Vec<Watch> {
        COLLECTED.iter().map(|it| any(it, Wake::With(uids))).collect()
    }

    fn writes(&self) -> &'static [Write] {
        WRITES
    }

    /// An owner that is going.
    fn subject(&self, view: &View, key: &Key) -> Option<(Resource, Key)> {
        view.deleting(&key.name).map(|(resource, owner)| (resource.clone(), owner.key()))
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let uid = &*key.name;
        let mut plan = Plan::default();
        let owner = view.deleting(uid);
        if let Some((resource, owner)) = owner.filter(|it| has(it.1, ORPHAN)) {
            orphan_dependents(view, resource, owner, &mut plan);
            return plan;
        }
        collect(view, uid, &mut plan);
        go_on_after_failed(&mut plan.effects, view.failure(key));
        if let Some((resource, owner)) = owner.filter(|it| has(it.1, FOREGROUND)) {
            release_owner(view, resource, owner, &mut plan);
        }
        plan
    }
}

/// The object itself, as an owner, and its owners, but for those that there is nothing to do about: most objects of most
/// clusters belong to an owner that lives, or own nothing, and a thousand replicas must not be looked through for each.
fn uids(view: &View, object: &ObjectMeta) -> Vec<Key> {
    let troubled = object.owner_references.iter().filter(|it| !lives(view, object, it));
    let owns = object.is_deleting() || view.dependents(&object.uid).next().is_some();
    troubled.map(|it| &*it.uid).chain(owns.then_some(&*object.uid)).map(Key::cluster).collect()
}

/// The owner is there and will stay. Its own end wakes it for all its dependents.
fn lives(view: &View, dependent: &ObjectMeta, reference: &OwnerReference) -> bool {
    let owner = address(view, dependent, reference).and_then(|(resource, key)| view.meta(&resource, &key));
    owner.is_some_and(|it| it.uid == reference.uid && !it.is_deleting())
}

fn has(object: &ObjectMeta, finalizer: &str) -> bool {
    object.finalizers.iter().any(|it| it == finalizer)
}

fn orphan_dependents(view: &View, resource: &Resource, owner: &ObjectMeta, plan: &mut Plan) {
    let dependents = view.dependents(&owner.uid).take(EFFECTS_MAX);
    plan.effects.extend(dependents.map(|(resource, it)| without_owners(resource, it, |uid| uid == owner.uid)));
    if plan.effects.is_empty() {
        plan.effects.push(without_finalizer(resource, owner, ORPHAN));
    } else {
        let message = format!("{} dependents still refer to it", plan.effects.len());
        plan.waits.push(Wait::new("DependentsBeingOrphaned", message, Actor::Cluster));
    }
}

fn release_owner(view: &View, resource: &Resource, owner: &ObjectMeta, plan: &mut Plan) {
    let mut dependents = blocking(view, &owner.uid);
    let Some((kind, first)) = dependents.next() else {
        plan.effects.push(without_finalizer(resource, owner, FOREGROUND));
        return;
    };
    let message = format!("{} dependents must be deleted first", 1 + dependents.count());
    plan.waits.push(Wait::new("DependentsRemain", message, Actor::Cluster).on(&kind.kind, &first.name));
    if waits_for(view, owner, owner) {
        let waiting = blocking(view, &owner.uid).filter(|it| is_waiting(it.1) && waits_for(view, it.1, owner));
        let patches = waiting.map(|(resource, it)| no_longer_blocking(resource, it, &owner.uid));
        plan.effects.extend(patches.take(EFFECTS_MAX));
    }
}

/// The dependents that an owner in foreground deletion waits for.
fn blocking<'a>(view: &'a View, uid: &'a str) -> impl Iterator<Item = (&'a Resource, &'a ObjectMeta)> {
    let blocks = move |it: &OwnerReference| it.uid == uid && it.block_owner_deletion == Some(true);
    view.dependents(uid).filter(move |it| it.1.owner_references.iter().any(blocks))
}

fn is_waiting(object: &ObjectMeta) -> bool {
    object.is_deleting() && has(object, FOREGROUND)
}

/// By way of dependents that wait themselves. Of two that wait for each other so none would ever go.
fn waits_for(view: &View, object: &ObjectMeta, other: &ObjectMeta) -> bool {
    let (mut seen, mut to_see) = (BTreeSet::new(), vec![&*object.uid]);
    while let Some(uid) = to_see.pop() {
        for (_, dependent) in blocking(view, uid).filter(|it| is_waiting(it.1)) {
            if dependent.uid == other.uid {
                return true;
            }
            if seen.insert(&*dependent.uid) {
                to_see.push(&dependent.uid);
            }
        }
    }
    false
}

/// What is known of one owner of a dependent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Living,
    /// In foreground deletion: it waits for its dependents, and is no reason to keep them.
    Waiting,
    Gone,
    /// The view does not hold it; the server must be asked.
    Unknown,
}

/// Sees to every dependent of the owner with this uid, whatever has become of the owner.
fn collect(view: &View, uid: &str, plan: &mut Plan) {
    let mut asked = BTreeSet::new();
    for (resource, dependent) in view.dependents(uid).filter(|it| !it.1.is_deleting()) {
        if plan.effects.len() >= EFFECTS_MAX {
            break;
        }
        let owners: Vec<Owner> = dependent.owner_references.iter().map(|it| find(view, dependent, it)).collect();
        let is = |wanted: Owner| owners.contains(&wanted);
        if is(Owner::Unknown) {
            let unknown = dependent.owner_references.iter().zip(&owners).filter(|it| *it.1 == Owner::Unknown);
            let addresses = unknown.filter_map(|(reference, _)| address(view, dependent, reference));
            let new = addresses.filter(|it| asked.insert(it.clone()));
            plan.effects.extend(new.map(|(resource, key)| Effect::Ask { resource, key }));
        } else if is(Owner::Living) {
            if is(Owner::Gone) || is(Owner::Waiting) {
                let lost = |uid: &str| {
                    let mut references = dependent.owner_references.iter().zip(&owners);
                    references.any(|it| it.0.uid == uid && *it.1 != Owner::Living)
                };
                plan.effects.push(without_owners(resource, dependent, lost));
            }
        } else {
            plan.effects.push(delete(view, resource, dependent, is(Owner::Waiting)));
        }
    }
}

fn find(view: &View, dependent: &ObjectMeta, reference: &OwnerReference) -> Owner {
    let Some((resource, key)) = address(view, dependent, reference) else {
        // As upstream: what cannot be resolved is no reason to delete.
        return Owner::Living;
    };
    match view.meta(&resource, &key) {
        Some(owner) if owner.uid == reference.uid => {
            if is_waiting(owner) {
                Owner::Waiting
            } else {
                Owner::Living
            }
        }
        _ => match view.answer(&resource, &key) {
            None => Owner::Unknown,
            Some(Answer::Found { uid }) if *uid == reference.uid => Owner::Living,
            Some(_) => Owner::Gone,
        },
    }
}

/// Where an owner would be: among the resources that are watched, in the dependent's namespace or in none. A
/// cluster-scoped dependent cannot have an owner in a namespace.
fn address(view: &View, dependent: &ObjectMeta, reference: &OwnerReference) -> Option<(Resource, Key)> {
    let group = reference.api_version.split_once('/').map_or("", |it| it.0);
    let resource = view.resources().find(|it| it.group == group && it.kind == reference.kind)?;
    let namespace = match (resource.namespaced, dependent.namespace.is_empty()) {
        (true, true) => return None,
        (true, false) => &*dependent.namespace,
        (false, _) => "",
    };
    Some((resource.clone(), Key::new(namespace, &*reference.name)))
}

/// An object that was marked for a way of deletion goes that way; else in the background, unless its owner waits for it
/// and it has dependents of its own to wait for.
fn delete(view: &View, resource: &Resource, object: &ObjectMeta, owner_waits: bool) -> Effect {
    let propagation = if has(object, ORPHAN) {
        Propagation::Orphan
    } else if has(object, FOREGROUND) || (owner_waits && view.dependents(&object.uid).next().is_some()) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    Effect::Delete {
        resource: resource.clone(),
        key: object.key(),
        uid: object.uid.clone(),
        propagation,
        grace_seconds: None,
    }
}

fn without_owners(resource: &Resource, object: &ObjectMeta, lost: impl Fn(&str) -> bool) -> Effect {
    let left: Vec<_> = object.owner_references.iter().filter(|it| !lost(&it.uid)).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    exact_patch(resource.clone(), object, json!({ "metadata": { "ownerReferences": left } }))
}

fn no_longer_blocking(resource: &Resource, object: &ObjectMeta, owner: &str) -> Effect {
    let mut references = object.owner_references.clone();
    references.iter_mut().filter(|it| it.uid == owner).for_each(|it| it.block_owner_deletion = Some(false));
    exact_patch(resource.clone(), object, json!({ "metadata": { "ownerReferences": references } }))
}

fn without_finalizer(resource: &Resource, object: &ObjectMeta, finalizer: &str) -> Effect {
    let left: Vec<_> = object.finalizers.iter().filter(|it| *it != finalizer).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    exact_patch(resource.clone(), object, json!({ "metadata": { "finalizers": left } }))
}

#[cfg(test)]
mod tests;
