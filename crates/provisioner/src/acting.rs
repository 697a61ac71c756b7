//! Which node acts: the one place where that is decided.
//!
//! Volumes of the built-in driver are their node's. A driver of others is asked by whoever holds its Lease, whichever node a claim is for;
//! where its nodes have places (a zone each, or each its own), by whoever holds the Lease of the place that the claim, the volume or the
//! snapshot is for ([`leases`]). A node stands for the Lease of its own place alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    snapshots::{CONTENT_MANAGED_BY, CONTENT_TOPOLOGY, VolumeSnapshotContent},
};

use crate::{
    leases,
    provision::{SELECTED_NODE, annotation},
    removal,
    words::{DriverFacts, Topology},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Of the built-in driver.
    Node(String),
    /// Whoever holds the Lease of the driver; of the built-in one each node.
    Driver,
    /// Whoever holds the Lease of this place.
    Place(Topology),
}

/// What a node knows of who acts.
#[derive(Clone, Copy)]
pub(crate) struct Acting<'p> {
    pub(crate) node: &'p str,
    /// Those that it holds.
    pub(crate) leases: &'p BTreeSet<String>,
    /// The labels of all nodes.
    pub(crate) nodes: &'p BTreeMap<String, Topology>,
    pub(crate) volumes: &'p BTreeMap<String, Arc<PersistentVolume>>,
}

impl Acting<'_> {
    /// Is it this node?
    pub(crate) fn is(&self, actor: &Actor, driver: &DriverFacts) -> bool {
        match actor {
            Actor::Node(node) => node == self.node,
            Actor::Driver => driver.is_built_in() || self.leases.contains(&leases::of_driver(&driver.name)),
            Actor::Place(place) => self.leases.contains(&leases::of_place(&driver.name, place)),
        }
    }

    /// Who makes the claim's volume: for no selected node, where `source` is that it begins with.
    ///
    /// # Errors
    /// Where the selected node is cannot be said.
    pub(crate) fn of_claim(
        &self,
        claim: &PersistentVolumeClaim,
        source: Option<Topology>,
        driver: &DriverFacts,
    ) -> Result<Actor, String> {
        match annotation(claim, SELECTED_NODE) {
            Some(node) if driver.is_built_in() => Ok(Actor::Node(node.to_owned())),
            Some(node) => Ok(of_place(self.place_of_node(node, driver)?)),
            None => Ok(source.map_or(Actor::Driver, of_place)),
        }
    }

    /// Who takes the snapshot, and who removes it.
    pub(crate) fn of_content(&self, content: &VolumeSnapshotContent, driver: &DriverFacts) -> Actor {
        match content.metadata.labels.get(CONTENT_MANAGED_BY) {
            Some(node) if driver.is_built_in() => Actor::Node(node.clone()),
            _ => self.place_of_content(content, driver).map_or(Actor::Driver, of_place),
        }
    }

    /// Is the volume this node's to remove and to grow?
    pub(crate) fn is_of_volume(&self, volume: &PersistentVolume, driver: &DriverFacts) -> bool {
        let is_here = !driver.is_built_in() && removal::is_placed(volume, driver);
        let actor = if is_here { of_place(driver.topology.clone()) } else { Actor::Driver };
        self.is(&actor, driver) && removal::is_reached(volume, driver, self.node)
    }

    /// Where the snapshot is; `None`: every node reaches it, as far as is known. The label is looked at last: it names a node where each
    /// has a driver of its own.
    pub(crate) fn place_of_content(&self, content: &VolumeSnapshotContent, driver: &DriverFacts) -> Option<Topology> {
        let meta = &content.metadata;
        let said = || {
            let labels: Topology = serde_json::from_str(meta.annotations.get(CONTENT_TOPOLOGY)?).ok()?;
            by_keys(&labels, driver)
        };
        let of_volume = || {
            let handle = content.spec.source.volume_handle.as_ref()?;
            let is_it = |it: &&Arc<PersistentVolume>| {
                let csi = it.spec.as_ref().and_then(|it| it.csi.as_ref());
                csi.is_some_and(|it| it.driver == driver.name && it.volume_handle == *handle)
            };
            self.place_of_volume(self.volumes.values().find(is_it)?, driver)
        };
        let of_node = || self.place_of_node(meta.labels.get(CONTENT_MANAGED_BY)?, driver).ok();
        let is_placed = !driver.is_built_in() && !driver.topology.is_empty();
        is_placed.then(|| said().or_else(of_volume).or_else(of_node)).flatten()
    }

    /// The first place that reaches the volume; `None`: every node does. All nodes are to say the same of it.
    pub(crate) fn place_of_volume(&self, volume: &PersistentVolume, driver: &DriverFacts) -> Option<Topology> {
        if driver.is_built_in() || !removal::is_placed(volume, driver) {
            return None;
        }
        let expressions = removal::terms(volume).first()?.match_expressions.iter().flatten();
        let labels = expressions.filter(|it| it.operator == "In");
        let labels = labels.filter_map(|it| Some((it.key.clone(), it.values.as_ref()?.first()?.clone())));
        let reaching = || {
            let mut places = self.nodes.keys().filter_map(|it| self.place_of_node(it, driver).ok());
            places.find(|place| {
                let there = DriverFacts { topology: place.clone(), ..driver.clone() };
                removal::is_reached(volume, &there, "")
            })
        };
        by_keys(&labels.collect(), driver).or_else(reaching)
    }

    /// Where the node is, by the keys of the driver.
    ///
    /// # Errors
    /// It lacks labels, as while the driver is not registered there yet.
    pub(crate) fn place_of_node(&self, node: &str, driver: &DriverFacts) -> Result<Topology, String> {
        if node == self.node || driver.topology.is_empty() {
            return Ok(driver.topology.clone());
        }
        let labels = self.nodes.get(node).ok_or_else(|| format!("node {node:?} not found"))?;
        let label = |key: &String| {
            let missing = || format!("node {node} has no label {key}, by which {} says where it is", driver.name);
            labels.get(key).map(|it| (key.clone(), it.clone())).ok_or_else(missing)
        };
        driver.topology.keys().map(label).collect()
    }
}

fn of_place(place: Topology) -> Actor {
    if place.is_empty() { Actor::Driver } else { Actor::Place(place) }
}

/// The labels that say where something of the driver's is, where all of them do.
fn by_keys(labels: &Topology, driver: &DriverFacts) -> Option<Topology> {
    driver.topology.keys().map(|key| Some((key.clone(), labels.get(key)?.clone()))).collect()
}

/// A place for people.
pub(crate) fn shown(place: &Topology) -> String {
    place.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
