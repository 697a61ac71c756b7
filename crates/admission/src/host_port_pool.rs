//! The ports of nodes that Pods are given: from which range, which of them Pods have, and whose turn it is to choose.

mod taken;

use std::collections::BTreeSet;

use corten_api::host_ports::HostPortRange;
use corten_cacher::watch_cache::Caches;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use self::taken::TakenPorts;

/// Nodes share these by hash. Who shares one waits a little longer, and nothing else.
const N_TURNS: usize = 64;

pub struct HostPortPool {
    pub(crate) range: HostPortRange,
    taken: Mutex<TakenPorts>,
    turns: [Semaphore; N_TURNS],
}

impl HostPortPool {
    pub fn new(range: HostPortRange) -> Self {
        Self { range, taken: Mutex::default(), turns: [const { Semaphore::const_new(1) }; N_TURNS] }
    }

    /// Pods of one node are given ports one after the other.
    pub(crate) async fn turn(&self, node: &str) -> SemaphorePermit<'_> {
        let place = usize::try_from(corten_meta::stable_hash(node.as_bytes()) % N_TURNS as u64);
        let turn = &self.turns[place.expect("less than the number of turns")];
        turn.acquire().await.expect("it is never closed")
    }

    /// Those that Pods of the node have, as far as the caches are.
    pub(crate) fn taken(&self, caches: &Caches, node: &str) -> BTreeSet<u16> {
        self.taken.lock().of(caches, node)
    }
}
