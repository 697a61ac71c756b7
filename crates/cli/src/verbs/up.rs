//! `corten up`: this machine's control plane and node in the background, ready when this returns.

#[cfg(test)]
mod tests;

mod joined_node;
mod readiness;
pub(crate) mod replacement;
mod told;

use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use corten_client::{Client, Error, https::HttpsTransport, kubeconfig::Kubeconfig};
use corten_meta::Time;
use corten_options::{node_options, server_options};
use serde_json::Value;

use crate::{Verb, own_kubeconfig, why};
use corten_console::{failure::Failure, output, progress::Progress};
use corten_node_process::{
    node_folders::SNAPSHOTS_MADE,
    node_lock::NodeLock,
    node_name::NodeName,
    node_process::{self, NodeProcess, command_for},
    node_record::{Record, last_words},
    supervision::{self, Started},
};

pub use joined_node::start_joined_node;
use readiness::{Awaited, heard_since};
pub use replacement::args as restart_args;
pub use told::node_line;
use told::{arguments, as_before, options, refuse_other_options};

pub const VERB: Verb = Verb {
    name: "up",
    about: "Start a cluster on this machine, and wait until it is ready",
    long_about: "Starts the control plane and a node in the background, waits until the node is Ready, and writes a kubeconfig. \
                 A cluster that was taken down goes on with all its data; without options it has those of before. Harmless when it is up already. \
                 Where another program of Corten runs than this one, as after an upgrade, this one takes its place: Corten's process ends in \
                 order, containers and the member of etcd go on, and Pods are not restarted; --restart does the same for other options. When Corten fails it \
                 is started again, by systemd where that runs, else by a small process beside it; after too many failures \
                 within a short time it is given up, and `corten up` starts over. \
                 With --ha the cluster is kept in an etcd that Corten runs (needs Debian's etcd-server), and other machines come with the line \
                 of `corten token create --control-plane`: each has a node, a control plane and a member of that etcd. With three, each may \
                 be lost without anything being lost. Needs root, containerd, runc or crun, CNI plugins, nftables and iproute2; `./up` of the source tree installs them.",
    examples: "  corten up\n  corten up --port 7443 --node-name lab\n  corten up --ha --bind 10.0.0.1\n  \
               corten up --ha --join https://10.0.0.1:6443 --token abcdef.0123456789abcdef --ca-hash sha256:… --certificate-key …\n  kubectl get nodes",
    args,
    run,
};

/// How often the cluster is asked.
const PERIOD: Duration = Duration::from_millis(50);
const KUBELET_DEADLINE: Duration = Duration::from_secs(1);
/// So many lines of the log are shown where a node is late.
const WARNINGS_MAX: usize = 3;
const KINDS_DEADLINE: Duration = Duration::from_secs(15);
/// Nobody waits longer, and the end of it can be reckoned.
const TIMEOUT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

