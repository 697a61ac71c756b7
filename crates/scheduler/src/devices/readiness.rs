//! Whether the devices of a claim are ready for their pod to be bound (KEP-5007): what their drivers say of each.

use corten_allocator::Allocation;
use corten_api::{
    apimachinery::pkg::apis::meta::v1::Condition,
    resource::v1::{AllocatedDeviceStatus, DeviceRequestAllocationResult},
};
use corten_meta::Time;

use super::{DeviceClaim, Devices};
use crate::PodInfo;

/// How far the devices of a pod are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// This claim waits; without a name: the one that is made for the pod's extended resources.
    Open(Option<String>),
    /// The claim's driver says why.
    Failed(String),
}

impl Devices {
    /// As in `isPodReadyForBinding`.
    pub(crate) fn readiness(&self, pod: &PodInfo) -> Readiness {
        let mut open = Readiness::Ready;
        for it in pod.device_claims.iter().filter_map(|it| it.key(pod)) {
            let readiness = match (self.claims.get(&it), self.assumed.get(&it)) {
                (Some(claim), _) if claim.allocation().is_some() => claim.readiness(),
                (Some(_), Some((given, _))) if awaits(given) => Readiness::Open(Some(it.name)),
                (Some(_), Some(_)) => Readiness::Ready,
                (Some(_), None) => Readiness::Failed(format!("claim {} got deallocated in the meantime", it.name)),
                (None, _) => Readiness::Failed(format!("resourceclaim {:?} not found", it.name)),
            };
            match readiness {
                Readiness::Ready => {}
                Readiness::Open(_) => open = readiness,
                Readiness::Failed(_) => return readiness,
            }
        }
        let extended = match (self.stale_claim(pod), self.extended.get(&pod.key)) {
            (Some(claim), _) if claim.allocation().is_some() => claim.readiness(),
            (_, Some(it)) if awaits(&it.allocation) => Readiness::Open(None),
            _ => Readiness::Ready,
        };
        if extended == Readiness::Ready { open } else { extended }
    }

    /// Of the pod's claims that are not ready, the one that was given its devices first, and when.
    pub(crate) fn longest_unready(&self, pod: &PodInfo) -> Option<(&DeviceClaim, Time)> {
        let claims = pod.device_claims.iter().filter_map(|it| self.claims.get(&it.key(pod)?));
        let unready = claims.filter(|it| matches!(it.readiness(), Readiness::Open(_)));
        let since = |it: &DeviceClaim| Some(Time(it.allocation()?.allocation_timestamp.as_ref()?.0));
        unready.filter_map(|it| Some((it, since(it)?))).min_by_key(|it| it.1)
    }
}

impl DeviceClaim {
    /// As in `isClaimReadyForBinding`.
    pub(crate) fn readiness(&self) -> Readiness {
        let results = self.allocation().and_then(|it| it.devices.as_ref()).and_then(|it| it.results.as_ref());
        let mut is_ready = true;
        for device in results.into_iter().flatten() {
            let awaited = device.binding_conditions.as_deref().unwrap_or_default();
            if awaited.is_empty() {
                continue;
            }
            let conditions = self.conditions_of(device);
            let holds = |name: &String| conditions.iter().find(|it| it.type_ == *name && it.status == "True");
            if let Some(failed) = device.binding_failure_conditions.iter().flatten().find_map(holds) {
                let (name, reason, message) = (&self.metadata.name, &failed.reason, &failed.message);
                let told = format!("claim {name} binding failed: reason={reason}, message={message:?}");
                return Readiness::Failed(told);
            }
            is_ready &= awaited.iter().all(|it| holds(it).is_some());
        }
        if is_ready { Readiness::Ready } else { Readiness::Open(Some(self.metadata.name.clone())) }
    }

    fn conditions_of(&self, device: &DeviceRequestAllocationResult) -> &[Condition] {
        let is_it = |it: &&AllocatedDeviceStatus| {
            let is_device = it.device == device.device && it.driver == device.driver && it.pool == device.pool;
            is_device && it.share_id == device.share_id
        };
        let mut told = self.status.iter().flat_map(|it| it.devices.iter().flatten());
        told.find(is_it).and_then(|it| it.conditions.as_deref()).unwrap_or_default()
    }
}

fn awaits(allocation: &Allocation) -> bool {
    let results = allocation.devices.iter().flat_map(|it| it.results.iter().flatten());
    results.into_iter().any(|it| it.binding_conditions.as_ref().is_some_and(|it| !it.is_empty()))
}
