//! A binding to a node that has no room for the Pod is refused: several schedulers beside each other overcommit no node, however late
//! each sees what the others do (optimistic binding, as in Omega).
//!
//! Only bindings are looked at. Whoever writes `nodeName` into a new Pod has chosen, and the kubelet decides.

use std::sync::Arc;

use corten_api::{
    resources::{NODES, PODS},
    scheduling::NODE_HAS_NO_ROOM,
};
use corten_cacher::{body::BoxFuture, watch_cache::key_of};
use corten_kinds::Subresource;
use corten_meta::{Cause, Status};
use corten_scheduler::{NodeCapacity, PodDemand};
use corten_store::{Error, Revision, Store, Txn};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    commit_hook::{CommitHook, Write, WritePart},
    node_room::{Refusal, Taken, UnboundPod},
};

/// More of what is short is not told.
const TOLD_MAX: usize = 8;

/// Takes room of the node in the commit that says where the Pod runs.
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
            let unbound = UnboundPod {
                key: key_of(request.namespace, request.name),
                demand: Arc::new(PodDemand::deserialize(pod).unwrap_or_default()),
                revision: request.old.map_or(0, revision),
            };
            let (room, caches) = (&request.cluster.node_room, request.cluster.caches());
            let taken = room.take(write.store, caches, (node, &capacity), unbound).await;
            let taken = taken.map_err(|refusal| match refusal {
                Refusal::Short(short) => no_room(node, request.name, short),
                Refusal::Failed(status) => *status,
            });
            Some(Box::new(Taking(taken)) as Box<dyn WritePart>)
        })
    }
}

struct Taking<'a>(Result<Taken<'a>, Status>);

impl WritePart for Taking<'_> {
    fn add_to(&self, txn: &mut Txn) -> Result<(), Status> {
        self.0.as_ref().map_err(Clone::clone)?.add_to(txn);
        Ok(())
    }

    fn committed(self: Box<Self>) {
        self.0.into_iter().for_each(Taken::end);
    }

    fn refused<'s>(self: Box<Self>, _: &'s dyn Store) -> BoxFuture<'s, Result<(), Error>>
    where
        Self: 's,
    {
        self.0.into_iter().for_each(Taken::end);
        Box::pin(async { Ok(()) })
    }
}

fn no_room(node: &str, pod: &str, mut short: Vec<String>) -> Status {
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
