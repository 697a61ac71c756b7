//! A node in this process: its containerd, the kubelet with its hands, and the kubelet's server.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use corten_api::cluster_network::{ClusterNetwork, NodePorts};
use corten_client::BoxFuture;
use corten_devices::PodResourcesServer;
use corten_grpc::{PLUGINS, follow_plugins};
use corten_host::{
    Containerd, KubeletServer, Manifests, NodeHands, Options, RunningHere, Serving, ServingKey, begun_terminations,
    gather, machine_topology, stopped_with_machine, written_manager_states,
};
use corten_kubelet::{Config, Event, HostEffect, Kubelet, NodeEffect, NodeProblem, check_managers};
use corten_machine::{Layout, Logind, notify_service_manager};
use corten_network::{
    PodNetwork, PodPolicies,
    cni::PodLink,
    peers::{WireGuard, prepare_wireguard},
};
use corten_proxy::{PodNetworkMode, rules::Protocol};
use corten_runner::{
    Hands, Loops, NodeInquiries, NodeProblemHands, NodeWatches, ObservationHands, OwnPods, Reading, whole,
};
use corten_volumes::CsiPlugins;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::node_options::NodeOptions;
use crate::{
    anew::Anew,
    announcements,
    cluster_access::{ClusterAccess, ClusterTrust, ServerAccess},
    control_plane::ControlPlane,
    in_process,
    kubelet_cluster::{Keys, NodeCluster, NodeLoops, NodeMeasures},
    name_server::{self, Upkeep},
    network_options::{DnsForwarding, NetworkOptions},
    network_policy, node_routes, process, service_proxy, volume_provisioner,
};

/// What a node is told.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) run_dir: PathBuf,
    pub(crate) node_name: String,
    pub(crate) kubelet_port: u16,
    /// The folder of static pods.
    pub(crate) manifests: PathBuf,
    pub(crate) options: NodeOptions,
    /// Of its runtime, with this node's part of the Pods' network.
    pub(crate) runtime: Options,
    pub(crate) pod_network: PodNetworkMode,
    pub(crate) pod_link: PodLink,
    /// The cluster's addresses and domain.
    pub(crate) network: ClusterNetwork,
    pub(crate) node_ports: NodePorts,
    /// Whom its name server asks.
    pub(crate) dns: DnsForwarding,
}

impl Settings {
    /// Of the first node: the first part of each range is its.
    ///
    /// # Errors
    /// The machine has none of the cluster's families.
    pub(crate) fn take_network(&mut self, options: &NetworkOptions) -> Result<()> {
        let NetworkOptions { network, node_ports, dns, .. } = options;
        self.runtime = Options { pod_link: self.pod_link.clone(), ..Options::of(network) };
        anyhow::ensure!(
            !self.runtime.pod_cidrs.is_empty(),
            "Pods of this cluster have IPv6 addresses only, and this machine's kernel has no IPv6"
        );
        (self.network, self.node_ports, self.dns) = (network.clone(), node_ports.clone(), dns.clone());
        Ok(())
    }
}

/// The host's verbs, as the runner wants them.
struct HostHands(NodeHands, Manifests);

impl Hands for HostHands {
    fn perform(&self, effect: HostEffect) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(self.0.perform(effect))
    }

    fn perform_node(&self, effect: NodeEffect) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(self.0.perform_node(effect))
    }

    fn node_news(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(self.0.node_news())
    }

    fn events(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(self.0.events())
    }

    fn renew(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.0.renew().await;
            self.1.renew().await;
        })
    }

    fn manifests(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async { vec![self.1.next().await] })
    }
}

struct HostProblems(NodeHands, PodNetwork);

impl NodeProblemHands for HostProblems {
    fn node_problems(&self) -> BoxFuture<'_, Vec<NodeProblem>> {
        Box::pin(async {
            let mut found = self.0.node_problems().await;
            found.extend(self.1.drops());
            found.extend(self.1.way_out());
            found.extend(self.1.taken_ranges().await);
            found
        })
    }
}

/// So many ports of the machine are told: a Pod in its network may open all there are.
const LISTENING_MAX: usize = 4096;

/// With the node's addresses, and where its Pods ask for names.
struct HostReadings(NodeHands, Vec<IpAddr>, Vec<IpAddr>);

