//! Who controls what: adopting objects that match a selector and have no controller, releasing those that no longer match.
//!
//! Each such patch is exact (uid and resourceVersion), so two controllers never both adopt one object.

use corten_meta::{Key, ObjectMeta, OwnerReference, Selector};
use corten_reconcile::{
    Effect, EventType, Plan, Projection, View,
    status::{exact_patch, status_patch},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::projections::{ControllerRevision, Pod, reference};

/// The object's controller, where it is of this kind.
pub(crate) fn controlled_by(object: &ObjectMeta, kind: &str) -> Vec<Key> {
    let owner = object.controller().filter(|it| it.kind == kind);
    owner.map(|it| Key::new(&*object.namespace, &*it.name)).into_iter().collect()
}

/// What becomes of an owner whose selector is empty: it is told so, and that it was seen; nothing is claimed for it.
pub(crate) fn selects_all<O: Projection, S>(owner: &O, kind: &str, old: &S, observed: &S) -> Plan
where
    S: Serialize + Default + PartialEq,
{
    let message = format!("This {kind} is selecting all pods. A non-empty selector is required.");
    let about = reference(owner);
    let warning = Effect::Event { about, event_type: EventType::Warning, reason: "SelectingAll", message };
    let patch = status_patch(O::RESOURCE, owner.meta(), old, observed);
    Plan { effects: std::iter::once(warning).chain(patch).collect(), ..Plan::default() }
}

/// The objects an owner controls, and the patches that make it control what it should.
pub(crate) struct Claim<'a, T> {
    pub(crate) owned: Vec<&'a T>,
    pub(crate) effects: Vec<Effect>,
}

/// `candidate` says which uncontrolled objects are worth adopting, beside their labels.
pub(crate) fn claim<'a, O: Projection, T: Projection>(
    view: &'a View,
    owner: &'a O,
    selector: &Selector,
    candidate: impl Fn(&T) -> bool,
) -> Claim<'a, T> {
    let meta = owner.meta();
    let mut claim = Claim { owned: Vec::new(), effects: Vec::new() };
    for object in view.owned_by::<T>(&meta.uid).filter(|it| controls(meta, it.meta())) {
        if selector.matches(&object.meta().labels) {
            claim.owned.push(object);
        } else if !meta.is_deleting() {
            claim.effects.push(release::<T>(meta, object.meta()));
        }
    }
    if !meta.is_deleting() {
        let orphans = view.uncontrolled::<T>(&meta.namespace);
        let adoptable = orphans.filter(|it| !it.meta().is_deleting() && selector.matches(&it.meta().labels));
        claim.effects.extend(adoptable.filter(|it| candidate(it)).map(|it| adopt::<O, T>(meta, it.meta())));
    }
    claim
}

/// The pods and the revisions of a set that keeps both.
pub(crate) struct ClaimedPods<'a> {
    pub(crate) pods: Vec<&'a Pod>,
    pub(crate) revisions: Vec<&'a ControllerRevision>,
}

/// Or a plan that says first who belongs here: everything else begins when the view shows it.
pub(crate) fn claim_pods_and_revisions<'a, O: Projection>(
    view: &'a View,
    owner: &'a O,
    selector: &Selector,
    candidate: impl Fn(&Pod) -> bool,
) -> Result<ClaimedPods<'a>, Plan> {
    let pods = claim::<O, Pod>(view, owner, selector, candidate);
    let revisions = claim::<O, ControllerRevision>(view, owner, selector, |_| true);
    let effects: Vec<Effect> = pods.effects.into_iter().chain(revisions.effects).collect();
    if effects.is_empty() {
        Ok(ClaimedPods { pods: pods.owned, revisions: revisions.owned })
    } else {
        Err(Plan { effects, ..Plan::default() })
    }
}

fn controls(owner: &ObjectMeta, object: &ObjectMeta) -> bool {
    object.namespace == owner.namespace && object.controller().is_some_and(|it| it.uid == owner.uid)
}

/// The reference that makes `owner` control an object.
pub(crate) fn controller_reference<O: Projection>(owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: O::RESOURCE.api_version(),
        kind: O::RESOURCE.kind.to_string(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn adopt<O: Projection, T: Projection>(owner: &ObjectMeta, object: &ObjectMeta) -> Effect {
    // It may name the owner already, only not as its controller.
    let mut owners: Vec<_> = object.owner_references.iter().filter(|it| it.uid != owner.uid).cloned().collect();
    owners.push(controller_reference::<O>(owner));
    exact_patch(T::RESOURCE, object, json!({ "metadata": { "ownerReferences": owners } }))
}

fn release<T: Projection>(owner: &ObjectMeta, object: &ObjectMeta) -> Effect {
    let left: Vec<_> = object.owner_references.iter().filter(|it| it.uid != owner.uid).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    exact_patch(T::RESOURCE, object, json!({ "metadata": { "ownerReferences": left } }))
}
