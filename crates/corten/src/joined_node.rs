//! The node of a machine that has joined a cluster on another one, while it runs.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use corten_cli::NodeClaim;
use corten_client::{Client, KeptAnswers};
use corten_machine::{Layout, notify_service_manager};
use corten_runner::JournalBook;
use tokio::sync::watch;

use crate::{
    cluster_access::{ClusterAccess, ServerAccess},
    joined::{KeptStore, NodeIdentity, cluster_network, pod_ranges},
    node_agent, process,
};

/// How long the node has to end its tasks.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// Runs it until it is told to end.
pub(crate) fn run(mut settings: node_agent::Settings, identity: NodeIdentity) -> Result<()> {
    let claim = NodeClaim::new(Layout::new(&settings.data_dir, &settings.run_dir))?;
    process::block_on(async {
        let mut signals = process::Signals::listen()?;
        let client = Client::new(Arc::new(identity.clone())).with_request_tallies(identity.requests());
        let asking = async {
            // A plug-in of another's gives addresses as it knows: whether the Node has ranges is its matter.
            let ranges = match settings.pod_link.is_plugin() {
                true => Vec::new(),
                false => pod_ranges(&client, &settings.node_name, &settings.data_dir).await?,
            };
            anyhow::Ok((ranges, cluster_network(&client, &settings.data_dir).await?))
        };
        let (ranges, told) = tokio::select! {
            biased;
            told = asking => told?,
            () = signals.told_to_end() => return Ok(()),
        };
        settings.runtime.pod_cidrs = ranges;
        settings.runtime.pod_link.clone_from(&settings.pod_link);
        settings.runtime.cluster_cidrs.clone_from(&told.network.cluster_cidrs);
        (settings.network, settings.node_ports, settings.dns) = (told.network, told.node_ports, told.dns);
        claim.serves();
        until_told(&settings, identity, &mut signals).await
    })?;
    claim.ended_in_order();
    Ok(())
}

/// Runs the node until a signal comes, then lets it finish what it is about.
async fn until_told(
    settings: &node_agent::Settings,
    identity: NodeIdentity,
    signals: &mut process::Signals,
) -> Result<()> {
    let layout = Layout::new(&settings.data_dir, &settings.run_dir);
    identity.serves_at(node_agent::address(&layout), settings.kubelet_port)?;
    let kept = KeptStore::load(&settings.data_dir)?;
    let cluster = ClusterAccess {
        server: ServerAccess::Remote(Arc::new(identity.clone()), KeptAnswers::new(kept.clone()), identity.requests()),
        trust: Arc::new(identity.clone()),
        clock: process::clock(),
        journal: Arc::new(JournalBook::default()),
        stop: watch::Sender::new(false),
    };
    let keeping = tokio::spawn(identity.keep(cluster.stopping()));
    let writing = tokio::spawn(kept.run(cluster.stopping()));
    let drain = watch::Sender::new(false);
    let node = node_agent::run(settings, &cluster, None, drain.subscribe());
    tokio::pin!(node);
    let ended = loop {
        tokio::select! {
            biased;
            told = signals.told() => match told {
                process::ShutdownSignal::End => {
                    notify_service_manager("STOPPING=1");
                    cluster.stop.send_replace(true);
                    let ended = tokio::time::timeout(STOP_DEADLINE, &mut node).await;
                    break ended.context("the node did not end in time").and_then(|it| it);
                }
                process::ShutdownSignal::Drain => {
                    drain.send_replace(true);
                }
            },
            ended = &mut node => break ended,
        }
    };
    cluster.stop.send_replace(true);
    keeping.await.context("looking after the node's certificate")?;
    writing.await.context("keeping what the node needs without the API")?;
    ended
}