impl ObservationHands for HostReadings {
    fn read(&self) -> BoxFuture<'_, Option<Reading>> {
        Box::pin(async {
            let pods = self.0.pod_readings(&self.2).await?;
            let addresses = self.1.clone();
            let listening = tokio::task::spawn_blocking(move || corten_network::listening(&addresses)).await.ok()?;
            let tcp = listening.into_iter().filter(|it| it.0 == Protocol::Tcp).map(|it| it.1).take(LISTENING_MAX);
            Some(Reading { pods, listening: tcp.collect() })
        })
    }
}

/// Runs the node until its cluster access stops, and its containers go on; or until it was told to `drain` and its pods have
/// ended.
pub(crate) async fn run(
    settings: &Settings,
    cluster: &ClusterAccess,
    control_plane: Option<&ControlPlane>,
    drain: watch::Receiver<bool>,
) -> Result<()> {
    let layout = Layout::new(&settings.data_dir, &settings.run_dir);
    let address = address(&layout);
    // First what fails at once: the port is taken where another node runs.
    let listener = TcpListener::bind((address, settings.kubelet_port))
        .await
        .with_context(|| format!("listening on {address}:{} for the kubelet's API", settings.kubelet_port))?;
    corten_machine::shield_from_oom();
    let (containerd, hands) = runtime(settings, cluster, &layout).await?;
    let wireguard = wireguard(settings, &layout, &hands).await;
    let mut tasks = JoinSet::new();
    let place = (&*settings.node_name, &settings.options.eviction);
    volume_provisioner::start(&mut tasks, cluster, &hands, &containerd, place).await;
    let own = Arc::new(OwnPods::default());
    let kubelet_server = kubelet_server(&mut tasks, settings, cluster, (&hands, &own))?;

    let mut config = kubelet_config(settings, &layout, address)?;
    tasks.spawn(run_plugins(hands.clone(), config.clone(), cluster.stopping()));
    tasks.spawn(wait_with_machine(hands.clone(), config.shutdown.grace, cluster.stopping()));
    let network = containerd.pod_network();
    let cluster_dns = settings.network.cluster_dns().into_iter().collect();
    let about = (&network, gather(&layout).addresses, cluster_dns);
    observe(&mut tasks, &settings.node_name, cluster, &hands, about);
    tasks.spawn(end_pods(hands.clone(), drain, cluster.begin_stop_later()));
    let (anew, store) = (Anew::default(), control_plane.map(|it| (it.store(), settings.data_dir.join("store"))));
    tasks.spawn(anew.clone().watch(store, network.clone(), cluster.begin_stop_later()));
    let hands: Arc<dyn Hands> = Arc::new(HostHands(hands, Manifests::new(&settings.manifests)));

    let loops = process::loops(cluster.journal.clone(), cluster.clock.clone())?;
    let about = (&*settings.node_name, containerd.clone(), network.clone());
    network_policy::start(&mut tasks, &loops, cluster, &layout, about);
    if !lead_packets(&mut tasks, &loops, settings, cluster, control_plane, (&network, wireguard)).await? {
        config.cluster_dns.clear();
    }
    tasks.spawn(kubelet_loop(&loops, cluster, config, hands, (own, containerd.policies())));
    tasks.spawn(end_with(cluster.stopping(), loops.clone()));
    let stopping = cluster.stopping();
    tasks.spawn(follow_authority(kubelet_server.clone(), cluster.trust.clone(), cluster.stopping()));
    tasks.spawn(async move { kubelet_server.serve(listener, stopping).await });
    let stopping = cluster.stopping();
    tasks.spawn(async move { containerd.supervise(stopping).await });
    tasks.spawn(keep_network(network, cluster.stopping()));
    tracing::info!(node = settings.node_name, %address, "the node is up");
    notify_service_manager("READY=1\nSTATUS=the node is up");
    while let Some(ended) = tasks.join_next().await {
        ended.context("a task of the node broke")?;
    }
    loops.stop();
    match anew.reason() {
        Some(reason) => Err(corten_cli::BeginsAnew(reason.to_owned()).into()),
        None => Ok(()),
    }
}

