//! Makes pods leave whose devices have taints of `NoExecute` that they do not tolerate, or no longer (upstream's
//! `device-taint-eviction-controller`).

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write};

use super::{
    made::pod_with_claims,
    projections::{AllocatedDevice, Claim, DeviceSlice, TaintRule, pool},
    tainted::{NO_EXECUTE, eviction, users},
};
use crate::{
    projections::{Pod, reference},
    taint_eviction::disrupted,
};

pub struct DeviceTaintEviction;

impl Controller for DeviceTaintEviction {
    fn name(&self) -> &'static str {
        "device-taint-eviction"
    }

    fn component(&self) -> String {
        "device-taint-eviction".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Pod>(Wake::With(pod_with_claims)),
            Watch::new::<Claim>(Wake::With(users_of_claim)),
            Watch::new::<DeviceSlice>(Wake::With(users_of_slice)),
            Watch::new::<TaintRule>(Wake::With(users_of_selected)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["status.conditions"] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let mut plan = Plan::default();
        let pod = view.get::<Pod>(key).filter(|it| !it.metadata.is_deleting());
        let Some((pod, eviction)) = pod.and_then(|it| Some((it, eviction(view, it, None, now)?))) else { return plan };
        if eviction.at > now {
            let AllocatedDevice { driver, pool, device, .. } = eviction.device;
            let message =
                format!("it tolerates the taint of its device {driver}/{pool}/{device} until {}", eviction.at);
            plan.waits.push(Wait::new("PodToleratesDeviceTaint", message, Actor::Cluster));
            plan.wake_at = Some(eviction.at);
            return plan;
        }
        let text = "Device Taint manager: deleting due to NoExecute taint";
        plan.effects.extend(disrupted(pod, "DeletionByDeviceTaintManager", text, now));
        let (resource, key, uid) = (resources::PODS, key.clone(), pod.metadata.uid.clone());
        plan.effects.push(Effect::Delete {
            resource,
            key,
            uid,
            propagation: Propagation::Background,
            grace_seconds: None,
        });
        plan.effects.push(Effect::Event {
            about: reference(pod),
            event_type: EventType::Normal,
            reason: "DeviceTaintManagerEviction",
            message: "Marking for deletion".into(),
        });
        plan
    }
}

fn users_of_claim(view: &View, claim: &ObjectMeta) -> Vec<Key> {
    view.get::<Claim>(&claim.key()).into_iter().flat_map(users).collect()
}

/// Where a taint went, the pods that wait for its time are asked then.
fn users_of_slice(view: &View, slice: &ObjectMeta) -> Vec<Key> {
    let Some(slice) = view.get::<DeviceSlice>(&slice.key()) else { return Vec::new() };
    if !slice.spec.devices.iter().flat_map(|it| &it.taints).any(|it| it.effect == NO_EXECUTE) {
        return Vec::new();
    }
    let is_of_pool = |it: &AllocatedDevice| pool(&it.driver, &it.pool) == slice.spec.pool;
    view.list::<Claim>().filter(|it| it.devices().any(is_of_pool)).flat_map(users).collect()
}

fn users_of_selected(view: &View, rule: &ObjectMeta) -> Vec<Key> {
    let rule = view.get::<TaintRule>(&rule.key()).filter(|it| it.spec.taint.effect == NO_EXECUTE);
    let Some(rule) = rule else { return Vec::new() };
    let is_selected = |it: &AllocatedDevice| rule.selects(&it.driver, &it.pool, &it.device);
    view.list::<Claim>().filter(|it| it.devices().any(is_selected)).flat_map(users).collect()
}
