//! What is known of the node whose packets these are.

use std::{collections::BTreeSet, net::IpAddr};

use corten_api::cluster_network::NodePorts;
use corten_meta::address::Cidr;

use crate::rules::Protocol;

/// What is known of the node whose packets these are.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub node_name: String,
    pub addresses: Vec<IpAddr>,
    /// Where this node's own Pods have their addresses.
    pub pod_cidrs: Vec<Cidr>,
    /// Where the Pods of all nodes have theirs.
    pub cluster_cidrs: Vec<Cidr>,
    /// Those of all nodes that Services are given: each is one Service's.
    pub node_ports: NodePorts,
    /// What Corten itself answers at on the node's addresses.
    pub own_ports: BTreeSet<(Protocol, u16)>,
    /// What processes of the machine listen at there, as far as it is known.
    pub listening: BTreeSet<(Protocol, u16)>,
}