/// The node's containerd, which has every image that was laid beside it, and the hands that work with it.
async fn runtime(
    settings: &Settings,
    cluster: &ClusterAccess,
    layout: &Layout,
) -> Result<(Arc<Containerd>, NodeHands)> {
    let single_process_oom_kill = settings.options.single_process_oom_kill;
    let options = Options { single_process_oom_kill, ..settings.runtime.clone() };
    let containerd = Containerd::start(layout.clone(), options).await.context("starting containerd")?;
    // Before the node is Ready: a Pod that comes first shall not be told that an image is missing which is on its way.
    containerd.import_images(|_| true).await;
    let containerd = Arc::new(containerd);
    let hands = NodeHands::new(&containerd);
    hands.set_node_name(&settings.node_name);
    if matches!(cluster.server, ServerAccess::Remote(..)) {
        hands.offer_addresses(&containerd);
    }
    Ok((containerd, hands))
}

/// The kubelet's own loop, which is begun again where it breaks, once no Pod can be reached that NetworkPolicies isolate.
fn kubelet_loop(
    loops: &Loops,
    cluster: &ClusterAccess,
    config: Config,
    hands: Arc<dyn Hands>,
    (own, policies): (Arc<OwnPods>, PodPolicies),
) -> BoxFuture<'static, ()> {
    let client = cluster.client(in_process::kubelet(&config.node_name));
    let (clock, journal, told) = (cluster.clock.clone(), cluster.journal.clone(), cluster.when_stopping());
    loops.spawn("kubelet", move || {
        let (kubelet, client, hands) = (Kubelet::new(config.clone()), client.clone(), hands.clone());
        let (clock, told_to, stopping) = (clock.clone(), (journal.clone(), own.clone()), told.now());
        let (policies, stopped) = (policies.clone(), told.now());
        whole(async move {
            tokio::select! {
                () = stopped => return,
                () = policies.begun() => {}
            }
            // Of a kubelet that broke nothing listens any more.
            hands.renew().await;
            corten_runner::run_node(kubelet, client, hands, clock, told_to, stopping).await;
        })
    })
}

/// This node's end of the tunnel, where it is WireGuard: its Node tells the key from the first. One that cannot be made is said of
/// the Node, which is not Ready meanwhile, and tried again with the ways to other nodes.
async fn wireguard(settings: &Settings, layout: &Layout, hands: &NodeHands) -> WireGuard {
    let wireguard = WireGuard::new(layout);
    if settings.pod_network == PodNetworkMode::WireGuard {
        if let Err(error) = prepare_wireguard(layout, &wireguard, &settings.network.cluster_cidrs).await {
            tracing::error!(%error, "no tunnel to other nodes, and no Pods, until it can be made");
        }
        hands.set_wireguard(wireguard.clone());
    }
    wireguard
}

/// Leads packets to Services and to the Pods of other nodes, and answers for names. Are names answered?
async fn lead_packets(
    tasks: &mut JoinSet<()>,
    loops: &Loops,
    settings: &Settings,
    cluster: &ClusterAccess,
    control_plane: Option<&ControlPlane>,
    (network, wireguard): (&PodNetwork, WireGuard),
) -> Result<bool> {
    let layout = Layout::new(&settings.data_dir, &settings.run_dir);
    let (node_name, networks) = (&*settings.node_name, &settings.runtime.pod_cidrs);
    if let Some(control_plane) = control_plane {
        service_proxy::serve_pods(tasks, control_plane).await?;
    }
    let names = watch::Sender::new(None);
    let watches = shared_watches(tasks, cluster);
    // Which Pods of the cluster are here no range tells where a plug-in gives addresses.
    let all: Vec<String> = settings.network.cluster_cidrs.iter().map(ToString::to_string).collect();
    let about = service_proxy::About {
        node_name,
        addresses: gather(&layout).addresses,
        networks: if settings.pod_link.is_plugin() { &all } else { networks },
        cluster_cidrs: settings.network.cluster_cidrs.clone(),
        node_ports: settings.node_ports.clone(),
        own_ports: control_plane.map(|it| it.port).into_iter().chain([settings.kubelet_port]).collect(),
        network: network.clone(),
        name_server: names.subscribe(),
        watches: watches.clone(),
    };
    service_proxy::start(tasks, loops, cluster, &layout, about);
    let (network, mode) = (&settings.network, settings.pod_network);
    let about = node_routes::About { node_name, networks, network, mode, wireguard };
    let peers = node_routes::start(tasks, cluster, &layout, about);
    announcements::start(tasks, cluster, &layout, node_name);
    let Some(cluster_ip) = settings.network.cluster_dns() else { return Ok(false) };
    let upkeep = upkeep(control_plane);
    let is_kept = !matches!(upkeep, Upkeep::Own);
    let about = name_server::About {
        node_name,
        address: name_server_address(settings, &layout, cluster_ip),
        cluster_ip,
        network: &settings.network,
        dns: &settings.dns,
        peers,
        upkeep,
        kept: is_kept.then(|| settings.data_dir.join("kubelet/names")),
        place: names,
        watches,
    };
    match name_server::start(tasks, loops, cluster, about).await {
        // The one beside the control plane is asked.
        Err(error) if control_plane.is_none() => {
            tracing::warn!(error = format!("{error:#}"), "names are answered by another machine");
            Ok(true)
        }
        is_there => is_there.map(|it| it || control_plane.is_none()),
    }
}

