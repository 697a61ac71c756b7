//! What the loops of many nodes know together, where one process acts for a driver on all of them; and which nodes a change affects.
//!
//! A loop that a change does not concern is told of it all the same, before it decides the next time: claims begin with what is on other
//! nodes, and what was one node's becomes another's. [`AffectedNodes`] says only who has something to decide now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    snapshots::{CONTENT_MANAGED_BY, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent},
    storage::v1::{StorageClass, VolumeAttachment, VolumeAttributesClass},
};
use corten_meta::Key;

use crate::{
    CsiDriverSettings, attaching,
    provision::{SELECTED_NODE, annotation, provisioner_of, waits_for_consumer},
    sources,
    words::{DriverPod, Event, Topology},
};

/// The one label that says where a volume of the driver is.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The nodes that a change affects: they have something to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffectedNodes {
    All,
    Nodes(BTreeSet<String>),
}

impl AffectedNodes {
    fn none() -> Self {
        Self::Nodes(BTreeSet::new())
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nodes(nodes), Self::Nodes(others)) => Self::Nodes(nodes.into_iter().chain(others).collect()),
            _ => Self::All,
        }
    }

    pub fn is(&self, node: &str) -> bool {
        match self {
            Self::All => true,
            Self::Nodes(nodes) => nodes.contains(node),
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Known {
    driver: &'static str,
    claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    volumes: BTreeMap<String, Arc<PersistentVolume>>,
    classes: BTreeMap<String, Arc<StorageClass>>,
    attributes_classes: BTreeMap<String, Arc<VolumeAttributesClass>>,
    attachments: BTreeMap<String, Arc<VolumeAttachment>>,
    snapshots: BTreeMap<Key, Arc<VolumeSnapshot>>,
    contents: BTreeMap<String, Arc<VolumeSnapshotContent>>,
    snapshot_classes: BTreeMap<String, Arc<VolumeSnapshotClass>>,
    csi_drivers: BTreeMap<String, CsiDriverSettings>,
    is_synced: bool,
    are_snapshots_synced: bool,
    pods: BTreeMap<Key, DriverPod>,
    nodes: BTreeMap<String, Topology>,
    are_pods_synced: bool,
    are_nodes_synced: bool,
}

impl Known {
    /// Of nodes that have this driver: whom a change concerns for its sake. Of drivers of others everything concerns whoever asks them.
    pub fn new(driver: &'static str) -> Self {
        Self {
            driver,
            claims: BTreeMap::new(),
            volumes: BTreeMap::new(),
            classes: BTreeMap::new(),
            attributes_classes: BTreeMap::new(),
            attachments: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            contents: BTreeMap::new(),
            snapshot_classes: BTreeMap::new(),
            csi_drivers: BTreeMap::new(),
            is_synced: false,
            are_snapshots_synced: false,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            are_pods_synced: false,
            are_nodes_synced: false,
        }
    }

    /// Takes a change of an object in. What is no object's concerns everybody.
    pub fn take(&mut self, event: &Event) -> AffectedNodes {
        match event {
            Event::Claim(claim) => {
                let affected = self.of_claim(claim);
                self.claims.insert(key_of(claim), claim.clone());
                affected
            }
            // Its volume is looked at when that says so.
            Event::ClaimGone(key) => {
                self.claims.remove(key);
                AffectedNodes::none()
            }
            Event::Volume(volume) => {
                let affected = self.of_volume(volume);
                self.volumes.insert(volume.metadata.name.clone().unwrap_or_default(), volume.clone());
                // The claim may name it already.
                affected.or(self.of_claim_of(volume))
            }
            Event::VolumeGone(name) => match self.volumes.remove(name) {
                Some(volume) => self.of_volume(&volume).or(self.of_claim_of(&volume)),
                None => AffectedNodes::none(),
            },
            Event::Attachment(it) => {
                let name = it.metadata.name.clone().unwrap_or_default();
                self.attachments.insert(name, it.clone());
                self.of_volume_named(attaching::volume_of(it))
            }
            Event::AttachmentGone(name) => match self.attachments.remove(name) {
                Some(it) => self.of_volume_named(attaching::volume_of(&it)),
                None => AffectedNodes::none(),
            },
            Event::Snapshot(it) => {
                let key = it.metadata.key();
                self.snapshots.insert(key.clone(), it.clone());
                self.of_those_made_of(&key)
            }
            Event::SnapshotGone(key) => {
                self.snapshots.remove(key);
                AffectedNodes::none()
            }
            Event::Content(it) => {
                self.contents.insert(it.metadata.name.clone(), it.clone());
                self.of_content(it)
            }
            Event::ContentGone(name) => {
                self.contents.remove(name);
                AffectedNodes::none()
            }
            other if other.is_of_pods_or_nodes() => {
                self.take_of_drivers(other);
                AffectedNodes::none()
            }
            other => self.take_class(other),
        }
    }

    fn take_of_drivers(&mut self, event: &Event) {
        match event {
            Event::Pod(key, pod) => _ = self.pods.insert(key.clone(), pod.clone()),
            Event::PodGone(key) => _ = self.pods.remove(key),
            Event::PodsSynced => self.are_pods_synced = true,
            Event::Node(name, labels) => _ = self.nodes.insert(name.clone(), labels.clone()),
            Event::NodeGone(name) => _ = self.nodes.remove(name),
            Event::NodesSynced => self.are_nodes_synced = true,
            _ => {}
        }
    }

    /// All that is known of Pods and nodes, for a loop that begins to ask drivers of others.
    pub fn told_of_drivers(&self) -> Vec<Event> {
        let pods = self.pods.iter().map(|(key, pod)| Event::Pod(key.clone(), pod.clone()));
        let nodes = self.nodes.iter().map(|(name, labels)| Event::Node(name.clone(), labels.clone()));
        let mut told: Vec<Event> = pods.chain(nodes).collect();
        told.extend(self.are_pods_synced.then_some(Event::PodsSynced));
        told.extend(self.are_nodes_synced.then_some(Event::NodesSynced));
        told
    }

    fn take_class(&mut self, event: &Event) -> AffectedNodes {
        let is_ours = match event {
            Event::Class(it) => {
                self.classes.insert(it.metadata.name.clone().unwrap_or_default(), it.clone());
                it.provisioner == self.driver
            }
            Event::ClassGone(name) => self.classes.remove(name).is_some_and(|it| it.provisioner == self.driver),
            Event::AttributesClass(it) => {
                self.attributes_classes.insert(it.metadata.name.clone().unwrap_or_default(), it.clone());
                it.driver_name == self.driver
            }
            Event::AttributesClassGone(name) => {
                self.attributes_classes.remove(name);
                false
            }
            Event::SnapshotClass(it) => {
                self.snapshot_classes.insert(it.metadata.name.clone(), it.clone());
                it.driver == self.driver
            }
            Event::SnapshotClassGone(name) => {
                self.snapshot_classes.remove(name);
                false
            }
            Event::CsiDriver(name, settings) => {
                self.csi_drivers.insert(name.clone(), settings.clone());
                false
            }
            Event::CsiDriverGone(name) => {
                self.csi_drivers.remove(name);
                false
            }
            Event::Synced => {
                self.is_synced = true;
                true
            }
            Event::SnapshotsSynced => {
                self.are_snapshots_synced = true;
                true
            }
            _ => true,
        };
        if is_ours { AffectedNodes::All } else { AffectedNodes::none() }
    }

    /// All that is known now, for a loop that begins.
    pub fn told(&self) -> Vec<Event> {
        let mut told: Vec<Event> = self.classes.values().cloned().map(Event::Class).collect();
        told.extend(self.attributes_classes.values().cloned().map(Event::AttributesClass));
        told.extend(self.attachments.values().cloned().map(Event::Attachment));
        told.extend(self.volumes.values().cloned().map(Event::Volume));
        told.extend(self.claims.values().cloned().map(Event::Claim));
        told.extend(self.csi_drivers.iter().map(|(name, it)| Event::CsiDriver(name.clone(), it.clone())));
        told.extend(self.is_synced.then_some(Event::Synced));
        told.extend(self.snapshot_classes.values().cloned().map(Event::SnapshotClass));
        told.extend(self.contents.values().cloned().map(Event::Content));
        told.extend(self.snapshots.values().cloned().map(Event::Snapshot));
        told.extend(self.are_snapshots_synced.then_some(Event::SnapshotsSynced));
        told
    }

    /// One that has a volume is for the node which has that, to grow it; one that has none for the node that is to make it.
    fn of_claim(&self, claim: &PersistentVolumeClaim) -> AffectedNodes {
        let spec = claim.spec.as_ref();
        if let Some(volume) = spec.and_then(|it| it.volume_name.as_deref()).filter(|it| !it.is_empty()) {
            return self.of_volume_named(Some(volume));
        }
        if provisioner_of(claim) != Some(self.driver) {
            return AffectedNodes::none();
        }
        if let Some(node) = annotation(claim, SELECTED_NODE) {
            return AffectedNodes::Nodes([node.to_owned()].into());
        }
        let class = spec.and_then(|it| self.classes.get(it.storage_class_name.as_deref()?));
        match class {
            // The scheduler selects a node first.
            Some(class) if waits_for_consumer(class) => AffectedNodes::none(),
            _ => AffectedNodes::All,
        }
    }

    fn of_claim_of(&self, volume: &PersistentVolume) -> AffectedNodes {
        let of = volume.spec.as_ref().and_then(|it| it.claim_ref.as_ref());
        let key = of.and_then(|it| Some(Key::new(it.namespace.clone()?, it.name.clone()?)));
        let claim = key.and_then(|it| self.claims.get(&it));
        claim.map_or_else(AffectedNodes::none, |it| self.of_claim(it))
    }

    /// The nodes that reach it.
    fn of_volume(&self, volume: &PersistentVolume) -> AffectedNodes {
        let spec = volume.spec.as_ref();
        if spec.and_then(|it| it.csi.as_ref()).is_none_or(|it| it.driver != self.driver) {
            return AffectedNodes::none();
        }
        let Some(required) = spec.and_then(|it| it.node_affinity.as_ref()?.required.as_ref()) else {
            return AffectedNodes::All;
        };
        let mut nodes = BTreeSet::new();
        for term in &required.node_selector_terms {
            let mut expressions = term.match_expressions.iter().flatten();
            match expressions.find(|it| it.key == HOSTNAME && it.operator == "In") {
                Some(it) => nodes.extend(it.values.iter().flatten().cloned()),
                None => return AffectedNodes::All,
            }
        }
        AffectedNodes::Nodes(nodes)
    }

    fn of_volume_named(&self, name: Option<&str>) -> AffectedNodes {
        name.and_then(|it| self.volumes.get(it)).map_or_else(AffectedNodes::none, |it| self.of_volume(it))
    }

    fn of_content(&self, content: &VolumeSnapshotContent) -> AffectedNodes {
        let of = &content.spec.volume_snapshot_ref;
        let made = self.of_those_made_of(&Key::new(&*of.namespace, &*of.name));
        if content.spec.driver != self.driver {
            return made;
        }
        match content.metadata.labels.get(CONTENT_MANAGED_BY) {
            Some(node) => made.or(AffectedNodes::Nodes([node.clone()].into())),
            None => AffectedNodes::All,
        }
    }

    /// The claims that are to begin with this snapshot.
    fn of_those_made_of(&self, snapshot: &Key) -> AffectedNodes {
        let claims = self.claims.values().filter(|it| sources::is_of(it, "VolumeSnapshot", snapshot));
        claims.fold(AffectedNodes::none(), |affected, it| affected.or(self.of_claim(it)))
    }
}

fn key_of(claim: &PersistentVolumeClaim) -> Key {
    let of = |it: &Option<String>| it.clone().unwrap_or_default();
    Key::new(of(&claim.metadata.namespace), of(&claim.metadata.name))
}

#[cfg(test)]
mod tests;
