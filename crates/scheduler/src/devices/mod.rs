//! What is known of devices and of the claims for them; and what was given here and is not seen yet.

mod extended_claim;
mod objects;
mod pod_devices;
mod readiness;
mod shares;

use std::collections::BTreeMap;

use corten_allocator::{Allocation, Inventory, ResourceClasses, Taken};
use corten_meta::{Key, Resource, Time};
use corten_reconcile::Projection;
use serde_json::{Value, json};

pub(crate) use extended_claim::class_on;
pub use extended_claim::{ExtendedClaimWrite, NewClaim};
pub use objects::{DeviceClaim, DeviceClass, DeviceObject, DeviceSlice, DeviceTaintRule};
pub(crate) use pod_devices::{Conflict, DeviceNode, PodAllocations, PodDevices, TIMED_OUT, refusal};
pub(crate) use readiness::Readiness;

use self::extended_claim::AllocatedClaim;
use crate::{
    PodInfo,
    observer::{Change, Subject},
};

/// Keeps a claim that has devices from being gone before they are given back.
pub const CLAIM_FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Devices {
    inventory: Inventory,
    pub(crate) classes: ResourceClasses,
    claims: BTreeMap<Key, DeviceClaim>,
    /// Claims that were given devices here, and for which pod.
    assumed: BTreeMap<Key, (Allocation, Key)>,
    /// By pod: the claim for its extended resources, which is not seen yet.
    extended: BTreeMap<Key, AllocatedClaim>,
}

