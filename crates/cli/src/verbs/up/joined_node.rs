//! The node of a machine that has joined another one's cluster, in the background as that of `corten up`.

use std::{
    cell::Cell,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::{ArgMatches, parser::ValueSource};
use corten_client::{Client, Error, https::HttpsTransport, kubeconfig::Kubeconfig};
use corten_meta::Time;
use corten_options::node_options;
use serde_json::Value;

use super::{
    TIMEOUT_MAX, lacks,
    readiness::{Awaited, heard_since},
    replacement, start, wait_until_ready,
};
use crate::connection::NODE_KUBECONFIG;
use corten_console::{failure::Failure, output, progress::Progress};
use corten_node_process::{
    node_lock::NodeLock,
    node_process::{self, NodeProcess, command_for},
    node_record::Record,
    supervision::Started,
};

/// Where a joined machine keeps who it is there.
const KUBECONFIG: &str = "kubelet/kubeconfig";

/// A machine that has joined a cluster has none of its own to start.
pub(super) fn refuse(node: &NodeProcess) -> Result<()> {
    let Ok(config) = Kubeconfig::load(&node.layout.data.join(KUBECONFIG)) else { return Ok(()) };
    let server = config.clusters.first().map(|it| it.cluster.server.clone()).unwrap_or_default();
    let message = format!("this machine is a node of the cluster at {server}, and has none of its own");
    Err(Failure::new(message).next(command_for(&node.layout, "join")).into())
}

/// Starts the node, and waits until its cluster says that it is Ready. Without options it has those of before.
///
/// # Errors
/// It ends, or is not Ready in time.
pub fn start_joined_node(matches: &ArgMatches, name: &str, kubeconfig: &Path) -> Result<()> {
    node_process::require_root("join")?;
    let node = NodeProcess::of(matches)?;
    let timeout = Duration::from_secs(*matches.get_one::<u64>("timeout").expect("has a default")).min(TIMEOUT_MAX);
    let end = Instant::now() + timeout;
    let mut progress = Progress::begin();
    let before = Record::load(&node.layout.data).options;
    let given = given(matches)?;
    let options = if given.is_empty() { before } else { given };
    if !options.is_empty() {
        progress.done(&format!("the node is told {}", options.join(" ")));
    }
    progress.doing("starting the node");
    node.refuse_others()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(async { replacement::refuse_skew(&client(kubeconfig)?).await })?;
    let turn = NodeLock::wait(&node, end, &mut progress)?;
    let is_restart = replacement::is_asked(matches);
    let mut started = start(&node, (&options, options.clone()), is_restart, &mut progress)?;
    drop(turn);
    let begun = started.as_ref().and_then(Started::begun);
    let (silence, awaited) = (Cell::new(None), Awaited::of(&options));
    let object = runtime.block_on(async {
        // Read anew each time: the node may be replacing its certificate just now.
        let ask = async || match ask(kubeconfig, (name, &awaited), begun).await {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Transport(_))) => {
                let object = ask_node_itself(kubeconfig, name).await.ok_or_else(|| anyhow::anyhow!("{error:#}"))?;
                silence.set(Some(format!("{error:#}")));
                Ok(object)
            }
            answer => answer,
        };
        wait_until_ready(&node, &mut started, name, end, &mut progress, ask).await
    })?;
    match silence.take() {
        None => awaited.tell(name, &object, &mut progress),
        Some(silence) => progress.done(&format!("node {name} runs what it had; no control plane answers: {silence}")),
    }
    drop(progress);
    output::text(&lacks(&object))
}

/// The options of the node that stood on the command line, as the node takes them.
fn given(matches: &ArgMatches) -> Result<Vec<String>> {
    let is_given = |name: &&&str| matches.value_source(name) == Some(ValueSource::CommandLine);
    let mut options = Vec::new();
    for name in ["node-name", "kubelet-port"].iter().filter(is_given) {
        let value = matches.get_raw(name).and_then(|mut it| it.next()).map(|it| it.to_string_lossy().into_owned());
        options.extend(value.map(|it| format!("--{name}={it}")));
    }
    if let Some(path) = matches.get_one::<std::path::PathBuf>("pod-manifest-path") {
        options.push(format!("--pod-manifest-path={}", std::path::absolute(path)?.display()));
    }
    options.extend(node_options::given(matches));
    Ok(options)
}

/// The Node, where it is as awaited, if its kubelet has said since `begin` that it is there.
async fn ask(kubeconfig: &Path, (name, awaited): (&str, &Awaited), begin: Option<Time>) -> Result<Value> {
    let client = client(kubeconfig)?;
    let object = client.get_path(&format!("/api/v1/nodes/{name}")).await?;
    let object: Value = serde_json::from_slice(&object).context("reading the node")?;
    awaited.lack(&object).map_err(anyhow::Error::msg)?;
    if let Some(begin) = begin {
        heard_since(&client, name, begin).await?;
    }
    Ok(object)
}

/// The Node as the node itself has it: it runs, whether or not any server answers.
async fn ask_node_itself(kubeconfig: &Path, name: &str) -> Option<Value> {
    let client = client(&kubeconfig.with_file_name(NODE_KUBECONFIG)).ok()?;
    let object = client.get_path(&format!("/api/v1/nodes/{name}")).await.ok()?;
    serde_json::from_slice(&object).ok()
}

fn client(kubeconfig: &Path) -> Result<Client> {
    let target = Kubeconfig::load(kubeconfig)?.target(None)?;
    Ok(Client::new(Arc::new(HttpsTransport::new(&target)?)).with_deadline(Duration::from_secs(5)))
}
