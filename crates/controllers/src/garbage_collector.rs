//! Deletes what has lost all its owners, and lets an owner go when its dependents have been seen to.
//!
//! A key is the uid of an owner, for all of its dependents that have few owners; or the address of one dependent that has
//! many, so that it is looked at once and not once for each of them. An owner that the view does not hold is asked for at
//! the server before anything is deleted for its sake: a cache may be behind.
//!
//! ```text
//! dependent of gone owners only    -> deleted
//! of gone and of living owners     -> the references to the gone are removed
//! owner in foreground deletion     -> dependents deleted; the finalizer goes when none blocks it any more
//! and waits so for itself          -> those it waits for block it no longer
//! owner in orphan deletion         -> references to it removed, then the finalizer
//! owner in another namespace       -> it is none: an event at the dependent, which goes unless it is cluster-scoped
//! ```
//! That an owner has no dependents left is known only where all kinds are. An owner of a kind that the server does not serve cannot be
//! asked for, and its dependents stay.

mod circle;
mod owners;
mod unseen;

use std::{collections::BTreeSet, time::Duration};

use circle::TransitiveDependents;
use corten_api::resources;
use corten_meta::{Key, ObjectMeta, OwnerReference, Resource, Time};
use corten_reconcile::{
    Actor, Controller, DEFINED, EFFECTS_MAX, Effect, Plan, Verb, View, Wait, Wake, Watch, Write, go_on_after_failed,
    served, status::exact_patch,
};
use owners::{LookedUp, find_dependent, key_of_dependent, lives, owner_of, see_to};
use serde_json::{Value, json};

use crate::{
    Settings, elsewhere,
    everything::{delete_of, kinds_of, with_cluster_scoped, with_namespaced},
    projections::{any, defined},
};

/// A dependent with more owners than these has a key of its own.
const FEW_OWNERS: usize = 16;
/// So many references the patches of one plan write at most, beside those of its first.
const REFERENCES_MAX: usize = 10_000;
/// Dependents are counted up to here: whoever waits for them looks anew when each of them goes.
const COUNTED_MAX: usize = 1_000;
/// When what cannot be listed is asked for anew.
const UNREADABLE_AGAIN: Duration = Duration::from_secs(10);
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

macro_rules! collected {
    ([$($collected:ident)*]) => {
        static COLLECTED: &[Resource] = &[$(resources::$collected),*];
        const WRITES: &[Write] = &[
            $(delete_of(resources::$collected), patch_of(resources::$collected),)*
            delete_of(DEFINED),
            patch_of(DEFINED),
        ];
    };
}
macro_rules! with_both {
    ([$($namespaced:ident)*]) => { with_cluster_scoped! { with_both [$($namespaced)*] } };
    ([$($cluster:ident)*] [$($namespaced:ident)*]) => { collected! { [$($namespaced)* $($cluster)*] } };
}
// Events are not collected: they refer to objects without being owned by them (`garbagecollector.DefaultIgnoredResources`).
with_namespaced! { with_both }

const fn patch_of(resource: Resource) -> Write {
    Write { verb: Verb::Patch, resource, fields: &["metadata.ownerReferences", "metadata.finalizers"] }
}

pub struct GarbageCollector {
    /// Without those that definitions describe.
    kinds: Vec<Resource>,
}

impl Default for GarbageCollector {
    fn default() -> Self {
        Self::new(&Settings::default())
    }
}

