//! A node in this process: its containerd, the kubelet with its hands, and the kubelet's server.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, Result};
use corten_client::BoxFuture;
use corten_host::{Containerd, KubeletServer, Layout, NodeHands, Options, gather};
use corten_kubelet::{Config, Event, HostEffect, Kubelet};
use corten_runner::Hands;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{control_plane::ControlPlane, in_process};

/// What a node is told.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) run_dir: PathBuf,
    pub(crate) node_name: String,
    pub(crate) kubelet_port: u16,
}

/// The host's verbs, as the runner wants them.
struct HostHands(NodeHands);

impl Hands for HostHands {
    fn perform(&self, effect: HostEffect) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(self.0.perform(effect))
    }

    fn events(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(self.0.events())
    }
}

/// Runs the node until the control plane stops. Its containers go on.
pub(crate) async fn run(settings: &Settings, control_plane: &ControlPlane) -> Result<()> {
    let layout = Layout::new(&settings.data_dir, &settings.run_dir);
    let address = address(&layout);
    // First what fails at once: the port is taken where another node runs.
    let listener = TcpListener::bind((address, settings.kubelet_port))
        .await
        .with_context(|| format!("listening on {address}:{} for the kubelet's API", settings.kubelet_port))?;
    let containerd = Containerd::start(layout, Options::default()).await.context("starting containerd")?;
    // Before the node is Ready: a Pod that comes first shall not be told that an image is missing which is on its way.
    containerd.import_images(|_| true).await;
    let containerd = Arc::new(containerd);
    let hands = NodeHands::new(&containerd);
    let kubelet_server = kubelet_server(settings, control_plane, &hands, address)?;

    let mut config = Config::new(&settings.node_name, &address.to_string());
    config.port = settings.kubelet_port;
    let client = in_process::client(&control_plane.server, in_process::kubelet(&settings.node_name));
    let (clock, journal) = (control_plane.clock.clone(), control_plane.journal.clone());
    let hands: Arc<dyn Hands> = Arc::new(HostHands(hands));

    let mut tasks = JoinSet::new();
    tasks.spawn(corten_runner::run_node(Kubelet::new(config), client, hands, clock, journal, control_plane.stopping()));
    let stopping = control_plane.stopping();
    tasks.spawn(async move { kubelet_server.serve(listener, stopping).await });
    let stopping = control_plane.stopping();
    tasks.spawn(async move { containerd.supervise(stopping).await });
    tracing::info!(node = settings.node_name, %address, "the node is up");
    while let Some(ended) = tasks.join_next().await {
        ended.context("a task of the node broke")?;
    }
    Ok(())
}

/// The node's address: that of its default route. Without one only this machine can reach it.
fn address(layout: &Layout) -> IpAddr {
    gather(layout).addresses.first().copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

fn kubelet_server(
    settings: &Settings,
    control_plane: &ControlPlane,
    hands: &NodeHands,
    address: IpAddr,
) -> Result<KubeletServer> {
    let authority = &control_plane.authority;
    let names = [settings.node_name.clone(), address.to_string()];
    let certificate = authority
        .issue_server(&format!("system:node:{}", settings.node_name), &names)
        .context("issuing the kubelet's serving certificate")?;
    KubeletServer::new(hands.clone(), &certificate.certificate, &certificate.key, authority.ca_pem())
        .context("preparing the kubelet's server")
}
