//! What is known of claims, volumes and what they are made of; and what is decided here and not seen yet.

mod attachments;
mod objects;
mod pod_volumes;
mod waiting_pods;

use std::collections::{BTreeMap, BTreeSet};

use corten_api::volumes::{CsiSource, fits, is_for, is_reachable};
use corten_meta::{Key, Quantity, Resource};
use corten_reconcile::Projection;

pub use objects::{Attachment, Claim, CsiDriver, CsiNode, StorageCapacity, StorageClass, StorageObject, Volume};
pub(crate) use pod_volumes::{ClassUse, Decisions, PodVolumes, refusal};
pub(crate) use waiting_pods::{Progress, WaitingPods};

use crate::{PodInfo, observer::Subject};
use attachments::Attachments;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Storage {
    claims: BTreeMap<Key, Claim>,
    volumes: BTreeMap<String, Volume>,
    /// The volumes that are nobody's, by class.
    free: BTreeMap<String, BTreeSet<String>>,
    /// The volumes that are for a claim.
    of_claims: BTreeMap<Key, BTreeSet<String>>,
    classes: BTreeMap<String, StorageClass>,
    drivers: BTreeMap<String, CsiDriver>,
    /// By node and driver: how many volumes there may be, where there is a limit. Drivers that a node has are all there.
    limits: BTreeMap<String, BTreeMap<String, Option<usize>>>,
    attachments: Attachments,
    capacities: BTreeMap<Key, StorageCapacity>,
    /// Volumes that were given to claims here, and those claims with them.
    assumed_volumes: BTreeSet<String>,
    assumed_claims: BTreeMap<Key, String>,
    /// Claims whose volumes are to be made for a node that was chosen here.
    assumed_nodes: BTreeMap<Key, String>,
}

/// How much capacity a driver tells that it has left for a volume.
enum RemainingCapacity {
    Unknown,
    /// So many bytes are left.
    Bytes(i64),
    None,
}

/// Whom a change may concern.
#[derive(Debug)]
pub(crate) enum Concern {
    Claim(Key),
    Volume {
        name: String,
        class: String,
        claim: Option<Key>,
    },
    /// All whose volumes of this class are not there yet.
    Class(String),
    /// All that have claims.
    Any,
    /// It takes room alone.
    None,
}

impl Storage {
    /// Of which sort an object is, and whether an earlier state of it is known.
    pub(crate) fn knows(&self, object: &StorageObject) -> (Subject, bool) {
        match object {
            StorageObject::Claim(it) => (Subject::Claim, self.claims.contains_key(&it.metadata.key())),
            StorageObject::Volume(it) => (Subject::Volume, self.volumes.contains_key(&it.metadata.name)),
            StorageObject::Class(it) => (Subject::StorageClass, self.classes.contains_key(&it.metadata.name)),
            StorageObject::Driver(it) => (Subject::CsiDriver, self.drivers.contains_key(&it.metadata.name)),
            StorageObject::Node(it) => (Subject::CsiNode, self.limits.contains_key(&it.metadata.name)),
            StorageObject::Capacity(it) => (Subject::StorageCapacity, self.capacities.contains_key(&it.metadata.key())),
            StorageObject::Attachment(it) => (Subject::Attachment, self.attachments.knows(&it.metadata.name)),
            StorageObject::Device(_) => (Subject::DeviceClaim, false),
        }
    }

    pub(crate) fn subject_of(resource: &Resource) -> Subject {
        let subjects = [
            (Claim::RESOURCE, Subject::Claim),
            (Volume::RESOURCE, Subject::Volume),
            (StorageClass::RESOURCE, Subject::StorageClass),
            (CsiDriver::RESOURCE, Subject::CsiDriver),
            (CsiNode::RESOURCE, Subject::CsiNode),
            (Attachment::RESOURCE, Subject::Attachment),
        ];
        subjects.into_iter().find(|it| it.0 == *resource).map_or(Subject::StorageCapacity, |it| it.1)
    }

