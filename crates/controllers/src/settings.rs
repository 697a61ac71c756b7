//! What controllers are told of the cluster.

use std::collections::BTreeMap;

use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    load_balancer::AddressPool,
};
use corten_meta::Resource;

/// What controllers are told of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub network: ClusterNetwork,
    pub node_ports: NodePorts,
    pub load_balancer_pool: AddressPool,
    /// Which name servers machines that join are told to ask, by option.
    pub name_servers: BTreeMap<String, String>,
    /// What every namespace has as the certificates by which the API server is known, as PEM. None where the API server itself puts
    /// them into kube-system.
    pub root_ca: Option<String>,
    /// The kinds whose objects the API server itself stores, each in one version, and which can be listed, watched and deleted. None
    /// where it is of this program's version, and has those that are known here.
    pub served: Option<Vec<Resource>>,
}
