//! Which ports of each node its Pods have.

use std::collections::{BTreeMap, BTreeSet};

use corten_cacher::{
    by_node::PodsByNode,
    watch_cache::{Caches, Stored},
};
use corten_kinds::host_ports;

const HOST_PORT: &[u8] = br#""hostPort""#;

pub(super) struct TakenPorts(PodsByNode<BTreeSet<u16>>);

impl Default for TakenPorts {
    fn default() -> Self {
        Self(PodsByNode::new(ports))
    }
}

impl TakenPorts {
    /// As the caches have it.
    pub(super) fn of(&mut self, caches: &Caches, node: &str) -> BTreeSet<u16> {
        self.0.catch_up(caches);
        self.0.of(node).into_iter().flat_map(BTreeMap::values).flatten().copied().collect()
    }
}

fn ports(pod: &Stored) -> Option<(String, BTreeSet<u16>)> {
    // Most Pods have no such port, and are not read.
    memchr::memmem::find(pod.value(), HOST_PORT)?;
    let object = pod.parse();
    let ports = Some(host_ports::taken_by(&object)).filter(|it| !it.is_empty())?;
    Some((object["spec"]["nodeName"].as_str()?.to_owned(), ports))
}