    /// Takes an object in, and says whom that may concern.
    pub(crate) fn set(&mut self, object: StorageObject) -> Concern {
        match object {
            StorageObject::Claim(claim) => {
                let key = claim.metadata.key();
                self.claims.insert(key.clone(), claim);
                Concern::Claim(key)
            }
            StorageObject::Volume(volume) => {
                let name = volume.metadata.name.clone();
                self.drop_volume(&name);
                let concern = concern_of(&volume);
                match volume.claim() {
                    Some(claim) => self.of_claims.entry(claim).or_default().insert(name.clone()),
                    None => self.free.entry(volume.class().to_owned()).or_default().insert(name.clone()),
                };
                self.volumes.insert(name, volume);
                concern
            }
            // Those are taken in elsewhere, before.
            StorageObject::Device(_) => Concern::Any,
            StorageObject::Class(class) => {
                let name = class.metadata.name.clone();
                self.classes.insert(name.clone(), class);
                Concern::Class(name)
            }
            StorageObject::Driver(driver) => {
                self.drivers.insert(driver.metadata.name.clone(), driver);
                Concern::Any
            }
            StorageObject::Node(node) => {
                let count = |it: i64| usize::try_from(it).unwrap_or(0);
                let limit = |it: objects::NodeDriver| (it.name, it.allocatable.and_then(|it| it.count).map(count));
                let limits = node.spec.drivers.into_iter().map(limit).collect();
                self.limits.insert(node.metadata.name, limits);
                Concern::Any
            }
            StorageObject::Capacity(capacity) => {
                let class = capacity.storage_class_name.clone();
                self.capacities.insert(capacity.metadata.key(), capacity);
                Concern::Class(class)
            }
            StorageObject::Attachment(attachment) => {
                self.attachments.set(attachment);
                Concern::None
            }
        }
    }