impl GarbageCollector {
    pub fn new(settings: &Settings) -> Self {
        Self { kinds: kinds_of(settings, COLLECTED) }
    }
}

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    fn watches(&self) -> Vec<Watch> {
        let leads = |it: Watch| {
            if it.resource == resources::CUSTOM_RESOURCE_DEFINITIONS { it.leading_to(defined_watches) } else { it }
        };
        let registrations = served::registrations(Wake::WithResource(keys)).bearing_gaps();
        let others = self.kinds.iter().filter(|it| **it != resources::API_SERVICES);
        // What other servers serve wakes nobody: what they hold does.
        let groups = served::groups(Wake::Nobody).leading_to(|view| elsewhere::watches(view, Wake::WithResource(keys)));
        others.map(|it| leads(watch(it))).chain([registrations, groups]).collect()
    }

    fn writes(&self) -> &'static [Write] {
        WRITES
    }

    /// An owner that is going.
    fn subject(&self, view: &View, key: &Key) -> Option<(Resource, Key)> {
        view.deleting(&key.name).map(|(resource, owner)| (resource.clone(), owner.key()))
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        // Only what is held back for that is looked at again: a kind may stay so for days.
        let mut plan =
            Plan { wake_at: is_held_back(view, key).then(|| now.after(UNREADABLE_AGAIN)), ..Plan::default() };
        if let Some((resource, dependent)) = find_dependent(view, key) {
            plan.effects = see_to(view, resource, dependent, &mut LookedUp::default());
            return plan;
        }
        let uid = &*key.name;
        let owner = view.deleting(uid);
        if let Some((resource, owner)) = owner.filter(|it| has(it.1, ORPHAN)) {
            orphan_dependents(view, resource, owner, now, &mut plan);
            return plan;
        }
        collect(view, uid, &mut plan);
        go_on_after_failed(&mut plan.effects, view.failure(key));
        if let Some((resource, owner)) = owner.filter(|it| has(it.1, FOREGROUND)) {
            release_owner(view, resource, owner, now, &mut plan);
        }
        plan
    }
}

/// Is something not done because of a kind that cannot be listed? When it can be, nothing may change and wake anybody.
fn is_held_back(view: &View, key: &Key) -> bool {
    let gaps = view.cannot_be_listed();
    if gaps.is_empty() {
        return false;
    }
    find_dependent(view, key).is_some_and(|it| gaps.contains(it.0))
        || view.dependents(&key.name).any(|it| gaps.contains(it.0))
}

/// Whom a change of an object wakes depends on what it is, too. A kind that cannot be listed holds up no other, but for owners
/// that wait for their dependents: an owner that is not seen is asked for before anything is deleted.
fn watch(resource: &Resource) -> Watch {
    any(resource, Wake::WithResource(keys)).bearing_gaps()
}

fn defined_watches(view: &View) -> Vec<Watch> {
    defined(view).map(|it| watch(&it)).collect()
}

/// The object itself, as an owner, and its owners, but for those that there is nothing to do about: most objects of most
/// clusters belong to an owner that lives, or own nothing, and a thousand replicas must not be looked through for each.
fn keys(view: &View, resource: &Resource, object: &ObjectMeta) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut troubled = object.owner_references.iter().filter(|it| !lives(view, object, it)).peekable();
    if has_many_owners(object) {
        keys.extend(troubled.peek().map(|_| key_of_dependent(resource, object)));
        // Those that wait for this dependent, or let it go, are asked for their own sake.
        let own =
            troubled.filter(|it| owner_of(view, object, it).is_some_and(|it| has(it, FOREGROUND) || has(it, ORPHAN)));
        keys.extend(own.map(|it| Key::cluster(&*it.uid)));
    } else {
        keys.extend(troubled.map(|it| Key::cluster(&*it.uid)));
    }
    let mut dependents = view.dependents(&object.uid).peekable();
    if object.is_deleting() || dependents.peek().is_some() {
        keys.push(Key::cluster(&*object.uid));
    }
    keys.extend(dependents.filter(|it| has_many_owners(it.1)).map(|(resource, it)| key_of_dependent(resource, it)));
    keys
}

fn has_many_owners(object: &ObjectMeta) -> bool {
    object.owner_references.len() > FEW_OWNERS
}

fn has(object: &ObjectMeta, finalizer: &str) -> bool {
    object.finalizers.iter().any(|it| it == finalizer)
}

