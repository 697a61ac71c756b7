//! Ports for a Pod that gets its node, chosen in the commit which says so.
//!
//! A key of the node is written with every choice, on condition that it has not changed since the node's Pods were read: of two
//! servers that choose at once one is refused, and chooses anew. It holds nothing. Pods of one node take turns at a server, so that
//! they wait for each other instead of failing on each other.

use bytes::Bytes;
use corten_api::resources::PODS;
use corten_kinds::host_ports;
use corten_meta::Status;
use corten_store::{Compare, Error, Operation, Revision, Store, Txn};
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use crate::{cluster::Cluster, plugin::Attributes};

/// Below what `--etcd-prefix` moves: each of several clusters in an etcd has its own.
const KEYS: &str = "/registry/ranges/hostports/";

/// What was chosen. Nobody else chooses for the node here until it is dropped.
pub struct HostPortChoice<'a> {
    key: Bytes,
    /// Of the key, before the node's Pods were read.
    revision: Revision,
    _turn: SemaphorePermit<'a>,
}

impl<'a> HostPortChoice<'a> {
    /// Gives the Pod its ports, where this is the write that does. `None` for all others.
    ///
    /// # Errors
    /// As the request is to be answered where there are none.
    pub async fn make(request: &Attributes<'a>, store: &dyn Store, pod: &mut Value) -> Result<Option<Self>, Status> {
        if request.kind.resource != PODS || !host_ports::is_due(pod, request.old) {
            return Ok(None);
        }
        let cluster = request.cluster;
        let pool = &cluster.host_ports;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        let turn = pool.turn(&node).await;
        let key = Bytes::from(format!("{KEYS}{node}"));
        let revision = store.get(&key).await.map_err(|it| failed(&it))?.map_or(0, |it| it.mod_revision);
        // The Pod of every choice up to there is in the cache.
        cluster.caches.reach(revision).await?;
        let taken = pool.taken(&cluster.caches, &node);
        let is_for_services = |port| cluster.node_ports.contains(port);
        host_ports::choose(pod, &taken, &pool.range.0, is_for_services)
            .map_err(|n_free| full(cluster, request.name_of(pod), &node, n_free))?;
        Ok(Some(Self { key, revision, _turn: turn }))
    }

    pub fn add_to(&self, txn: &mut Txn) {
        txn.compares.push(Compare { key: self.key.clone(), mod_revision: self.revision });
        txn.operations.push(Operation::Put { key: self.key.clone(), value: Bytes::from_static(b"{}") });
    }
}

fn full(cluster: &Cluster, pod: &str, node: &str, n_free: usize) -> Status {
    let (range, services) = (&cluster.host_ports.range, &cluster.node_ports);
    let apart =
        if range.overlaps(services) { format!(", without those of Services, {services},") } else { String::new() };
    let detail = format!("node {node:?} has too few free host ports: {n_free} of {range}{apart} are free");
    Status::conflict(&PODS, pod, &detail)
}

fn failed(error: &Error) -> Status {
    match error {
        Error::Closed | Error::Unavailable(_) => Status::unavailable(error.to_string()),
        _ => Status::internal(error),
    }
}
