//! A binding to a node that has no room for the Pod is refused: several schedulers beside each other overcommit no node, however late
//! each sees what the others do (optimistic binding, as in Omega).
//!
//! Only bindings are looked at. Whoever writes `nodeName` into a new Pod has chosen, and the kubelet decides.

mod ledger;

use std::sync::Arc;

use corten_api::{
    resources::{NODES, PODS},
    scheduling::NODE_HAS_NO_ROOM,
};
use corten_cacher::{
    body::BoxFuture,
    watch_cache::{Caches, key_of},
};
use corten_kinds::Subresource;
use corten_meta::{Cause, Status};
use corten_scheduler::{NodeCapacity, PodDemand};
use corten_store::{Error, Revision, Store, Txn};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use self::ledger::Ledger;
use crate::{
    commit_hook::{CommitHook, Write, WritePart},
    node_turns::{NodeTurn, NodeTurns},
};

/// More of what is short is not told.
const TOLD_MAX: usize = 8;

/// What nodes have left.
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

/// Refuses bindings for which their node has no room.
pub(crate) struct BindingRoom;

impl CommitHook for BindingRoom {
    fn concerns(&self, write: &Write<'_>) -> bool {
        let request = write.request;
        request.subresource == Some(Subresource::Binding) && request.kind.resource == PODS
    }

    fn begin<'a>(&'a self, write: &'a Write<'a>) -> BoxFuture<'a, Option<Box<dyn WritePart + 'a>>> {
        Box::pin(async {
            let (request, pod) = (write.request, write.new?);
            let node = pod["spec"]["nodeName"].as_str()?;
            // As upstream, a Pod may be bound to a node that nobody knows.
            let found = request.cluster.cache_of(&NODES).get("", node)?;
            let capacity = found.projection::<NodeCapacity>();
            if capacity.says_nothing() {
                return None;
            }
            let pod = BoundPod {
                key: key_of(request.namespace, request.name),
                name: request.name,
                demand: Arc::new(PodDemand::deserialize(pod).unwrap_or_default()),
                revision: request.old.map_or(0, revision),
            };
            let begun = request.cluster.node_room.take(write.store, request.cluster.caches(), node, &capacity, pod);
            Some(Box::new(Taking(begun.await)) as Box<dyn WritePart>)
        })
    }
}

/// A Pod that is to get its node.
struct BoundPod<'a> {
    key: String,
    name: &'a str,
    demand: Arc<PodDemand>,
    /// Without a node.
    revision: Revision,
}

impl NodeRoom {
    /// Takes room for the Pod.
    ///
    /// # Errors
    /// 409 where there is none.
    async fn take<'a>(
        &'a self,
        store: &dyn Store,
        caches: &Caches,
        node: &'a str,
        capacity: &NodeCapacity,
        pod: BoundPod<'_>,
    ) -> Result<Taken<'a>, Status> {
        let turn = if store.is_shared() { Some(self.turns.take(store, caches, node).await?) } else { None };
        let (number, others) = self.ledger.lock().note(caches, node, &pod.key, pod.demand.clone());
        let mut taken = Taken { room: self, node, number, before: pod.revision, is_over: false, turn };
        let short = pod.demand.shortages(capacity, others.iter().map(|it| &**it));
        if short.is_empty() {
            return Ok(taken);
        }
        taken.is_over = true;
        Err(refusal(node, pod.name, short))
    }
}

/// Room that is taken until the caches show the Pod there, or that it does not come.
struct Taken<'a> {
    room: &'a NodeRoom,
    node: &'a str,
    number: u64,
    before: Revision,
    is_over: bool,
    /// Dropped after the room is given back.
    turn: Option<NodeTurn<'a>>,
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

struct Taking<'a>(Result<Taken<'a>, Status>);

impl Taking<'_> {
    fn end(&mut self) {
        if let Ok(taken) = &mut self.0 {
            taken.is_over = true;
        }
    }
}

impl WritePart for Taking<'_> {
    fn add_to(&self, txn: &mut Txn) -> Result<(), Status> {
        let taken = self.0.as_ref().map_err(Clone::clone)?;
        taken.turn.iter().for_each(|it| it.add_to(txn));
        Ok(())
    }

    fn committed(mut self: Box<Self>) {
        self.end();
    }

    fn refused<'s>(mut self: Box<Self>, _: &'s dyn Store) -> BoxFuture<'s, Result<(), Error>>
    where
        Self: 's,
    {
        self.end();
        Box::pin(async { Ok(()) })
    }
}

fn refusal(node: &str, pod: &str, mut short: Vec<String>) -> Status {
    let n_untold = short.len().saturating_sub(TOLD_MAX);
    short.truncate(TOLD_MAX);
    if n_untold > 0 {
        short.push(format!("and {n_untold} more"));
    }
    let detail = format!("node {node} has no room for pod {pod}: {}", short.join(", "));
    let mut status = Status::conflict(&PODS, pod, &detail);
    let cause = Cause { reason: NODE_HAS_NO_ROOM.into(), message: detail, field: "target.name".into() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

fn revision(object: &Value) -> Revision {
    object["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).unwrap_or_default()
}
