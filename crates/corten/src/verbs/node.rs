//! `corten node`: control plane and node in one process, in the foreground. `corten up` runs it in the background.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_cli::{NodeClaim, NodeName, Verb};
use corten_host::Options;
use corten_machine::{Layout, notify_service_manager};
use tokio::sync::watch;

use super::server;
use crate::node_options::NodeOptions;
use crate::{control_plane::ControlPlane, logging, node_agent, process};

pub(crate) const VERB: Verb = Verb {
    name: "node",
    about: "Run a whole cluster of one node, in the foreground",
    long_about: "The control plane, and a node with a containerd of its own. Needs root. Containers are no children of this \
                 process: however it ends, they go on, and the next start adopts them. `corten up` runs this in the \
                 background and starts it again when it fails, which nobody does in the foreground; `corten down` ends it and \
                 the containers. SIGTERM ends this process alone; SIGUSR1 ends the Pods \
                 first, as when the machine shuts down.",
    examples: "  corten node\n  corten node --data-dir /srv/corten --node-name lab",
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
    corten_cli::node_options::args(command)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let log = logging::begin(matches)?;
    let mut settings = server::settings(matches, log)?;
    settings.gateways = Options::default().gateways();
    let run_dir = matches.get_one::<PathBuf>("run-dir").context("clap gives a default")?;
    let absolute = |dir: &PathBuf| std::path::absolute(dir).with_context(|| format!("finding {}", dir.display()));
    let manifests = matches.get_one::<PathBuf>("pod-manifest-path").map(absolute).transpose()?;
    let name = NodeName::of(matches, &settings.data_dir)?;
    settings.node = Some(name.name.clone());
    let node = node_agent::Settings {
        manifests: manifests.unwrap_or(absolute(&settings.data_dir)?.join("manifests")),
        data_dir: absolute(&settings.data_dir)?,
        run_dir: absolute(run_dir)?,
        node_name: name.name.clone(),
        kubelet_port: *matches.get_one("kubelet-port").context("clap gives a default")?,
        options: NodeOptions::of(matches)?,
    };
    let claim = NodeClaim::new(Layout::new(&node.data_dir, &node.run_dir))?;
    name.keep(&node.data_dir)?;
    if let Some(remark) = name.remark() {
        tracing::warn!("{remark}");
    }
    process::block_on(async {
        let mut signals = process::Signals::listen()?;
        let control_plane = ControlPlane::start(&settings).await?;
        claim.serves();
        let ended = until_told(&node, &control_plane, &mut signals).await;
        control_plane.stop().await;
        ended
    })?;
    claim.ended_in_order();
    Ok(ExitCode::SUCCESS)
}

/// Runs the node until a signal comes, then lets it finish what it is about.
async fn until_told(
    settings: &node_agent::Settings,
    control_plane: &ControlPlane,
    signals: &mut process::Signals,
) -> Result<()> {
    let drain = watch::Sender::new(false);
    let node = node_agent::run(settings, control_plane, drain.subscribe());
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
    control_plane.begin_stop();
    tokio::time::timeout(STOP_DEADLINE, node).await.context("the node did not end in time")?
}