/// One stream of watches for all that leads packets here. From another machine each watch would be a stream of its own; and there
/// whoever asks, asks as the node.
fn shared_watches(tasks: &mut JoinSet<()>, cluster: &ClusterAccess) -> Option<NodeWatches> {
    let is_remote = matches!(cluster.server, ServerAccess::Remote(..));
    let watches = is_remote.then(|| NodeWatches::new(&cluster.client(in_process::kube_proxy())))?;
    tasks.spawn(watches.clone().run(cluster.stopping()));
    Some(watches)
}

/// Who looks after the name server's objects in the cluster.
fn upkeep(control_plane: Option<&ControlPlane>) -> Upkeep {
    match control_plane.map(|it| it.lease_times) {
        Some(None) => Upkeep::Own,
        Some(Some(times)) => Upkeep::Elected(times),
        None => Upkeep::OfOthers,
    }
}

/// What the kubelet is set to, with what the machine is and what earlier runs have written down.
fn kubelet_config(settings: &Settings, layout: &Layout, address: IpAddr) -> Result<Config> {
    let mut config = Config::new(&settings.node_name, &address.to_string());
    config.port = settings.kubelet_port;
    config.version = corten_api::version::VERSION.to_owned();
    config.pod_cidrs.clone_from(&settings.runtime.pod_cidrs);
    config.cluster_dns = settings.network.cluster_dns().iter().map(ToString::to_string).collect();
    config.cluster_domain.clone_from(&settings.network.domain);
    // One of each family at most: the first is what it listens at.
    let others = gather(layout).addresses.into_iter().filter(|it| it.is_ipv6() != address.is_ipv6());
    config.node_ips.extend(others.map(|it| it.to_string()));
    config.has_manifests = true;
    (config.stopped_with_machine, config.terminations) = (stopped_with_machine(layout), begun_terminations(layout));
    settings.options.apply(&mut config);
    config.managers.machine = machine_topology();
    config.manager_states = written_manager_states(layout).context("reading what the managers have written")?;
    check_managers(&config).map_err(anyhow::Error::msg)?;
    Ok(config)
}

/// Plugins of devices, claims and storage come and go, and whoever asks is told what Pods have of them, until the control plane stops.
async fn run_plugins(hands: NodeHands, config: Config, stopping: impl Future<Output = ()> + Send) {
    let (plugins, claims) = (hands.device_plugins().clone(), hands.claim_drivers().clone());
    let storage = CsiPlugins::new(hands.layout(), hands.mounter());
    let running = Arc::new(RunningHere { hands: hands.clone(), config });
    let resources = PodResourcesServer::new(hands.layout(), plugins.clone(), claims.clone(), running);
    tokio::select! {
        () = stopping => {}
        () = plugins.run() => {}
        () = resources.run() => {}
        () = hands.mounter().keep_unstaging() => {}
        () = follow_plugins(hands.layout().data.join(PLUGINS), vec![Arc::new(claims), Arc::new(storage)]) => {}
    }
}

/// Tells what is wrong with the machine, and what its processes do.
fn observe(
    tasks: &mut JoinSet<()>,
    node_name: &str,
    cluster: &ClusterAccess,
    hands: &NodeHands,
    (network, addresses, cluster_dns): (&PodNetwork, Vec<IpAddr>, Vec<IpAddr>),
) {
    let told = || (node_name.to_owned(), cluster.clock.clone(), cluster.journal.clone());
    let (name, clock, journal) = told();
    let problems = HostProblems(hands.clone(), network.clone());
    tasks.spawn(corten_runner::run_node_problems(problems, name, clock, journal, cluster.stopping()));
    let (name, clock, journal) = told();
    let readings = HostReadings(hands.clone(), addresses, cluster_dns);
    tasks.spawn(corten_runner::run_observations(readings, name, clock, journal, cluster.stopping()));
}

