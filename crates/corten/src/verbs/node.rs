//! `corten node`: control plane and node in one process, in the foreground. `corten up` runs it in the background.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_api::cluster_network::{ClusterNetwork, NodePorts};
use corten_apiserver::LogFilter;
use corten_cli::{Failure, NodeClaim, NodeName, Verb, control_plane_record::ControlPlaneRecord};
use corten_host::Options;
use corten_machine::{Layout, notify_service_manager};
use tokio::sync::watch;

use super::server;
use crate::node_options::{self, NodeOptions};
use crate::{
    control_plane::{ControlPlane, Settings},
    ha, in_process,
    joined::{JoinedFiles, NodeIdentity, pod_ranges},
    joined_node, logging,
    network_options::DnsForwarding,
    node_agent, process,
};

pub(crate) const VERB: Verb = Verb {
    name: "node",
    about: "Run this machine's node, and the cluster where it has joined none, in the foreground",
    long_about: "The control plane, and a node with a containerd of its own; of a machine that has joined a cluster (`corten join`) the \
                 node alone. Needs root. Containers are no children of this \
                 process: however it ends, they go on, and the next start adopts them. `corten up` runs this in the \
                 background and starts it again when it fails, which nobody does in the foreground; `corten down` ends it and \
                 the containers. SIGTERM ends this process alone; SIGUSR1 ends the Pods \
                 first, as when the machine shuts down. `corten node drain` and `corten node remove` are about any node of a cluster.",
    examples: "  corten node\n  corten node --data-dir /srv/corten --node-name lab\n  corten node drain two\n  corten node remove two",
    args,
    run,
};

/// How long the node has to end its tasks.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

fn args(command: Command) -> Command {
    let command = server::settings_args(command).arg(
        Arg::new("run-dir")
            .long("run-dir")
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .default_value("/run/corten")
            .help("Where what lives no longer than the machine's run is kept: sockets, mounts, addresses"),
    );
    corten_cli::nodes::subcommands(corten_options::node_options::args(command))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let takes_member_out = |data: &Path, name: &str| process::block_on(ha::departed(data, name));
    if let Some(done) = corten_cli::nodes::run(matches, &takes_member_out) {
        return done;
    }
    let log = logging::begin(matches)?;
    let (name, node) = named(matches)?;
    if let Some(identity) = identity(&name, &node)? {
        server::refuse_for_joined_node(matches, &identity.server())?;
        joined_node::run(node, identity)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut settings, mut node) = with_control_plane(matches, (&name, node), log)?;
    let claim = NodeClaim::new(Layout::new(&node.data_dir, &node.run_dir))?;
    name.keep(&node.data_dir)?;
    if let Some(remark) = name.remark() {
        tracing::warn!("{remark}");
    }
    process::block_on(async {
        let mut signals = process::Signals::listen()?;
        let member = match ha::start(&mut settings, &name.name, &mut signals).await? {
            ha::Start::Told => return Ok(()),
            ha::Start::Without => None,
            ha::Start::Runs(member) => Some(member),
        };
        let ended = run_both(&settings, &mut node, &claim, &mut signals).await;
        ha::stop(member).await;
        ended
    })?;
    claim.ended_in_order();
    Ok(ExitCode::SUCCESS)
}

/// Reads all that the node is told, as when it starts.
///
/// # Errors
/// It would not start.
pub(super) fn check(matches: &ArgMatches) -> Result<()> {
    let (name, node) = named(matches)?;
    if identity(&name, &node)?.is_none() {
        with_control_plane(matches, (&name, node), logging::check(matches)?)?;
    }
    Ok(())
}

fn named(matches: &ArgMatches) -> Result<(NodeName, node_agent::Settings)> {
    let absolute = |dir: &PathBuf| std::path::absolute(dir).with_context(|| format!("finding {}", dir.display()));
    let folder = |name: &str| absolute(matches.get_one::<PathBuf>(name).context("clap gives a default")?);
    let (data_dir, run_dir) = (folder("data-dir")?, folder("run-dir")?);
    let name = NodeName::of(matches, &data_dir)?;
    let node = settings(matches, &name, data_dir, run_dir)?;
    Ok((name, node))
}

/// Of a machine that has joined a cluster.
fn identity(name: &NodeName, node: &node_agent::Settings) -> Result<Option<NodeIdentity>> {
    NodeIdentity::load(&name.name, JoinedFiles::of(&node.data_dir))
}

