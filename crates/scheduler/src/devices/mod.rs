//! What is known of devices and of the claims for them; and what was given here and is not seen yet.

mod objects;
mod pod_devices;

use std::collections::{BTreeMap, BTreeSet};

use corten_allocator::{Allocation, DeviceId, Inventory, allocated_devices};
use corten_meta::{Key, Resource};
use corten_reconcile::Projection;
use serde_json::{Value, json};

pub use objects::{DeviceClaim, DeviceClass, DeviceObject, DeviceSlice, DeviceTaintRule};
pub(crate) use pod_devices::{Conflict, PodDevices, TIMED_OUT, refusal};

use crate::PodInfo;

/// Keeps a claim that has devices from being gone before they are given back.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Devices {
    inventory: Inventory,
    claims: BTreeMap<Key, DeviceClaim>,
    /// Claims that were given devices here, and for which pod.
    assumed: BTreeMap<Key, (Allocation, Key)>,
}

/// What is written into a claim before its pod is bound.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimReservation {
    pub claim: Key,
    pub uid: String,
    pub resource_version: String,
    /// All finalizers, where one is to be added.
    pub finalizers: Option<Vec<String>>,
    /// Of `status`: what changes.
    pub status: Value,
}

impl Devices {
    pub(crate) fn set(&mut self, object: DeviceObject) {
        match object {
            DeviceObject::Slice(it) => self.inventory.set_slice(it.metadata.name, it.spec),
            DeviceObject::Class(it) => self.inventory.set_class(it.metadata.name, it.spec.unwrap_or_default()),
            DeviceObject::TaintRule(it) => self.inventory.set_taint_rule(it.metadata.name.clone(), it.rule()),
            DeviceObject::Claim(it) => {
                let key = it.metadata.key();
                if it.allocation().is_some() {
                    self.assumed.remove(&key);
                }
                self.claims.insert(key, it);
            }
        }
    }

    /// True where it was one of these.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &Key) -> bool {
        if *resource == DeviceSlice::RESOURCE {
            self.inventory.remove_slice(&key.name);
        } else if *resource == DeviceClass::RESOURCE {
            self.inventory.remove_class(&key.name);
        } else if *resource == DeviceTaintRule::RESOURCE {
            self.inventory.remove_taint_rule(&key.name);
        } else if *resource == DeviceClaim::RESOURCE {
            self.claims.remove(key);
            self.assumed.remove(key);
        } else {
            return false;
        }
        true
    }

    pub(crate) fn claim(&self, key: &Key) -> Option<&DeviceClaim> {
        self.claims.get(key)
    }

    /// What the claim has, be it seen or decided here.
    fn allocation_of(&self, key: &Key) -> Option<&Allocation> {
        let seen = self.claims.get(key).and_then(DeviceClaim::allocation);
        seen.or_else(|| self.assumed.get(key).map(|it| &it.0))
    }

    /// The devices that somebody has.
    fn taken(&self) -> BTreeSet<DeviceId> {
        let seen = self.claims.values().filter_map(DeviceClaim::allocation);
        seen.chain(self.assumed.values().map(|it| &it.0)).flat_map(allocated_devices).collect()
    }

    pub(crate) fn assume(&mut self, pod: &Key, given: Vec<(Key, Allocation)>) {
        self.assumed.extend(given.into_iter().map(|(claim, it)| (claim, (it, pod.clone()))));
    }

    /// The pod is not bound with them: what was given here is nobody's again.
    pub(crate) fn forget(&mut self, pod: &Key) {
        self.assumed.retain(|_, it| it.1 != *pod);
    }

    /// What has to be written before the pod is bound.
    pub(crate) fn reservations(&self, pod: &PodInfo) -> Vec<ClaimReservation> {
        let claims = pod.device_claims.iter().filter_map(|it| self.claims.get(&it.key(pod)?));
        claims.filter_map(|claim| self.reservation(pod, claim)).collect()
    }

    fn reservation(&self, pod: &PodInfo, claim: &DeviceClaim) -> Option<ClaimReservation> {
        let key = claim.metadata.key();
        let mut status = json!({});
        let mut finalizers = None;
        if claim.allocation().is_none() {
            status["allocation"] = json!(self.assumed.get(&key)?.0);
            let mut all = claim.metadata.finalizers.clone();
            if !all.iter().any(|it| it == FINALIZER) {
                all.push(FINALIZER.to_owned());
                finalizers = Some(all);
            }
        }
        let users = claim.status.as_ref().and_then(|it| it.reserved_for.clone()).unwrap_or_default();
        if !users.iter().any(|it| it.uid == pod.uid) {
            let mut users = json!(users);
            let own = json!({ "resource": "pods", "name": pod.key.name, "uid": pod.uid });
            users.as_array_mut().expect("made of a list").push(own);
            status["reservedFor"] = users;
        }
        let is_needed = status != json!({});
        is_needed.then(|| ClaimReservation {
            claim: key,
            uid: claim.metadata.uid.clone(),
            resource_version: claim.metadata.resource_version.clone(),
            finalizers,
            status,
        })
    }
}

impl DeviceClaim {
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        self.status.as_ref()?.allocation.as_ref()
    }
}
