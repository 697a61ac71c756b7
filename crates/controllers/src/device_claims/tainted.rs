//! Which pods must go because of taints of their devices, when, and because of which rules.

use std::{collections::BTreeSet, time::Duration};

use corten_api::scheduling::{Taint, Toleration};
use corten_meta::{Key, Time};
use corten_reconcile::View;

use super::projections::{AllocatedDevice, Claim, DeviceSlice, DeviceTaint, SliceDevice, TaintRule, pool};
use crate::projections::Pod;

pub(super) const NO_EXECUTE: &str = "NoExecute";

/// Devices that a pod has are tainted, and it does not tolerate that, or for a time only.
pub(super) struct Eviction<'a> {
    pub(super) at: Time,
    /// A device whose taint is the first to be tolerated no longer.
    pub(super) device: &'a AllocatedDevice,
    /// The rules whose taints the pod must go for.
    pub(super) rules: BTreeSet<&'a str>,
}

impl TaintRule {
    pub(super) fn selects(&self, driver: &str, pool: &str, device: &str) -> bool {
        let is = |wanted: &Option<String>, it: &str| wanted.as_ref().is_none_or(|wanted| wanted == it);
        let selector = self.spec.device_selector.as_ref();
        selector.is_some_and(|it| is(&it.driver, driver) && is(&it.pool, pool) && is(&it.device, device))
    }

    fn selects_allocated(&self, it: &AllocatedDevice) -> bool {
        self.selects(&it.driver, &it.pool, &it.device)
    }
}

/// The devices that a pool offers: those of its newest generation.
pub(super) fn offered<'a>(view: &'a View, pool: &str) -> impl Iterator<Item = &'a SliceDevice> + use<'a> {
    let newest = view.found_by::<DeviceSlice>(pool).map(|it| it.spec.generation).max();
    let slices = view.found_by::<DeviceSlice>(pool).filter(move |it| Some(it.spec.generation) == newest);
    slices.flat_map(|it| &it.spec.devices)
}

/// Whether the pod must go. `simulated` is a rule that counts as one of `NoExecute` whatever its effect.
pub(super) fn eviction<'a>(
    view: &'a View,
    pod: &Pod,
    simulated: Option<&'a TaintRule>,
    now: Time,
) -> Option<Eviction<'a>> {
    if pod.spec.node_name.is_empty() {
        return None;
    }
    let mut all =
        claims(view, pod).flat_map(|claim| claim.devices()).flat_map(|it| of_device(view, it, simulated, now));
    let mut eviction = all.next()?;
    for it in all {
        eviction.rules.extend(it.rules);
        if it.at < eviction.at {
            (eviction.at, eviction.device) = (it.at, it.device);
        }
    }
    Some(eviction)
}

/// The claims that this pod, and no earlier one of its name, may use.
fn claims<'a>(view: &'a View, pod: &Pod) -> impl Iterator<Item = &'a Claim> {
    let named = pod.spec.resource_claims.iter().filter_map(|it| it.resource_claim_name.as_ref());
    let made = pod.status.resource_claim_statuses.iter().filter_map(|it| it.resource_claim_name.as_ref());
    let found = named.chain(made).filter_map(|it| view.get::<Claim>(&Key::new(&*pod.metadata.namespace, &**it)));
    found.filter(|it| it.status.reserved_for.iter().any(|it| it.uid == pod.metadata.uid))
}

fn of_device<'a>(
    view: &'a View,
    device: &'a AllocatedDevice,
    simulated: Option<&'a TaintRule>,
    now: Time,
) -> Vec<Eviction<'a>> {
    let own = offered(view, &pool(&device.driver, &device.pool)).filter(|it| *it.name == *device.device);
    let own = own.flat_map(|it| &it.taints).filter(|it| it.effect == NO_EXECUTE).map(|it| (it, None));
    let is_simulated = |it: &TaintRule| simulated.is_some_and(|rule| rule.metadata.uid == it.metadata.uid);
    let rules = view.list::<TaintRule>().filter(move |it| it.spec.taint.effect == NO_EXECUTE || is_simulated(it));
    let rules = rules.filter(|it| it.selects_allocated(device)).map(|it| (&it.spec.taint, Some(&*it.metadata.name)));
    let all = own.chain(rules).filter_map(|(taint, rule)| {
        let at = tolerated_until(taint, device, now)?;
        Some(Eviction { at, device, rules: rule.into_iter().collect() })
    });
    all.collect()
}

/// `None`: for good. Of several tolerations the shortest counts (`claimEvictionTime`).
///
/// A toleration without effect is for all effects, as the API says and the scheduler goes by; upstream's controller does not heed
/// it, and evicts what the scheduler brings back.
fn tolerated_until(taint: &DeviceTaint, device: &AllocatedDevice, now: Time) -> Option<Time> {
    let of = Taint { key: &taint.key, value: &taint.value, effect: NO_EXECUTE };
    let tolerations = device.tolerations.iter().filter(|it| {
        Toleration { key: &it.key, operator: &it.operator, value: &it.value, effect: &it.effect }.tolerates(of)
    });
    let mut shortest: Option<i64> = None;
    for it in tolerations {
        let seconds = it.toleration_seconds?;
        shortest = Some(shortest.map_or(seconds, |it| it.min(seconds)));
    }
    let seconds = shortest.and_then(|it| u64::try_from(it).ok()).unwrap_or(0);
    Some(taint.time_added.unwrap_or(now).after(Duration::from_secs(seconds)))
}

/// The pods that have a claim's devices.
pub(super) fn users(claim: &Claim) -> impl Iterator<Item = Key> {
    let users = claim.status.reserved_for.iter().filter(|it| it.api_group.is_empty() && it.resource == "pods");
    users.map(|it| Key::new(&*claim.metadata.namespace, &*it.name))
}