fn orphan_dependents(view: &View, resource: &Resource, owner: &ObjectMeta, now: Time, plan: &mut Plan) {
    // The uids of other servers' objects are their word: what names another owner by that uid is not theirs to let go.
    let names_it = |it: &ObjectMeta| it.owner_references.iter().any(|it| is_reference_to(it, resource, owner));
    let dependents = view.dependents(&owner.uid).filter(|it| names_it(it.1));
    let lost = BTreeSet::from([&*owner.uid]);
    plan.effects.extend(fitting(dependents).map(|(resource, it)| without_owners(resource, it, &lost)));
    if plan.effects.is_empty() {
        let_go(view, resource, owner, ORPHAN, now, plan);
    } else {
        let message = format!("{} dependents still refer to it", plan.effects.len());
        plan.waits.push(Wait::new("DependentsBeingOrphaned", message, Actor::Cluster));
    }
}

/// Takes its finalizer off an owner of which no dependents are seen, once all there can be would be: those that are seen later
/// would be collected as soon as they are, or have been let down.
fn let_go(view: &View, resource: &Resource, owner: &ObjectMeta, finalizer: &str, now: Time, plan: &mut Plan) {
    match unseen::of(view, now) {
        None => plan.effects.push(without_finalizer(resource, owner, finalizer)),
        Some(unseen) => {
            let again = now.after(unseen.looks_again);
            plan.wake_at = Some(plan.wake_at.map_or(again, |it| it.min(again)));
            plan.waits.push(unseen.wait);
        }
    }
}

fn is_reference_to(reference: &OwnerReference, resource: &Resource, owner: &ObjectMeta) -> bool {
    let group = reference.api_version.split_once('/').map_or("", |it| it.0);
    reference.uid == owner.uid
        && reference.name == owner.name
        && reference.kind == resource.kind
        && group == resource.group
}

/// As many as one plan may patch, each with all of its references.
fn fitting<'a>(
    dependents: impl Iterator<Item = (&'a Resource, &'a ObjectMeta)>,
) -> impl Iterator<Item = (&'a Resource, &'a ObjectMeta)> {
    let mut n_before = 0_usize;
    let fits = move |it: &(&Resource, &ObjectMeta)| {
        let fits = n_before <= REFERENCES_MAX;
        n_before = n_before.saturating_add(it.1.owner_references.len());
        fits
    };
    dependents.take(EFFECTS_MAX).take_while(fits)
}

fn release_owner(view: &View, resource: &Resource, owner: &ObjectMeta, now: Time, plan: &mut Plan) {
    let mut dependents = view.blocking(&owner.uid);
    let Some((kind, first)) = dependents.next() else {
        let_go(view, resource, owner, FOREGROUND, now, plan);
        return;
    };
    let n = 1 + dependents.take(COUNTED_MAX).count();
    let n = if n > COUNTED_MAX { format!("more than {COUNTED_MAX}") } else { n.to_string() };
    let message = format!("{n} dependents must be deleted first");
    plan.waits.push(Wait::new("DependentsRemain", message, Actor::Cluster).on(&kind.kind, &first.name));
    let waiting = TransitiveDependents::for_object(view, owner);
    if !waiting.is_empty() {
        let in_circle = view.blocking(&owner.uid).filter(|it| is_waiting(it.1) && waiting.has(&it.1.uid));
        plan.effects.extend(fitting(in_circle).map(|(resource, it)| no_longer_blocking(resource, it, &owner.uid)));
    }
}

fn is_waiting(object: &ObjectMeta) -> bool {
    object.is_deleting() && has(object, FOREGROUND)
}

/// Sees to every dependent of the owner with this uid that has few owners, whatever has become of the owner.
fn collect(view: &View, uid: &str, plan: &mut Plan) {
    let mut looked_up = LookedUp::default();
    for (resource, dependent) in view.dependents(uid).filter(|it| !has_many_owners(it.1)) {
        if plan.effects.len() >= EFFECTS_MAX {
            break;
        }
        plan.effects.extend(see_to(view, resource, dependent, &mut looked_up));
    }
}

fn without_owners(resource: &Resource, object: &ObjectMeta, lost: &BTreeSet<&str>) -> Effect {
    let left: Vec<_> = object.owner_references.iter().filter(|it| !lost.contains(&*it.uid)).collect();
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
