//! What has become of the owners of one dependent, and what that means for it.
//!
//! An owner in another namespace is none: the dependent goes as if it were gone, and an event tells why
//! (`GraphBuilder.reportInvalidNamespaceOwnerRef`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use corten_meta::{Key, ObjectMeta, ObjectReference, OwnerReference, Resource};
use corten_reconcile::{Answer, EFFECTS_MAX, Effect, EventType, Propagation, View};

use super::{COLLECTED, FOREGROUND, ORPHAN, has, is_waiting, without_owners};

/// References name a group and a kind.
static BY_KIND: LazyLock<BTreeMap<(&str, &str), &'static Resource>> =
    LazyLock::new(|| COLLECTED.iter().map(|it| ((&*it.group, &*it.kind), it)).collect());
/// Keys name a plural and a group, as `replicasets.apps`.
static BY_PLURAL: LazyLock<BTreeMap<String, &'static Resource>> =
    LazyLock::new(|| COLLECTED.iter().map(|it| (plural_and_group(it), it)).collect());

/// Of what definitions describe; they are few, and asked for seldom.
fn defined(view: &View, is_it: impl Fn(&Resource) -> bool) -> Option<&Resource> {
    view.resources().find(|it| is_it(it))
}

/// What is known of one owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Living,
    /// In foreground deletion: it waits for its dependents, and is no reason to keep them.
    Waiting,
    Gone,
    /// Nobody serves its kind, or it would be in a namespace, where a cluster-scoped dependent has no owner. What cannot be
    /// resolved (`attemptToDeleteItem`) is no reason to delete.
    Unresolvable,
    /// The view does not hold it; the server must be asked.
    Unknown,
}

/// What one plan has looked up, so that many dependents of one owner look it up once.
#[derive(Default)]
pub(super) struct LookedUp<'v> {
    /// What the server is asked for already.
    asked: BTreeSet<(&'v Resource, Key)>,
    /// Whether an owner is in another namespace: by its kind, name and uid.
    elsewhere: BTreeMap<(&'v Resource, String, String), bool>,
}

fn plural_and_group(resource: &Resource) -> String {
    if resource.group.is_empty() {
        resource.plural.to_string()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

/// `pods/default/web-1`. Keys of owners have nothing before their uid.
pub(super) fn key_of_dependent(resource: &Resource, object: &ObjectMeta) -> Key {
    Key::new(plural_and_group(resource), object.key().to_string())
}

/// The dependent that a key is about, unless it is the key of an owner.
pub(super) fn find_dependent<'v>(view: &'v View, key: &Key) -> Option<(&'v Resource, &'v ObjectMeta)> {
    if key.namespace.is_empty() {
        return None;
    }
    let built_in = BY_PLURAL.get(&key.namespace).copied().filter(|it| view.table(it).is_some());
    let resource = built_in.or_else(|| defined(view, |it| plural_and_group(it) == key.namespace))?;
    Some((resource, view.meta(resource, &Key::parse(&key.name))?))
}

/// Where an owner would be: among the resources that are watched, in the dependent's namespace or in none. A
/// cluster-scoped dependent cannot have an owner in a namespace.
fn address<'v>(view: &'v View, dependent: &ObjectMeta, reference: &OwnerReference) -> Option<(&'v Resource, Key)> {
    let resource = resource_of(view, reference)?;
    let namespace = match (resource.namespaced, dependent.namespace.is_empty()) {
        (true, true) => return None,
        (true, false) => &*dependent.namespace,
        (false, _) => "",
    };
    Some((resource, Key::new(namespace, &*reference.name)))
}

fn resource_of<'v>(view: &'v View, reference: &OwnerReference) -> Option<&'v Resource> {
    let group = reference.api_version.split_once('/').map_or("", |it| it.0);
    // A server of another version may serve it in another one, or not at all: then it is not watched.
    let built_in = BY_KIND.get(&(group, &*reference.kind)).copied().filter(|it| view.table(it).is_some());
    built_in.or_else(|| defined(view, |it| it.group == group && it.kind == reference.kind))
}

