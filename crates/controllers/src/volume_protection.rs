//! Keeps claims and volumes from going while they are used: a finalizer that is taken away when they are not.

use corten_api::resources;
use corten_meta::{Key, Named, ObjectMeta, Resource, Time};
use corten_reconcile::{Actor, Controller, Effect, Plan, Projection, Verb, View, Wait, Wake, Watch, Write};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    projections::{Pod, projection},
    status::exact_patch,
};

const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";
const OF_VOLUMES: &str = "kubernetes.io/pv-protection";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase {
    phase: String,
}

#[derive(Deserialize)]
struct Claim {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Phase,
}
projection!(Claim, resources::PERSISTENT_VOLUME_CLAIMS);

#[derive(Deserialize)]
struct Volume {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Phase,
}
projection!(Volume, resources::PERSISTENT_VOLUMES);

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
        vec![Watch::new::<Claim>(Wake::Itself), Watch::new::<Pod>(Wake::With(leaving_claims)).once(is_any)]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::PERSISTENT_VOLUME_CLAIMS,
                fields: &["metadata.finalizers"],
            }]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(claim) = view.get::<Claim>(key) else { return Plan::default() };
        let mut plan = Plan::default();
        let meta = &claim.metadata;
        if !meta.is_deleting() {
            if !has(meta, OF_CLAIMS) {
                plan.effects.push(with::<Claim>(meta, OF_CLAIMS));
            }
            if matches!(&*claim.status.phase, "" | "Pending") {
                let message = "no loop of this cluster gives claims their volumes yet";
                plan.waits.push(Wait::new("NoVolumeBinder", message, Actor::Operator));
            }
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

/// What a pod that changes or goes may set free.
fn leaving_claims(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let claims = view.in_namespace::<Claim>(&pod.namespace).filter(|it| it.metadata.is_deleting());
    claims.map(|it| it.metadata.key()).collect()
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
                plan.waits.push(Wait::new("VolumeBound", message, Actor::Author));
            }
            (true, true) => plan.effects.push(without::<Volume>(meta, OF_VOLUMES)),
            _ => {}
        }
        plan
    }
}