fn args(command: Command) -> Command {
    let command = node_process::args(command)
        .arg(
            Arg::new("bind")
                .long("bind")
                .value_name("ADDRESS")
                .default_value("127.0.0.1")
                .help("Where the API is served"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_name("PORT")
                .value_parser(value_parser!(u16).range(1..))
                .default_value("6443")
                .help("The port the API is served at"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64))
                .default_value("180")
                .help("How long to wait until the node is Ready"),
        );
    replacement::args(node_options::args(server_options::args(command)))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    node_process::require_root("up")?;
    let node = NodeProcess::of(matches)?;
    joined_node::refuse(&node)?;
    let before = Record::load(&node.layout.data).options;
    let (matches, mut remembered) = as_before(matches, &before);
    let matches = &matches;
    let node_name = NodeName::of(matches, &node.layout.data)?;
    let name = node_name.name.clone();
    let timeout = Duration::from_secs(*matches.get_one::<u64>("timeout").expect("has a default")).min(TIMEOUT_MAX);
    let end = Instant::now() + timeout;
    let mut progress = Progress::begin();

    if let Some(remark) = node_name.remark() {
        progress.done(&remark);
    }
    progress.doing("starting the cluster");
    let args = arguments(&node, matches, &name)?;
    let awaited = Awaited::of(&args);
    let admin = node.layout.data.join("admin.kubeconfig");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let object = loop {
        node.refuse_others()?;
        let turn = NodeLock::wait(&node, end, &mut progress)?;
        let mut started = start(&node, (&args, options(matches)), replacement::is_asked(matches), &mut progress)?;
        drop(turn);
        if let Some(remark) = started.as_ref().and_then(|_| remembered.take()) {
            progress.done(&remark);
        }
        let begun = started.as_ref().and_then(Started::begun);
        let mut is_refused = false;
        let ready = runtime.block_on(async {
            let client = wait_for_server(&node, &mut started, &admin, end, &mut progress).await?;
            progress.done("the API server answers");
            // Not before: one that is just ending has had its time.
            if started.is_none() {
                refuse_other_options(&node, &args, matches).inspect_err(|_| is_refused = true)?;
            }
            let object =
                wait_for_node(&node, &mut started, &client, (&name, &awaited, begun), end, &mut progress).await?;
            wait_for_kinds(&node, end, &mut progress).await;
            Ok::<_, anyhow::Error>(object)
        });
        // One that was just being killed looked as if it ran.
        if is_refused || ready.is_ok() || started.is_some() || has_node(&node)? || Instant::now() >= end {
            break ready?;
        }
    };
    awaited.tell(&name, &object, &mut progress);
    drop(progress);
    let kubeconfig = own_kubeconfig::install(&admin)?;
    output::text(&(lacks(&object) + &next_steps(kubeconfig.as_deref(), &admin)))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the node, unless it runs; then there is nothing to look at but the cluster. One of another program ends first.
fn start(
    node: &NodeProcess,
    (args, options): (&[String], Vec<String>),
    is_restart: bool,
    progress: &mut Progress,
) -> Result<Option<Started>> {
    if has_node(node)? && !replacement::end_other(node, is_restart, progress)? {
        progress.done("the cluster is running already");
        if supervision::resume(node)? {
            progress.done("its parent had ended: it is looked after again");
        }
        return Ok(None);
    }
    if let Some(given_up) = Record::load(&node.layout.data).given_up {
        progress.done(&format!("corten had been given up at {}; it starts over", corten_meta::Time(given_up.at.0)));
    }
    // It may rest after a failure: this start comes first, and has its own arguments.
    supervision::end(node, node_process::GRACE)?;
    supervision::start(node, args, options)
}

/// Does it run, or is about to?
fn has_node(node: &NodeProcess) -> Result<bool> {
    Ok(node.runs()? || supervision::is_starting(node)?)
}

/// Waits until the server is ready; a client for it. The kubeconfig is there a moment after the start.
async fn wait_for_server(
    node: &NodeProcess,
    started: &mut Option<Started>,
    admin: &Path,
    end: Instant,
    progress: &mut Progress,
) -> Result<Client> {
    progress.doing("waiting for the API server");
    let mut last;
    loop {
        refuse_authority_of_later(node)?;
        match ask_server(admin).await {
            Ok(client) => return Ok(client),
            Err(error) => last = error,
        }
        go_on_waiting(node, started, end, &last).await?;
    }
}

/// An authority that is not valid yet: kubectl believes nothing that it signs, however long one waits, and other clients do. The
/// cluster stays: it is well once the clock is.
fn refuse_authority_of_later(node: &NodeProcess) -> Result<()> {
    let file = node.layout.data.join("pki/ca.crt");
    let now = output::now();
    let validity = std::fs::read(&file).ok().and_then(|it| why::Validity::of(&it));
    let Some(validity) = validity.filter(|it| it.begin > now) else { return Ok(()) };
    let mut failure = Failure::new(format!(
        "the cluster's authority, {}, is not valid before {}, and it is {}",
        file.display(),
        validity.begin.whole_seconds(),
        now.whole_seconds()
    ));
    failure.details.push(format!(
        "where the clock is wrong, set it: the cluster runs, and answers from then on. Where it is right, it was ahead when the \
         cluster was made: `{}` makes a new authority",
        command_for(&node.layout, "certs rotate-ca")
    ));
    Err(failure.next("date").into())
}

async fn ask_server(admin: &Path) -> Result<Client> {
    let target = Kubeconfig::load(admin)?.target(None)?;
    let client = Client::new(Arc::new(HttpsTransport::new(&target)?)).with_deadline(Duration::from_secs(5));
    client.get_path("/readyz").await?;
    Ok(client)
}

async fn wait_for_node(
    node: &NodeProcess,
    started: &mut Option<Started>,
    client: &Client,
    (name, awaited, begun): (&str, &Awaited, Option<Time>),
    end: Instant,
    progress: &mut Progress,
) -> Result<Value> {
    let ask = async || {
        let object = ask_node(client, name, awaited).await?;
        if let Some(begun) = begun {
            heard_since(client, name, begun).await?;
        }
        Ok(object)
    };
    wait_until_ready(node, started, name, end, progress, ask).await
}

/// Waits until `ask` gives the Node.
async fn wait_until_ready(
    node: &NodeProcess,
    started: &mut Option<Started>,
    name: &str,
    end: Instant,
    progress: &mut Progress,
    ask: impl AsyncFn() -> Result<Value>,
) -> Result<Value> {
    progress.doing(format!("waiting for node {name}"));
    loop {
        let last = match ask().await {
            Ok(node) => return Ok(node),
            Err(error) => error,
        };
        progress.doing(format!("waiting for node {name}: {last:#}"));
        go_on_waiting(node, started, end, &last).await?;
    }
}

/// Waits until what a new cluster is given by its node is served: who reads that it is up asks for it at once. Where others
/// refuse it, by a webhook say, the cluster is up without.
async fn wait_for_kinds(node: &NodeProcess, end: Instant, progress: &mut Progress) {
    let end = end.min(Instant::now() + KINDS_DEADLINE);
    progress.doing("waiting for the kinds of snapshots");
    while !node.layout.data.join(SNAPSHOTS_MADE).exists() {
        if Instant::now() >= end {
            progress.done(
                "the kinds of snapshots are not served yet: snapshots of volumes cannot be taken before they are",
            );
            return;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The Node, where it is as awaited.
async fn ask_node(client: &Client, name: &str, awaited: &Awaited) -> Result<Value> {
    let object = match client.get_path(&format!("/api/v1/nodes/{name}")).await {
        Err(Error::Status(status)) if status.is_not_found() => bail!("it has not said yet that it is there"),
        object => object?,
    };
    let object: Value = serde_json::from_slice(&object).context("reading the node")?;
    awaited.lack(&object).map_err(anyhow::Error::msg)?;
    // What the Node says may be from before this start: its kubelet answers once the runtime does.
    let path = format!("/api/v1/nodes/{name}/proxy/healthz");
    let answer = tokio::time::timeout(KUBELET_DEADLINE, client.get_path(&path)).await;
    answer.context("too late").and_then(|it| Ok(it?)).map_err(of_kubelet)?;
    Ok(object)
}

/// A node that starts for the first time is given its certificate a moment after it is Ready.
fn of_kubelet(error: anyhow::Error) -> anyhow::Error {
    let is_early = format!("{error:#}").contains("has no serving certificate yet");
    if is_early {
        anyhow::anyhow!("its certificate is being signed")
    } else {
        error.context("its kubelet does not answer")
    }
}

/// Pauses, unless there is nothing left to wait for.
async fn go_on_waiting(
    node: &NodeProcess,
    started: &mut Option<Started>,
    end: Instant,
    last: &anyhow::Error,
) -> Result<()> {
    let ended = match started {
        Some(started) => Record::load(&node.layout.data).has_ended_since_start() || !started.is_alive()?,
        None => !has_node(node)?,
    };
    if ended {
        let Some(own) = started.take() else { return Err(ended_failure(node).into()) };
        let _turn = NodeLock::wait(node, end, &mut Progress::begin())?;
        if !own.is_replaced(node) {
            // A start that fails at once is the caller's to mend; one that ran is looked after.
            supervision::end(node, node_process::GRACE)?;
            *started = Some(own);
            return Err(ended_failure(node).into());
        }
    }
    if Instant::now() > end {
        return Err(late_failure(node, last).into());
    }
    tokio::time::sleep(PERIOD).await;
    Ok(())
}

/// What is still awaited, and what the log warns of: who waits for a node is seldom told why it says nothing.
fn late_failure(node: &NodeProcess, awaited: &anyhow::Error) -> Failure {
    let log = node.log_path();
    let mut failure = Failure::new(format!("the cluster is not ready in time: {awaited:#}; see {}", log.display()));
    let words = last_words::of(&log, 0);
    let warns = |it: &&String| ["WARN", "ERROR"].iter().any(|level| it.contains(level));
    let warnings: Vec<String> =
        words.iter().rev().filter(warns).take(WARNINGS_MAX).map(|it| format!("  {it}")).collect();
    failure.details.extend(warnings.into_iter().rev());
    failure.next(command_for(&node.layout, "why"))
}

/// Why the node ended, and what helps.
fn ended_failure(node: &NodeProcess) -> Failure {
    let ends = Record::load(&node.layout.data).ends;
    let words = ends.into_iter().next_back().map(|it| it.words).filter(|it| !it.is_empty());
    let words = words.unwrap_or_else(|| last_words::of(&node.log_path(), 0));
    let mut failure = Failure::new(format!("the node has ended; the end of {}:", node.log_path().display()));
    failure.details = words.iter().map(|it| format!("  {it}")).collect();
    if let Some(remedy) = why::remedy(words.iter().map(String::as_str), &node.layout) {
        failure.details.push(remedy.message);
        failure.next = Some(remedy.next);
    }
    failure
}

/// What the machine cannot do, as a table; nothing where it lacks nothing.
fn lacks(node: &Value) -> String {
    let lacks = node["metadata"]["annotations"][corten_host::LACKS_ANNOTATION].as_str().unwrap_or_default();
    let rows = corten_host::lacks_of(lacks);
    if rows.is_empty() {
        return String::new();
    }
    let width = rows.iter().map(|it| it.id.len()).max().unwrap_or_default();
    let mut text = "\nThis machine cannot do all that Kubernetes knows. It lacks:\n".to_owned();
    for row in rows {
        text += &format!("  {:width$}  {}\n  {:width$}  needs {}\n", row.id, row.without, "", row.remedy);
    }
    text
}

fn next_steps(kubeconfig: Option<&Path>, admin: &Path) -> String {
    let mut text = "\nThe cluster is up. Try next:\n".to_owned();
    if kubeconfig.is_none() {
        text += &format!("  export KUBECONFIG={}\n", admin.display());
    }
    text += "  kubectl get nodes -o wide\n  \
             kubectl create deployment web --image=nginx:1.22 --replicas=2\n  \
             corten why deployment/web\n";
    text
}
