//! The proxy of this node: its mind, the kernel as its hands, and the API where Pods reach it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use anyhow::{Context, Result};
use corten_client::BoxFuture;
use corten_host::{HostError, Layout, ServiceHealth, ServiceRules};
use corten_proxy::{
    Config, Existing, Front, Health, Proxy, Stale,
    rules::{Backend, Change, Cidr},
};
use corten_runner::{PacketHands, ProxySettings};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{control_plane::ControlPlane, in_process};

struct KernelHands {
    rules: ServiceRules,
    health: Arc<ServiceHealth>,
}

impl PacketHands for KernelHands {
    fn existing(&self) -> BoxFuture<'_, Result<Existing, String>> {
        Box::pin(async { self.rules.existing().await.map_err(told) })
    }

    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { self.rules.is_there().await.map_err(told) })
    }

    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.rules.apply(changes).await.map_err(told) })
    }

    fn forget(&self, stale: BTreeSet<Stale>) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async { self.rules.forget(stale).await.map_err(told) })
    }

    fn forget_unbound(&self, bound: BTreeMap<Front, BTreeSet<Backend>>) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async { self.rules.forget_unbound(bound).await.map_err(told) })
    }

    fn answer_health(&self, health: Vec<Health>) {
        self.health.set(health);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn told(error: HostError) -> String {
    error.to_string()
}

/// Leads packets to Services, from now until the control plane stops. The rules stay.
pub(crate) fn start(
    tasks: &mut JoinSet<()>,
    control_plane: &ControlPlane,
    layout: &Layout,
    node_name: &str,
    addresses: Vec<IpAddr>,
    networks: &[String],
) {
    let health = Arc::new(ServiceHealth::default());
    let pod_cidrs = networks.iter().filter_map(|it| Cidr::parse(it)).collect();
    let settings = ProxySettings {
        proxy: Proxy::new(Config { node_name: node_name.to_owned(), addresses, pod_cidrs }),
        node_name: node_name.to_owned(),
        client: in_process::client(&control_plane.server, in_process::kube_proxy()),
        hands: Arc::new(KernelHands { rules: ServiceRules::new(layout), health: health.clone() }),
        clock: control_plane.clock.clone(),
        journal: control_plane.journal.clone(),
    };
    tasks.spawn(corten_runner::run_proxy(settings, control_plane.stopping()));
    let stopping = control_plane.stopping();
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