fn with_control_plane(
    matches: &ArgMatches,
    (name, mut node): (&NodeName, node_agent::Settings),
    log: Arc<dyn LogFilter>,
) -> Result<(Settings, node_agent::Settings)> {
    // A machine that has joined goes on, and says so of its Node; half a cluster helps nobody.
    node_options::refuse_pod_network(node.pod_network)?;
    node_options::refuse_unreachable_api(matches, &node.pod_link)?;
    let mut settings = server::settings(matches, log)?;
    if settings.ha.is_none() {
        refuse_second_control_plane(&node.data_dir)?;
    }
    node.take_network(&settings.network)?;
    settings.gateways = node.runtime.gateways();
    settings.has_ipv6 = node.runtime.pod_cidrs.iter().any(|it| it.contains(':'));
    settings.node = Some(name.name.clone());
    Ok((settings, node))
}

async fn run_both(
    settings: &Settings,
    node: &mut node_agent::Settings,
    claim: &NodeClaim,
    signals: &mut process::Signals,
) -> Result<()> {
    let control_plane = ControlPlane::start(settings).await?;
    claim.serves();
    let ended = match ranges(node, &control_plane, signals).await {
        Ok(true) => until_told(node, &control_plane, signals).await,
        other => other.map(drop),
    };
    control_plane.stop().await;
    ended
}

/// Has the node its part of the Pods' network? False where it was told to end before.
async fn ranges(
    node: &mut node_agent::Settings,
    control_plane: &ControlPlane,
    signals: &mut process::Signals,
) -> Result<bool> {
    // The first machine's has the first range.
    if ControlPlaneRecord::joined(&node.data_dir)?.is_none() {
        return Ok(true);
    }
    // A plug-in of another's gives addresses as it knows: what the cluster gives the Node is nothing to the node.
    if node.pod_link.is_plugin() {
        node.runtime.pod_cidrs.clear();
        return Ok(true);
    }
    let client = control_plane.access().client(in_process::kubelet(&node.node_name));
    tokio::select! {
        biased;
        () = signals.told_to_end() => Ok(false),
        ranges = pod_ranges(&client, &node.node_name, &node.data_dir) => {
            node.runtime.pod_cidrs = ranges?;
            Ok(true)
        }
    }
}

/// The node beside a control plane has the first range of Pods, which is that of the cluster's first machine.
fn refuse_second_control_plane(data: &Path) -> Result<()> {
    if ControlPlaneRecord::joined(data)?.is_none() {
        return Ok(());
    }
    let message = format!("{} is that of a control plane that joined a cluster: it has no node", data.display());
    let mut failure = Failure::new(message);
    failure
        .details
        .push("this machine's node joins the cluster with folders of its own: corten join --data-dir".to_owned());
    Err(failure.next(format!("corten server --data-dir {}", data.display())).into())
}

/// What the node is told, whichever cluster it is of.
pub(super) fn settings(
    matches: &ArgMatches,
    name: &NodeName,
    data_dir: PathBuf,
    run_dir: PathBuf,
) -> Result<node_agent::Settings> {
    let manifests = matches.get_one::<PathBuf>("pod-manifest-path").map(std::path::absolute).transpose()?;
    Ok(node_agent::Settings {
        manifests: manifests.unwrap_or(data_dir.join("manifests")),
        data_dir,
        run_dir,
        node_name: name.name.clone(),
        kubelet_port: *matches.get_one("kubelet-port").context("clap gives a default")?,
        options: NodeOptions::of(matches)?,
        runtime: Options::default(),
        network: ClusterNetwork::default(),
        node_ports: NodePorts::default(),
        dns: DnsForwarding::default(),
        pod_network: node_options::pod_network(matches)?,
        pod_link: node_options::pod_link(matches)?,
    })
}

/// Runs the node until a signal comes, then lets it finish what it is about.
async fn until_told(
    settings: &node_agent::Settings,
    control_plane: &ControlPlane,
    signals: &mut process::Signals,
) -> Result<()> {
    let drain = watch::Sender::new(false);
    let access = control_plane.access();
    let node = node_agent::run(settings, &access, Some(control_plane), drain.subscribe());
    tokio::pin!(node);
    loop {
        tokio::select! {
            biased;
            told = signals.told() => match told {
                process::ShutdownSignal::End => break,
                // It ends by itself once its pods have.
                process::ShutdownSignal::Drain => {
                    drain.send_replace(true);
                }
            },
            // A node that cannot start ends the whole: half a cluster helps nobody.
            ended = &mut node => return ended,
        }
    }
    notify_service_manager("STOPPING=1");
    tokio::select! {
        () = control_plane.leave() => {}
        () = signals.told_to_end() => {}
        ended = &mut node => return ended,
    }
    control_plane.begin_stop();
    tokio::time::timeout(STOP_DEADLINE, node).await.context("the node did not end in time")?
}