/// Takes its devices from a claim, or the pod's place among those that have it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimRelease {
    pub claim: Key,
    /// A merge patch of its `status`, of the claim as it was seen.
    pub patch: Value,
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
    /// Takes an object in, and says of which sort it is and what became of it.
    pub(crate) fn set(&mut self, object: DeviceObject) -> (Subject, Change) {
        let (subject, is_known) = match object {
            DeviceObject::Slice(it) => (Subject::DeviceSlice, self.inventory.set_slice(it.metadata.name, it.spec)),
            DeviceObject::Class(it) => {
                let (meta, spec) = (it.metadata, it.spec.unwrap_or_default());
                self.classes.set(meta.name.clone(), meta.creation_timestamp, spec.extended_resource_name.clone());
                (Subject::DeviceClass, self.inventory.set_class(meta.name, spec))
            }
            DeviceObject::TaintRule(it) => {
                self.inventory.set_taint_rule(it.metadata.name.clone(), it.rule());
                // Its devices have other taints now.
                (Subject::DeviceSlice, true)
            }
            DeviceObject::Claim(it) => {
                let key = it.metadata.key();
                if let Some(allocation) = it.allocation() {
                    self.assumed.remove(&key);
                    self.extended.retain(|_, assumed| {
                        !it.is_for_extended_resources_of(&assumed.pod_uid) || assumed.allocation != *allocation
                    });
                }
                (Subject::DeviceClaim, self.claims.insert(key, it).is_some())
            }
        };
        (subject, if is_known { Change::Update } else { Change::Add })
    }

    /// Of which sort it was, where it was one of these.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &Key) -> Option<Subject> {
        if *resource == DeviceSlice::RESOURCE {
            self.inventory.remove_slice(&key.name);
            Some(Subject::DeviceSlice)
        } else if *resource == DeviceClass::RESOURCE {
            self.classes.remove(&key.name);
            self.inventory.remove_class(&key.name);
            Some(Subject::DeviceClass)
        } else if *resource == DeviceTaintRule::RESOURCE {
            self.inventory.remove_taint_rule(&key.name);
            Some(Subject::DeviceSlice)
        } else if *resource == DeviceClaim::RESOURCE {
            self.claims.remove(key);
            self.assumed.remove(key);
            Some(Subject::DeviceClaim)
        } else {
            None
        }
    }

    pub(crate) fn claim(&self, key: &Key) -> Option<&DeviceClaim> {
        self.claims.get(key)
    }

    /// What the claim has, be it seen or decided here.
    fn allocation_of(&self, key: &Key) -> Option<&Allocation> {
        let seen = self.claims.get(key).and_then(DeviceClaim::allocation);
        seen.or_else(|| self.assumed.get(key).map(|it| &it.0))
    }

    /// What somebody has of the devices.
    fn taken(&self) -> Taken {
        let seen = self.claims.values().filter_map(DeviceClaim::allocation);
        let assumed = self.assumed.values().map(|it| &it.0).chain(self.extended.values().map(|it| &it.allocation));
        let mut taken = Taken::default();
        seen.chain(assumed).for_each(|it| taken.add(it));
        taken
    }

    pub(crate) fn assume(&mut self, pod: &PodInfo, mut given: PodAllocations, now: Time) {
        let uid_of = |claim: &Key| self.claims.get(claim).map_or("", |it| &*it.metadata.uid);
        let own = given.claims.iter_mut().map(|it| (uid_of(&it.0), &mut it.1));
        // The claim for its extended resources has no uid yet.
        let extended = given.extended.iter_mut().map(|it| (&*pod.uid, &mut it.1));
        for (uid, it) in own.chain(extended) {
            it.allocation_timestamp = serde_json::from_value(json!(now)).ok();
            shares::name(it, uid, now, &self.inventory);
        }
        self.assumed.extend(given.claims.into_iter().map(|(claim, it)| (claim, (it, pod.key.clone()))));
        if let Some((claim, allocation)) = given.extended {
            let pod_uid = pod.uid.clone();
            self.extended.insert(pod.key.clone(), AllocatedClaim { claim, allocation, pod_uid });
        }
    }

    /// The pod is not bound with them: what was given here is nobody's again.
    pub(crate) fn forget(&mut self, pod: &Key) {
        self.assumed.retain(|_, it| it.1 != *pod);
        self.extended.remove(pod);
    }

    /// What has to be written before the pod is bound.
    pub(crate) fn reservations(&self, pod: &PodInfo) -> Vec<ClaimReservation> {
        let claims = pod.device_claims.iter().filter_map(|it| self.claims.get(&it.key(pod)?));
        claims.filter_map(|claim| self.reservation(pod, claim)).collect()
    }

    /// What is to be written of the claim for its extended resources.
    pub(crate) fn extended_claim(&self, pod: &PodInfo) -> Option<ExtendedClaimWrite> {
        let made = self.extended.get(&pod.key).map(|it| it.write(pod));
        made.or_else(|| pod.names_extended_claim.then_some(ExtendedClaimWrite::Forget))
    }

    /// Is there the claim for its extended resources, or is it about to be?
    pub(crate) fn has_extended_claim(&self, pod: &PodInfo) -> bool {
        self.extended.contains_key(&pod.key) || self.stale_claim(pod).is_some()
    }

    /// A claim for its extended resources of an earlier try, which came to nothing.
    pub(crate) fn stale_claim(&self, pod: &PodInfo) -> Option<&DeviceClaim> {
        if pod.extended.is_empty() {
            return None;
        }
        let of_namespace = self.claims.range(Key::new(&*pod.key.namespace, "")..);
        let mut of_namespace = of_namespace.take_while(|it| it.0.namespace == pod.key.namespace);
        of_namespace.find(|it| it.1.is_for_extended_resources_of(&pod.uid)).map(|it| it.1)
    }

    /// What is to be taken from claims whose devices did not become ready: as in `PostFilter`, the devices where nobody else has them;
    /// else, as in `Unreserve`, the pod's own reservation, so that the last of several pods gives the devices back.
    pub(crate) fn releases(&self, pod: &PodInfo) -> Vec<ClaimRelease> {
        let claims = pod.device_claims.iter().filter_map(|it| self.claims.get(&it.key(pod)?));
        let unready = claims.filter(|it| it.readiness() != Readiness::Ready);
        let release = |claim: &DeviceClaim| {
            let users = || claim.status.iter().flat_map(|it| it.reserved_for.iter().flatten());
            let others: Vec<_> = users().filter(|it| it.uid != pod.uid).collect();
            let status = match (others.is_empty(), others.len() < users().count()) {
                (true, _) => json!({ "allocation": null, "reservedFor": null, "devices": null }),
                (false, true) => json!({ "reservedFor": others }),
                (false, false) => return None,
            };
            let meta = &claim.metadata;
            let head = json!({ "uid": meta.uid, "resourceVersion": meta.resource_version });
            Some(ClaimRelease { claim: meta.key(), patch: json!({ "metadata": head, "status": status }) })
        };
        unready.filter_map(release).collect()
    }

    fn reservation(&self, pod: &PodInfo, claim: &DeviceClaim) -> Option<ClaimReservation> {
        let key = claim.metadata.key();
        let mut status = json!({});
        let mut finalizers = None;
        if claim.allocation().is_none() {
            status["allocation"] = json!(self.assumed.get(&key)?.0);
            let mut all = claim.metadata.finalizers.clone();
            if !all.iter().any(|it| it == CLAIM_FINALIZER) {
                all.push(CLAIM_FINALIZER.to_owned());
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