/// The loops end when the control plane does.
async fn end_with(stopping: impl Future<Output = ()> + Send, loops: Arc<corten_runner::Loops>) {
    stopping.await;
    loops.begin_stop();
}

/// Where the machine has a logind, its end waits for the pods.
async fn wait_with_machine(hands: NodeHands, grace: Duration, stopping: impl Future<Output = ()> + Send) {
    if grace.is_zero() {
        return;
    }
    tokio::select! {
        () = stopping => {}
        () = Logind::new(hands.end_of_machine(), grace).run() => {}
    }
}

async fn keep_network(network: PodNetwork, stopping: impl Future<Output = ()> + Send) {
    tokio::select! {
        () = stopping => {}
        () = network.keep() => {}
    }
}

/// Whose certificates the kubelet's server believes is what the cluster does.
async fn follow_authority(
    server: KubeletServer,
    authority: Arc<dyn ClusterTrust>,
    stopping: impl Future<Output = ()> + Send,
) {
    let mut changes = authority.changes();
    let follow = async {
        while changes.changed().await.is_ok() {
            if let Err(error) = server.trust(&authority.ca_pem()) {
                tracing::error!(%error, "the kubelet's server trusts the authority of before");
            }
        }
    };
    tokio::select! {
        () = stopping => {}
        () = follow => {}
    }
}

/// Told to drain, has the pods ended and then all else.
async fn end_pods(hands: NodeHands, mut drain: watch::Receiver<bool>, stop: watch::Sender<bool>) {
    let mut stopping = stop.subscribe();
    let drained = async {
        // An error says that nobody can tell any more.
        if drain.wait_for(|it| *it).await.is_err() {
            std::future::pending::<()>().await;
        }
        tracing::info!("pods are ended, the node will end after them");
        let end = hands.end_of_machine();
        end.begin();
        end.drained().await;
    };
    tokio::select! {
        _ = stopping.wait_for(|it| *it) => {}
        () = drained => {
            stop.send_replace(true);
        }
    }
}

/// The node's address: that of its default route. Without one only this machine can reach it.
pub(crate) fn address(layout: &Layout) -> IpAddr {
    gather(layout).addresses.first().copied().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// An address of the family that the Service of the name server has: without one of the machine, the bridge's own.
fn name_server_address(settings: &Settings, layout: &Layout, cluster_ip: IpAddr) -> IpAddr {
    let is_of_family = |it: &IpAddr| it.is_ipv4() == cluster_ip.is_ipv4();
    let own = gather(layout).addresses.into_iter().find(is_of_family);
    own.or_else(|| settings.runtime.gateways().into_iter().find(is_of_family)).unwrap_or_else(|| address(layout))
}

fn kubelet_server(
    tasks: &mut JoinSet<()>,
    settings: &Settings,
    cluster: &ClusterAccess,
    (hands, own_pods): (&NodeHands, &Arc<OwnPods>),
) -> Result<KubeletServer> {
    let trust = cluster.trust.clone();
    let client_ca = trust.ca_pem();
    let own = Arc::new(ServingKey::load(&settings.node_name, &settings.data_dir.join("kubelet/pki"), &client_ca));
    let client = cluster.client(in_process::kubelet(&settings.node_name));
    let (node, keys) = (settings.node_name.clone(), Arc::new(Keys { own: own.clone(), trust }));
    let told = (cluster.clock.clone(), cluster.journal.clone());
    tasks.spawn(corten_runner::run_node_certificate(client.clone(), node, keys, told, cluster.stopping()));
    let inquiries = NodeInquiries::new(client.clone(), &settings.node_name, cluster.clock.clone());
    let serving = Serving {
        hands: hands.clone(),
        port: settings.kubelet_port,
        managers: settings.options.managers.clone(),
        own: own.clone(),
        client_ca,
        node: settings.node_name.clone(),
        cluster: Arc::new(NodeCluster { inquiries, own: own_pods.clone(), client }),
        journals: Arc::new(NodeLoops(cluster.journal.clone())),
        measures: Arc::new(NodeMeasures::new(cluster, own)),
    };
    KubeletServer::new(serving).context("preparing the kubelet's server")
}
