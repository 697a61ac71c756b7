//! Which node acts: the one place where that is decided.
//!
//! Volumes of the built-in driver are their node's. A driver of others is asked by whoever holds its Lease, whichever node a claim is for;
//! where its nodes have places (a zone each, or each its own), by whoever holds the Lease of the place that the claim, the volume or the
//! snapshot is for ([`leases`]). A node stands for the Lease of its own place alone.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::core::v1::{PersistentVolume, PersistentVolumeClaim};

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
}

impl Acting<'_> {
    /// Is it this node?
    pub(crate) fn is(&self, actor: &Actor, driver: &DriverFacts) -> bool {
        match actor {
            Actor::Node(node) => node == self.node,
            Actor::Driver => driver.socket.is_none() || self.leases.contains(&leases::of_driver(&driver.name)),
            Actor::Place(place) => self.leases.contains(&leases::of_place(&driver.name, place)),
        }
    }

    /// Who makes the claim's volume.
    ///
    /// # Errors
    /// Where the selected node is cannot be said.
    pub(crate) fn of_claim(&self, claim: &PersistentVolumeClaim, driver: &DriverFacts) -> Result<Actor, String> {
        match annotation(claim, SELECTED_NODE) {
            Some(node) if driver.socket.is_none() => Ok(Actor::Node(node.to_owned())),
            Some(node) => Ok(of_place(self.place_of_node(node, driver)?)),
            None => Ok(Actor::Driver),
        }
    }

    /// Does it act in its own place?
    pub(crate) fn is_of_place(&self, driver: &DriverFacts) -> bool {
        driver.socket.is_none() || self.is(&of_place(driver.topology.clone()), driver)
    }

    /// Is the volume this node's to remove and to grow?
    pub(crate) fn is_of_volume(&self, volume: &PersistentVolume, driver: &DriverFacts) -> bool {
        let is_here = driver.socket.is_some() && removal::is_placed(volume, driver);
        let actor = if is_here { of_place(driver.topology.clone()) } else { Actor::Driver };
        self.is(&actor, driver) && removal::is_reached(volume, driver, self.node)
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

/// A place for people.
pub(crate) fn shown(place: &Topology) -> String {
    place.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
