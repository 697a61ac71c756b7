//! `corten join`: this machine becomes a node of a cluster whose control plane is on another one.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use corten_cli::{Failure, NodeName, Verb};
use corten_node_process::node_folders::DATA_DIR;

use super::node;
use crate::{
    begin_again::begin_again_without,
    joined::{Invitation, JoinedFiles, NodeIdentity, discover, join, refuse_own_cluster},
    joined_node, logging, node_options, process,
};

pub(crate) const VERB: Verb = Verb {
    name: "join",
    about: "Make this machine a node of a cluster on another one, and wait until it is ready",
    long_about: "Takes the line that `corten token create` prints on a machine of the cluster. The machine asks for the cluster's \
                 authority, believes the one whose public key has the hash, is given a node's certificate by its token, and runs \
                 Pods from then on: with a containerd of its own, the kubelet, Services and the ways to other nodes' Pods. The node is \
                 started in the background and looked after as that of `corten up`; `corten down` ends it. \
                 Where another program of Corten runs it than this one, as after an upgrade, this one takes its place, and containers go on. \
                 The token is needed once: later starts go on with the certificate, which is replaced before it ends. Needs \
                 root and what `corten up` needs.",
    examples: "  corten join https://10.0.0.1:6443 --token abcdef.0123456789abcdef --ca-hash sha256:…\n  corten join\n  corten join --foreground",
    args,
    run,
};

fn args(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let folder = |name: &'static str, default: &'static str| {
        text(name, "DIR").value_parser(value_parser!(PathBuf)).default_value(default)
    };
    let command = command
        .arg(Arg::new("server").value_name("URL").help("The API server; none: the cluster that was joined before"))
        .arg(text("token", "ID.SECRET").requires("server").help("A bootstrap token of the cluster"))
        .arg(text("ca-hash", "sha256:DIGITS").requires("server").help("Of the public key of the cluster's authority"))
        .arg(folder("data-dir", DATA_DIR).help("Where everything is kept"))
        .arg(
            folder("run-dir", "/run/corten")
                .help("Where what lives no longer than the machine's run is kept: sockets, mounts, addresses"),
        );
    let command = command
        .arg(
            text("timeout", "SECONDS")
                .value_parser(value_parser!(u64))
                .default_value("180")
                .help("How long to wait until the node is Ready"),
        )
        .arg(
            Arg::new("foreground")
                .long("foreground")
                .action(ArgAction::SetTrue)
                .help("Run the node in this process, which nobody starts again when it fails"),
        );
    corten_cli::restart_args(corten_options::node_options::args(command))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new("a node needs root: it makes containers, mounts and packet rules")
            .next("sudo corten join …")
            .into());
    }
    let is_foreground = matches.get_flag("foreground");
    let _log = is_foreground.then(|| logging::begin(matches)).transpose()?;
    let folder = |name: &str| -> Result<PathBuf> {
        let dir = matches.get_one::<PathBuf>(name).context("clap gives a default")?;
        std::path::absolute(dir).with_context(|| format!("finding {}", dir.display()))
    };
    let (data_dir, run_dir) = (folder("data-dir")?, folder("run-dir")?);
    refuse_own_cluster(&data_dir)?;
    let name = NodeName::of(matches, &data_dir)?;
    let settings = node::settings(matches, &name, data_dir.clone(), run_dir)?;
    node_options::refuse_pod_network(settings.pod_network)?;
    // Whoever is not root shall not spend the token.
    corten_machine::close_data(&data_dir)?;
    let files = JoinedFiles::of(&data_dir);
    let identity = process::block_on(joined(matches, &name.name, files.clone()))?;
    name.keep(&data_dir)?;
    if is_foreground && matches.contains_id("token") {
        begin_again_without(&["--token", "--ca-hash"])?;
    }
    if is_foreground {
        joined_node::run(settings, identity)?;
    } else {
        corten_cli::start_joined_node(matches, &name.name, &files.kubeconfig)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Who this machine is in its cluster; it joins where it is in none.
async fn joined(matches: &ArgMatches, node: &str, files: JoinedFiles) -> Result<NodeIdentity> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let server = text("server").map(|it| it.trim_end_matches('/'));
    if let Some(identity) = NodeIdentity::load(node, files.clone())? {
        let joined = identity.server();
        if let Some(other) = server.filter(|it| !identity.is_of(it, text("ca-hash"))) {
            let message = format!("this machine is a node of the cluster at {joined}, not of that at {other}");
            return Err(Failure::new(message).next("corten reset").into());
        }
        match identity.has_ended() {
            None => {
                if let Some(server) = server {
                    identity.join_by(server).await?;
                }
                return Ok(identity);
            }
            Some(_) if text("token").is_some() => {}
            Some(end) => {
                let end = jiff::Timestamp::try_from(end).map(|it| it.to_string()).unwrap_or_default();
                let message = format!("the node's certificate ended at {end}: a token is needed to join again");
                return Err(Failure::new(message).next("corten token create # on a machine of the cluster").into());
            }
        }
    }
    let Some(server) = server else {
        let message =
            "this machine has joined no cluster yet: the line that joins it is printed by `corten token create`";
        return Err(Failure::new(message).next("corten token create # on a machine of the cluster").into());
    };
    let invitation = Invitation::of(server, text("token"), text("ca-hash"))?;
    let ca = discover(&invitation).await?;
    join(&invitation, &ca, node, &files).await?;
    eprintln!("✓ this machine is node {node} of the cluster at {server}");
    NodeIdentity::load(node, files)?.context("what was just written is there")
}
