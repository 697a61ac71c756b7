//! The ways from this node to the Pods of others: a mind, and the kernel as its hands.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

use corten_api::cluster_network::ClusterNetwork;
use corten_client::BoxFuture;
use corten_host::gather;
use corten_machine::Layout;
use corten_meta::address::Cidr;
use corten_network::peers::{PeerRoutes, WireGuard};
use corten_proxy::{LocalNode, PodNetworkMode, PodRoutes, RefusedWay};
use corten_runner::{PodRouteSettings, RouteHands};
use tokio::task::JoinSet;

use crate::{cluster_access::ClusterAccess, in_process};

/// The addresses of other nodes. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct OtherNodes(Arc<RwLock<BTreeSet<IpAddr>>>);

impl OtherNodes {
    pub(crate) fn have(&self, address: IpAddr) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&address)
    }
}

struct KernelRoutes(PeerRoutes, OtherNodes);

impl RouteHands for KernelRoutes {
    fn apply(&self, wanted: PodRoutes) -> BoxFuture<'_, Result<Vec<RefusedWay>, String>> {
        self.1.0.write().unwrap_or_else(PoisonError::into_inner).clone_from(&wanted.nodes);
        Box::pin(async move { self.0.apply(&wanted).await.map_err(|it| it.to_string()) })
    }
}

/// What is known of the node.
pub(crate) struct About<'a> {
    pub(crate) node_name: &'a str,
    /// Where its own Pods get their addresses from.
    pub(crate) networks: &'a [String],
    pub(crate) network: &'a ClusterNetwork,
    pub(crate) mode: PodNetworkMode,
    pub(crate) wireguard: WireGuard,
}

/// Keeps the ways, from now until the node stops. They stay. Whose they are is what it gives.
pub(crate) fn start(tasks: &mut JoinSet<()>, cluster: &ClusterAccess, layout: &Layout, about: About<'_>) -> OtherNodes {
    let About { node_name, networks, network, mode, wireguard } = about;
    let peers = OtherNodes::default();
    let local_node = LocalNode {
        node_name: node_name.to_owned(),
        addresses: gather(layout).addresses,
        pod_cidrs: networks.iter().filter_map(|it| Cidr::parse(it)).collect(),
        cluster_cidrs: network.cluster_cidrs.clone(),
        node_bits: (network.node_bits(true), network.node_bits(false)),
        mode,
    };
    let settings = PodRouteSettings {
        local_node,
        client: cluster.client(in_process::kube_proxy()),
        hands: Arc::new(KernelRoutes(PeerRoutes::new(layout, networks, wireguard), peers.clone())),
        clock: cluster.clock.clone(),
        journal: cluster.journal.clone(),
    };
    tasks.spawn(corten_runner::run_pod_routes(settings, cluster.stopping()));
    peers
}
