//! Keeps claims and volumes from going while they are used: a finalizer that is taken away when they are not.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Actor, Controller, Effect, Plan, Projection, Verb, View, Wait, Wake, Watch, Write, status::exact_patch,
};
use serde_json::{Value, json};

use super::{
    claim_use,
    projections::{AttributesClass, Claim, Volume},
};
use crate::projections::Pod;

const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";
const OF_VOLUMES: &str = "kubernetes.io/pv-protection";
const OF_ATTRIBUTES: &str = "kubernetes.io/vac-protection";

fn has(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().any(|it| it == finalizer)
}

fn with<T: Projection>(meta: &ObjectMeta, finalizer: &str) -> Effect {
    let all: Vec<&str> = meta.finalizers.iter().map(|it| &**it).chain([finalizer]).collect();
    exact_patch(T::RESOURCE, meta, json!({ "metadata": { "finalizers": all } }))
}

fn without<T: Projection>(meta: &ObjectMeta, finalizer: &str) -> Effect {
    let left: Vec<&String> = meta.finalizers.iter().filter(|it| *it != finalizer).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    exact_patch(T::RESOURCE, meta, json!({ "metadata": { "finalizers": left } }))
}

pub struct ClaimProtection;

impl Controller for ClaimProtection {
    fn name(&self) -> &'static str {
        "pvc-protection"
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| view.list::<Claim>().next().is_some();
        vec![Watch::new::<Claim>(Wake::Itself), Watch::new::<Pod>(Wake::With(touched_claims)).once(is_any)]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::PERSISTENT_VOLUME_CLAIMS,
                fields: &["metadata.finalizers", "status.conditions"],
            }]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(claim) = view.get::<Claim>(key) else { return Plan::default() };
        let mut plan = Plan::default();
        let meta = &claim.metadata;
        if !meta.is_deleting() {
            if !has(meta, OF_CLAIMS) {
                plan.effects.push(with::<Claim>(meta, OF_CLAIMS));
            }
            plan.effects.extend(claim_use::told(view, claim, now));
            return plan;
        }
        if !has(meta, OF_CLAIMS) {
            return plan;
        }
        match user(view, key) {
            None => plan.effects.push(without::<Claim>(meta, OF_CLAIMS)),
            Some(pod) => {
                let message = "it is deleted when no pod uses it";
                plan.waits.push(Wait::new("ClaimInUse", message, Actor::Author).on("Pod", &pod.metadata.name));
            }
        }
        plan
    }
}

/// What a pod that changes or goes may set free, or begins to use.
fn touched_claims(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let leaving = view.in_namespace::<Claim>(&pod.namespace).filter(|it| it.metadata.is_deleting());
    leaving.map(|it| it.metadata.key()).chain(claim_use::claims_of(view, pod)).collect()
}

/// A pod that has no node yet will not get to use a claim that is going.
fn user<'a>(view: &'a View, claim: &'a Key) -> Option<&'a Pod> {
    let pods = view.in_namespace::<Pod>(&claim.namespace);
    let mut users = pods.filter(|it| !it.spec.node_name.is_empty() && it.claims().any(|it| it == claim.name));
    users.next()
}

pub struct VolumeProtection;

impl Controller for VolumeProtection {
    fn name(&self) -> &'static str {
        "pv-protection"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Volume>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::PERSISTENT_VOLUMES, fields: &["metadata.finalizers"] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(volume) = view.get::<Volume>(key) else { return Plan::default() };
        let (meta, mut plan) = (&volume.metadata, Plan::default());
        match (meta.is_deleting(), has(meta, OF_VOLUMES)) {
            (false, false) => plan.effects.push(with::<Volume>(meta, OF_VOLUMES)),
            (true, true) if volume.status.phase == "Bound" => {
                let message = "it is deleted when its claim is gone";
                let wait = Wait::new("VolumeBound", message, Actor::Author);
                plan.waits.push(match volume.claim() {
                    Some(claim) => wait.on("PersistentVolumeClaim", &claim.to_string()),
                    None => wait,
                });
            }
            (true, true) => plan.effects.push(without::<Volume>(meta, OF_VOLUMES)),
            _ => {}
        }
        plan
    }
}

pub struct AttributesClassProtection;

impl Controller for AttributesClassProtection {
    fn name(&self) -> &'static str {
        "volumeattributesclass-protection"
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| view.list::<AttributesClass>().next().is_some();
        vec![
            Watch::new::<AttributesClass>(Wake::Itself),
            Watch::new::<Claim>(Wake::With(leaving_classes)).once(is_any),
            Watch::new::<Volume>(Wake::With(leaving_classes)).once(is_any),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::VOLUME_ATTRIBUTES_CLASSES,
                fields: &["metadata.finalizers"],
            }]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(class) = view.get::<AttributesClass>(key) else { return Plan::default() };
        let (meta, mut plan) = (&class.metadata, Plan::default());
        if !meta.is_deleting() && !has(meta, OF_ATTRIBUTES) {
            plan.effects.push(with::<AttributesClass>(meta, OF_ATTRIBUTES));
        }
        if !meta.is_deleting() || !has(meta, OF_ATTRIBUTES) {
            return plan;
        }
        let in_use = |kind, name| {
            let message = "it is deleted when nothing is of this class";
            Wait::new("ClassInUse", message, Actor::Author).on(kind, name)
        };
        let claim = view.list::<Claim>().find(|it| is_of(it, &key.name));
        let volume = view.list::<Volume>().find(|it| it.spec.volume_attributes_class_name.as_ref() == Some(&key.name));
        match (claim, volume) {
            (Some(it), _) => plan.waits.push(in_use("PersistentVolumeClaim", &it.metadata.name)),
            (None, Some(it)) => plan.waits.push(in_use("PersistentVolume", &it.metadata.name)),
            (None, None) => plan.effects.push(without::<AttributesClass>(meta, OF_ATTRIBUTES)),
        }
        plan
    }
}

/// It asks for the class, has it, or is being changed to it.
fn is_of(claim: &Claim, class: &str) -> bool {
    let status = &claim.status;
    let asked = [&claim.spec.volume_attributes_class_name, &status.current_volume_attributes_class_name];
    let target = status.modify_volume_status.as_ref().map(|it| &*it.target_volume_attributes_class_name);
    asked.into_iter().flatten().any(|it| it == class) || target == Some(class)
}

fn leaving_classes(view: &View, _changed: &ObjectMeta) -> Vec<Key> {
    view.list::<AttributesClass>().filter(|it| it.metadata.is_deleting()).map(|it| it.metadata.key()).collect()
}
