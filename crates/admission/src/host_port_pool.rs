//! The ports of nodes that Pods are given: from which range, which of them Pods have, and whose turn it is to choose.

mod taken;

use std::collections::BTreeSet;

use corten_api::host_ports::HostPortRange;
use corten_cacher::watch_cache::Caches;
use parking_lot::Mutex;

use self::taken::TakenPorts;
use crate::node_turns::NodeTurns;

pub struct HostPortPool {
    pub(crate) range: HostPortRange,
    /// Pods of one node are given ports one after the other.
    pub(crate) turns: NodeTurns,
    taken: Mutex<TakenPorts>,
}

impl HostPortPool {
    pub fn new(range: HostPortRange) -> Self {
        Self { range, turns: NodeTurns::new("/registry/ranges/hostports/"), taken: Mutex::default() }
    }

    /// Those that Pods of the node have, as far as the caches are.
    pub(crate) fn taken(&self, caches: &Caches, node: &str) -> BTreeSet<u16> {
        self.taken.lock().of(caches, node)
    }
}
