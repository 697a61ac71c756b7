//! Gives back the devices of a claim whose last user is gone, and deletes claims that were made for pods that are over.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Actor, Controller, Effect, Plan, Projection, Propagation, Verb, View, Wait, Wake, Watch, Write, status::exact_patch,
};
use serde_json::{Value, json};

use super::projections::{Claim, Consumer};
use crate::projections::Pod;

/// The scheduler puts it on a claim before that has devices.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

pub struct DeviceClaimRelease;

impl Controller for DeviceClaimRelease {
    fn name(&self) -> &'static str {
        "resource-claim-release"
    }

    fn component(&self) -> String {
        "resource_claim_release".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Claim>(Wake::Itself), Watch::new::<Pod>(Wake::With(claims_of))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Delete, resource: resources::RESOURCE_CLAIMS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::RESOURCE_CLAIMS,
                    fields: &["metadata.finalizers", "status.allocation", "status.reservedFor"],
                },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let mut plan = Plan::default();
        let Some(claim) = view.get::<Claim>(key) else { return plan };
        let (meta, users) = (&claim.metadata, &claim.status.reserved_for);
        let left: Vec<&Consumer> = users.iter().filter(|it| is_user(view, key, it)).collect();
        let is_protected = meta.finalizers.iter().any(|it| it == FINALIZER);
        if left.is_empty() && is_protected && (claim.status.allocation.is_some() || !users.is_empty()) {
            // A claim that was never used keeps its devices for who comes, unless it is to go.
            if !users.is_empty() || meta.is_deleting() {
                plan.effects.push(status(claim, json!({ "allocation": null, "reservedFor": null })));
            }
        } else if left.len() < users.len() {
            let left = if left.is_empty() { Value::Null } else { json!(left) };
            plan.effects.push(status(claim, json!({ "reservedFor": left })));
        } else if is_protected && claim.status.allocation.is_none() && (meta.is_deleting() || users.is_empty()) {
            plan.effects.extend(unprotect(view, claim));
        }
        if plan.effects.is_empty() && left.is_empty() && !meta.is_deleting() && is_of_finished_pod(view, meta) {
            let (resource, uid) = (Claim::RESOURCE, meta.uid.clone());
            let propagation = Propagation::Background;
            plan.effects.push(Effect::Delete { resource, key: key.clone(), uid, propagation, grace_seconds: None });
        }
        if let Some(user) = left.first().filter(|_| meta.is_deleting()) {
            let message = "it is deleted when no pod uses it";
            plan.waits.push(Wait::new("ClaimInUse", message, Actor::Author).on("Pod", &user.name));
        }
        plan
    }
}

fn status(claim: &Claim, status: Value) -> Effect {
    let meta = &claim.metadata;
    let metadata = json!({ "uid": meta.uid, "resourceVersion": meta.resource_version });
    let patch = json!({ "metadata": metadata, "status": status });
    Effect::Patch { resource: Claim::RESOURCE, key: meta.key(), subresource: Some("status"), patch }
}

/// The scheduler puts its mark on before it writes the devices: while a pod that could be about to have them waits for its
/// node, the mark stays.
fn unprotect(view: &View, claim: &Claim) -> Option<Effect> {
    let meta = &claim.metadata;
    let is_owner = |it: &Pod| meta.controller().is_some_and(|owner| owner.uid == it.metadata.uid);
    let has = |it: &Pod| is_owner(it) || uses(it, &meta.name);
    let waits = |it: &Pod| it.is_active() && it.spec.node_name.is_empty() && has(it);
    if !meta.is_deleting() && view.in_namespace::<Pod>(&meta.namespace).any(waits) {
        return None;
    }
    let left: Vec<&String> = meta.finalizers.iter().filter(|it| *it != FINALIZER).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    Some(exact_patch(Claim::RESOURCE, meta, json!({ "metadata": { "finalizers": left } })))
}

/// Whom nothing is known of may use it.
fn is_user(view: &View, claim: &Key, user: &Consumer) -> bool {
    if !user.api_group.is_empty() || user.resource != "pods" {
        return true;
    }
    let pod = view.get::<Pod>(&Key::new(&*claim.namespace, &*user.name));
    pod.is_some_and(|it| it.metadata.uid == user.uid && !is_done(it))
}

/// As `isPodDone`: it will not run, or will not run again.
fn is_done(pod: &Pod) -> bool {
    pod.is_finished() || (pod.metadata.is_deleting() && pod.spec.node_name.is_empty())
}

fn is_of_finished_pod(view: &View, claim: &ObjectMeta) -> bool {
    let Some(owner) = claim.controller().filter(|it| it.kind == "Pod") else { return false };
    let pod = view.get::<Pod>(&Key::new(&*claim.namespace, &*owner.name));
    pod.is_some_and(|it| it.metadata.uid == owner.uid && is_done(it))
}

fn uses(pod: &Pod, claim: &str) -> bool {
    let named = pod.spec.resource_claims.iter().filter_map(|it| it.resource_claim_name.as_deref());
    let made = pod.status.resource_claim_statuses.iter().filter_map(|it| it.resource_claim_name.as_deref());
    named.chain(made).any(|it| it == claim)
}

/// The claims that a pod uses, or used: of one that is gone, those that name it.
fn claims_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let known = view.get::<Pod>(&pod.key());
    let is_concerned = |it: &&Claim| {
        it.status.reserved_for.iter().any(|it| it.uid == pod.uid)
            || it.metadata.controller().is_some_and(|it| it.uid == pod.uid)
            || known.is_some_and(|pod| uses(pod, &it.metadata.name))
    };
    view.in_namespace::<Claim>(&pod.namespace).filter(is_concerned).map(|it| it.metadata.key()).collect()
}
