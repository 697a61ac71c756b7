//! What nodes have left for Pods that are bound: taken from before it is looked at until the caches show what became of the binding.

mod ledger;

use std::sync::Arc;

use corten_cacher::watch_cache::Caches;
use corten_meta::Status;
use corten_scheduler::{NodeCapacity, PodDemand};
use corten_store::{Revision, Store, Txn};
use parking_lot::Mutex;

use self::ledger::Ledger;
use crate::node_turns::{NodeTurn, NodeTurns};

pub struct NodeRoom {
    ledger: Mutex<Ledger>,
    /// Where others write to the store, too.
    turns: NodeTurns,
}

impl Default for NodeRoom {
    fn default() -> Self {
        Self { ledger: Mutex::default(), turns: NodeTurns::new("/registry/ranges/bindings/") }
    }
}

/// A Pod that is to get its node.
pub(crate) struct UnboundPod {
    /// `namespace/name`.
    pub(crate) key: String,
    pub(crate) demand: Arc<PodDemand>,
    pub(crate) revision: Revision,
}

/// Why a Pod has not got its room.
pub(crate) enum Refusal {
    /// What the node has too little of.
    Short(Vec<String>),
    /// The store did not answer.
    Failed(Box<Status>),
}

impl NodeRoom {
    /// Takes room for the Pod, where the node has it beside all Pods that are there or on their way.
    pub(crate) async fn take<'a>(
        &'a self,
        store: &dyn Store,
        caches: &Caches,
        (node, capacity): (&'a str, &NodeCapacity),
        pod: UnboundPod,
    ) -> Result<Taken<'a>, Refusal> {
        let turn = match store.is_shared() {
            true => Some(self.turns.take(store, caches, node).await.map_err(|it| Refusal::Failed(Box::new(it)))?),
            false => None,
        };
        let (number, others) = self.ledger.lock().note(caches, node, &pod.key, pod.demand.clone());
        let mut taken = Taken { room: self, node, number, before: pod.revision, is_over: false, turn };
        let short = pod.demand.shortages(capacity, others.iter().map(|it| &**it));
        if short.is_empty() {
            return Ok(taken);
        }
        taken.is_over = true;
        Err(Refusal::Short(short))
    }
}

/// Room that is taken.
pub(crate) struct Taken<'a> {
    room: &'a NodeRoom,
    node: &'a str,
    number: u64,
    /// Of the Pod without a node.
    before: Revision,
    is_over: bool,
    /// Dropped after the room is given back.
    turn: Option<NodeTurn<'a>>,
}

impl Taken<'_> {
    pub(crate) fn add_to(&self, txn: &mut Txn) {
        self.turn.iter().for_each(|it| it.add_to(txn));
    }

    /// The caches show what became of the binding.
    pub(crate) fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut ledger = self.room.ledger.lock();
        if self.is_over {
            ledger.end(self.node, self.number);
        } else {
            ledger.doubt(self.node, self.number, self.before);
        }
    }
}
