//! The proxy of this node: its mind, the kernel as its hands, and the API where Pods reach it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use anyhow::{Context, Result};
use corten_api::cluster_network::NodePorts;
use corten_client::BoxFuture;
use corten_machine::{Layout, MachineError};
use corten_meta::address::Cidr;
use corten_network::{PodNetwork, ServiceHealth, ServiceRules};
use corten_proxy::{
    Config, Existing, Frontend, Health, Proxy, Stale,
    rules::{Backend, Change, Protocol},
};
use corten_runner::{Loops, NodeWatches, PacketHands, ProxySettings, TableHands, whole};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::{cluster_access::ClusterAccess, control_plane::ControlPlane, in_process, name_server};

struct KernelHands {
    rules: ServiceRules,
    health: Arc<ServiceHealth>,
    /// The node's.
    addresses: Vec<IpAddr>,
    network: PodNetwork,
    name_server: watch::Receiver<Option<Backend>>,
}

impl TableHands for KernelHands {
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { self.rules.is_there().await.map_err(told) })
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.network.services_lost())
    }
}

impl PacketHands for KernelHands {
    fn existing(&self) -> BoxFuture<'_, Result<Existing, String>> {
        Box::pin(async { self.rules.existing().await.map_err(told) })
    }

    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.rules.apply(changes).await.map_err(told) })
    }

    fn forget(&self, stale: BTreeSet<Stale>) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async { self.rules.forget(stale).await.map_err(told) })
    }

    fn forget_unbound(&self, bound: BTreeMap<Frontend, BTreeSet<Backend>>) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async { self.rules.forget_unbound(bound).await.map_err(told) })
    }

    fn listening(&self) -> BoxFuture<'_, BTreeSet<(Protocol, u16)>> {
        let addresses = self.addresses.clone();
        Box::pin(async {
            let read = tokio::task::spawn_blocking(move || corten_network::listening(&addresses));
            read.await.unwrap_or_default()
        })
    }

    fn name_server(&self, known: Option<Backend>) -> BoxFuture<'static, Option<Backend>> {
        let mut told = self.name_server.clone();
        Box::pin(async move {
            match told.wait_for(|it| *it != known).await.map(|it| *it) {
                Ok(place) => place,
                // There is none on this node, and will be none.
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn answer_health(&self, health: Vec<Health>) {
        self.health.set(health);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn told(error: MachineError) -> String {
    error.to_string()
}

/// What is known of the node whose packets these are.
pub(crate) struct About<'a> {
    pub(crate) node_name: &'a str,
    pub(crate) addresses: Vec<IpAddr>,
    /// Where Pods get their addresses from.
    pub(crate) networks: &'a [String],
    /// Where Pods of all nodes do.
    pub(crate) cluster_cidrs: Vec<Cidr>,
    pub(crate) node_ports: NodePorts,
    /// TCP ports on which Corten itself listens.
    pub(crate) own_ports: Vec<u16>,
    pub(crate) network: PodNetwork,
    /// Where names are answered on this node.
    pub(crate) name_server: watch::Receiver<Option<Backend>>,
    pub(crate) watches: Option<NodeWatches>,
}

fn config(about: About<'_>) -> Config {
    let About { node_name, addresses, networks, cluster_cidrs, node_ports, own_ports, .. } = about;
    let tcp = own_ports.iter().map(|it| (Protocol::Tcp, *it));
    let both = name_server::PORTS.flat_map(|it| [(Protocol::Tcp, it), (Protocol::Udp, it)]);
    Config {
        node_name: node_name.to_owned(),
        pod_cidrs: networks.iter().filter_map(|it| Cidr::parse(it)).collect(),
        cluster_cidrs,
        node_ports,
        own_ports: tcp.chain(both).collect(),
        listening: corten_network::listening(&addresses),
        addresses,
    }
}

/// Leads packets to Services, from now until the control plane stops. The rules stay.
pub(crate) fn start(
    tasks: &mut JoinSet<()>,
    loops: &Loops,
    cluster: &ClusterAccess,
    layout: &Layout,
    about: About<'_>,
) {
    let health = Arc::new(ServiceHealth::default());
    let (network, name_server) = (about.network.clone(), about.name_server.clone());
    let watches = about.watches.clone();
    let config = config(about);
    let client = cluster.client(in_process::kube_proxy());
    let addresses = config.addresses.clone();
    let rules = ServiceRules::new(layout);
    let hands: Arc<dyn PacketHands> =
        Arc::new(KernelHands { rules, health: health.clone(), addresses, network, name_server });
    let (clock, journal) = (cluster.clock.clone(), cluster.journal.clone());
    let told = cluster.when_stopping();
    tasks.spawn(loops.spawn(corten_proxy::NAME, move || {
        let settings = ProxySettings {
            node_name: config.node_name.clone(),
            proxy: Proxy::new(config.clone()),
            client: client.clone(),
            watches: watches.clone(),
            hands: hands.clone(),
            clock: clock.clone(),
            journal: journal.clone(),
        };
        whole(corten_runner::run_proxy(settings, told.now()))
    }));
    let stopping = cluster.stopping();
    tasks.spawn(async move { health.serve(stopping).await });
}

/// Serves the API for Pods at the bridge's own address, where it is otherwise for this machine alone.
pub(crate) async fn serve_pods(tasks: &mut JoinSet<()>, control_plane: &ControlPlane) -> Result<()> {
    let Some(address) = control_plane.for_pods else { return Ok(()) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}, where pods reach the API"))?;
    let (server, stopping) = (control_plane.server.clone(), control_plane.stopping());
    tasks.spawn(async move {
        if let Err(error) = server.serve(listener, stopping).await {
            tracing::error!(%error, "the API server cannot serve pods");
        }
    });
    Ok(())
}
