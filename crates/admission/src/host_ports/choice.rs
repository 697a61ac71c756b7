//! Ports for a Pod that gets its node, chosen in the commit which says so.

use corten_api::resources::PODS;
use corten_kinds::host_ports;
use corten_meta::Status;
use corten_store::{Store, Txn};
use serde_json::Value;

use crate::{cluster::Cluster, node_turns::NodeTurn, plugin::Attributes};

/// What was chosen. Nobody else chooses for the node here until it is dropped.
pub struct HostPortChoice<'a>(NodeTurn<'a>);

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
        let turn = pool.turns.take(store, &cluster.caches, &node).await?;
        let taken = pool.taken(&cluster.caches, &node);
        let is_for_services = |port| cluster.node_ports.contains(port);
        host_ports::choose(pod, &taken, &pool.range.0, is_for_services)
            .map_err(|n_free| full(cluster, request.name_of(pod), &node, n_free))?;
        Ok(Some(Self(turn)))
    }

    pub fn add_to(&self, txn: &mut Txn) {
        self.0.add_to(txn);
    }
}

fn full(cluster: &Cluster, pod: &str, node: &str, n_free: usize) -> Status {
    let (range, services) = (&cluster.host_ports.range, &cluster.node_ports);
    let apart =
        if range.overlaps(services) { format!(", without those of Services, {services},") } else { String::new() };
    let detail = format!("node {node:?} has too few free host ports: {n_free} of {range}{apart} are free");
    Status::conflict(&PODS, pod, &detail)
}