/// The owner itself, where the view holds it.
pub(super) fn owner_of<'v>(
    view: &'v View,
    dependent: &ObjectMeta,
    reference: &OwnerReference,
) -> Option<&'v ObjectMeta> {
    let (resource, key) = address(view, dependent, reference)?;
    view.meta(resource, &key).filter(|it| it.uid == reference.uid)
}

/// The owner is there and will stay. Its own end wakes it for all its dependents.
pub(super) fn lives(view: &View, dependent: &ObjectMeta, reference: &OwnerReference) -> bool {
    owner_of(view, dependent, reference).is_some_and(|it| !it.is_deleting())
}

fn find(view: &View, dependent: &ObjectMeta, reference: &OwnerReference) -> Owner {
    let Some((resource, key)) = address(view, dependent, reference) else { return Owner::Unresolvable };
    match view.meta(resource, &key) {
        Some(owner) if owner.uid == reference.uid => {
            if is_waiting(owner) {
                Owner::Waiting
            } else {
                Owner::Living
            }
        }
        _ => match view.answer(resource, &key) {
            None => Owner::Unknown,
            Some(Answer::Found { uid }) if *uid == reference.uid => Owner::Living,
            Some(_) => Owner::Gone,
        },
    }
}

/// What is to be done about one dependent: all of its owners are looked at once.
pub(super) fn see_to<'v>(
    view: &'v View,
    resource: &Resource,
    dependent: &ObjectMeta,
    looked_up: &mut LookedUp<'v>,
) -> Vec<Effect> {
    // What cannot be listed may be another by now than it is seen.
    if dependent.is_deleting() || view.cannot_be_listed().contains(resource) {
        return Vec::new();
    }
    let (mut lost, mut unseen) = (BTreeSet::new(), Vec::new());
    let (mut has_living, mut has_waiting) = (false, false);
    let (mut has_unknown, mut asks) = (false, Vec::new());
    for reference in &dependent.owner_references {
        match find(view, dependent, reference) {
            Owner::Living => has_living = true,
            Owner::Waiting => {
                has_waiting = true;
                lost.insert(&*reference.uid);
            }
            Owner::Gone => {
                lost.insert(&*reference.uid);
                unseen.push(reference);
            }
            Owner::Unresolvable => {
                has_living = true;
                unseen.push(reference);
            }
            Owner::Unknown => {
                has_unknown = true;
                let Some((resource, key)) = address(view, dependent, reference) else { continue };
                if looked_up.asked.insert((resource, key.clone())) {
                    asks.push(Effect::Ask { resource: resource.clone(), key });
                }
            }
        }
        // The rest is looked at when these are known.
        if asks.len() >= EFFECTS_MAX {
            break;
        }
    }
    if has_unknown {
        return asks;
    }
    let mut effects = Vec::new();
    if !has_living {
        effects.push(delete(view, resource, dependent, has_waiting));
    } else if !lost.is_empty() {
        effects.push(without_owners(resource, dependent, &lost));
    }
    let misplaced = unseen.into_iter().find(|it| is_in_another_namespace(view, it, looked_up));
    effects.extend(misplaced.map(|it| invalid_namespace(resource, dependent, it)));
    effects
}

/// Is an owner that is not where the dependent's would be in another namespace?
fn is_in_another_namespace<'v>(view: &'v View, reference: &OwnerReference, looked_up: &mut LookedUp<'v>) -> bool {
    let Some(resource) = resource_of(view, reference).filter(|it| it.namespaced) else { return false };
    let OwnerReference { name, uid, .. } = reference;
    let looked_up = looked_up.elsewhere.entry((resource, name.clone(), uid.clone()));
    *looked_up.or_insert_with(|| view.named(resource, name).any(|it| it.uid == *uid))
}

fn invalid_namespace(resource: &Resource, dependent: &ObjectMeta, owner: &OwnerReference) -> Effect {
    let namespace = &dependent.namespace;
    let OwnerReference { api_version, kind, name, uid, .. } = owner;
    let message = format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {namespace:?}"
    );
    let about = ObjectReference {
        kind: resource.kind.to_string(),
        api_version: resource.api_version(),
        namespace: namespace.clone(),
        name: dependent.name.clone(),
        uid: dependent.uid.clone(),
        ..ObjectReference::default()
    };
    Effect::Event { about, event_type: EventType::Warning, reason: "OwnerRefInvalidNamespace", message }
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