    /// Forgets an object, and says whom that may concern.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &Key) -> Concern {
        if *resource == Claim::RESOURCE {
            self.claims.remove(key);
            return Concern::Claim(key.clone());
        }
        if *resource == Volume::RESOURCE {
            return self.drop_volume(&key.name).map_or(Concern::Any, |it| concern_of(&it));
        }
        if *resource == StorageClass::RESOURCE {
            self.classes.remove(&key.name);
        } else if *resource == CsiDriver::RESOURCE {
            self.drivers.remove(&key.name);
        } else if *resource == CsiNode::RESOURCE {
            self.limits.remove(&key.name);
        } else if *resource == StorageCapacity::RESOURCE {
            self.capacities.remove(key);
        } else if *resource == Attachment::RESOURCE {
            self.attachments.remove(&key.name);
        }
        Concern::Any
    }

    fn drop_volume(&mut self, name: &str) -> Option<Volume> {
        let old = self.volumes.remove(name)?;
        match old.claim() {
            Some(claim) => forget(&mut self.of_claims, &claim, name),
            None => forget(&mut self.free, &old.class().to_owned(), name),
        }
        Some(old)
    }

    pub(crate) fn claim(&self, key: &Key) -> Option<&Claim> {
        self.claims.get(key)
    }

    pub(crate) fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.get(name)
    }

    fn class(&self, name: &str) -> Option<&StorageClass> {
        self.classes.get(name)
    }

    /// The drivers that a node has, and how many volumes of each it takes, where there is a limit.
    pub(crate) fn limits(&self, node: &str) -> Option<&BTreeMap<String, Option<usize>>> {
        self.limits.get(node)
    }

    /// Are the driver's volumes kept from nodes that do not have it?
    pub(crate) fn is_needed_on_node(&self, driver: &str) -> bool {
        self.drivers.get(driver).is_some_and(|it| it.spec.prevent_pod_scheduling_if_missing == Some(true))
    }

    /// The volumes of drivers that are attached to a node, or are about to be or to leave it.
    pub(crate) fn attached(&self, node: &str) -> impl Iterator<Item = &CsiSource> {
        self.attachments.on(node).filter_map(move |it| self.volumes.get(it)?.spec.csi.as_ref())
    }

    pub(crate) fn provisioner(&self, claim: &Claim) -> Option<&str> {
        self.class(claim.class()).map(|it| &*it.fields.provisioner)
    }

    fn waits_for_consumer(&self, claim: &Claim) -> bool {
        self.class(claim.class()).is_some_and(|it| it.fields.waits_for_consumer())
    }

    /// The node that a claim's volume is to be made for, be it only here.
    fn node_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a str> {
        claim.selected_node().or_else(|| self.assumed_nodes.get(&claim.metadata.key()).map(String::as_str))
    }

    /// A volume for a claim on a node with these labels, which none of `taken` is (`FindMatchingVolume`).
    fn matching(&self, claim: &Claim, labels: &BTreeMap<String, String>, taken: &[(String, Key)]) -> Option<&Volume> {
        let key = claim.metadata.key();
        let suits = |it: &&Volume| fits(&claim.spec, &it.metadata, &it.spec);
        let assumed = self.assumed_claims.get(&key);
        let own = self.of_claims.get(&key).into_iter().flatten().chain(assumed).filter_map(|it| self.volumes.get(it));
        let is_own = |it: &&Volume| it.spec.claim_ref.is_none() || is_for(&it.spec, &claim.metadata);
        if let Some(own) = own.filter(is_own).find(suits) {
            // One that is reserved for it and is elsewhere leaves it none here.
            return Some(own).filter(|it| is_reachable(&it.spec, labels));
        }
        let free = self
            .free
            .get(claim.class())
            .into_iter()
            .flatten()
            .filter(|name| !self.assumed_volumes.contains(*name) && !taken.iter().any(|it| it.0 == **name));
        free.filter_map(|it| self.volumes.get(it))
            .filter(|it| it.status.phase == "Available" && suits(it) && is_reachable(&it.spec, labels))
            .min_by_key(|it| it.spec.capacity.storage)
    }

    /// What capacity is left for the claim's volume on a node with these labels, as far as the driver tells? (`hasEnoughCapacity`)
    fn remaining_capacity(
        &self,
        claim: &Claim,
        class: &StorageClass,
        labels: &BTreeMap<String, String>,
    ) -> RemainingCapacity {
        let Some(size) = claim.spec.resources.requests.storage else { return RemainingCapacity::Unknown };
        let driver = self.drivers.get(&class.fields.provisioner);
        if driver.and_then(|it| it.spec.storage_capacity) != Some(true) {
            return RemainingCapacity::Unknown;
        }
        let of_class = self.capacities.values().filter(|it| it.storage_class_name == class.metadata.name);
        let mut enough = of_class.filter(|it| {
            let largest = it.maximum_volume_size.or(it.capacity);
            largest.is_some_and(|it| it >= size) && it.node_topology.as_ref().is_some_and(|it| it.matches(labels))
        });
        enough
            .next()
            .map_or(RemainingCapacity::None, |it| RemainingCapacity::Bytes(it.capacity.map_or(0, Quantity::value)))
    }

    pub(crate) fn assume(&mut self, decisions: &Decisions, node: &str) {
        for (volume, claim) in &decisions.volumes {
            self.assumed_volumes.insert(volume.clone());
            self.assumed_claims.insert(claim.clone(), volume.clone());
        }
        self.assumed_nodes.extend(decisions.to_be_made.iter().map(|it| (it.clone(), node.to_owned())));
    }

    /// What was assumed for these claims is seen, or given up.
    pub(crate) fn forget_assumed<'a>(&mut self, claims: impl Iterator<Item = &'a Key>) {
        for claim in claims {
            self.assumed_nodes.remove(claim);
            if let Some(volume) = self.assumed_claims.remove(claim) {
                self.assumed_volumes.remove(&volume);
            }
        }
    }

    /// May a change of this sort help a pod?
    pub(crate) fn may_help(&self, concern: &Concern, pod: &PodInfo) -> bool {
        let mut claims = pod.claim_keys();
        match concern {
            Concern::Any => claims.next().is_some(),
            Concern::None => false,
            Concern::Claim(key) => claims.any(|it| it == *key),
            Concern::Class(class) => {
                claims.any(|it| self.claim(&it).is_some_and(|it| !it.is_bound() && it.class() == class))
            }
            Concern::Volume { name, class, claim } => claims.any(|key| {
                let is_helped = |it: &Claim| it.spec.volume_name == *name || (!it.is_bound() && it.class() == class);
                claim.as_ref() == Some(&key) || self.claim(&key).is_some_and(is_helped)
            }),
        }
    }
}

fn concern_of(volume: &Volume) -> Concern {
    Concern::Volume { name: volume.metadata.name.clone(), class: volume.class().to_owned(), claim: volume.claim() }
}

fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<String>>, of: &K, name: &str) {
    if let Some(names) = index.get_mut(of) {
        names.remove(name);
        if names.is_empty() {
            index.remove(of);
        }
    }
}
