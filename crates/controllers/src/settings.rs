//! What controllers are told of the cluster.

use std::collections::BTreeMap;

use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    load_balancer::AddressPool,
};

/// What controllers are told of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub network: ClusterNetwork,
    pub node_ports: NodePorts,
    pub load_balancer_pool: AddressPool,
    /// Which name servers machines that join are told to ask, by option.
    pub name_servers: BTreeMap<String, String>,
}
