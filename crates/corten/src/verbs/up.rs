//! `corten up`, which also joins: with `--ha --join` this machine becomes another control plane, a member of etcd and a node.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use corten_cli::{Failure, UP, Verb, node_line};
use corten_options::server_options;

use super::{node, server};
use crate::node_options;

pub(crate) const VERB: Verb = Verb { args, run, ..UP };

fn args(command: Command) -> Command {
    server::invitation_args((UP.args)(command))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let is_ha = server_options::is_on(matches, "ha");
    let joins = matches.get_one::<String>("join").is_some();
    if joins && !is_ha {
        let mut failure = Failure::new("--join is for another control plane of a cluster with --ha");
        failure
            .details
            .push("`corten join URL` makes this machine a node, `corten server --join URL` a control plane".into());
        return Err(failure.next("corten token create # on a machine of the cluster").into());
    }
    if std::env::var_os("ETCD_FORCE_NEW_CLUSTER").is_some() {
        // Whoever starts the node again would do it again.
        let failure = Failure::new("ETCD_FORCE_NEW_CLUSTER is for one start: `corten up` would force it at each");
        return Err(failure.next("corten server --ha, until it is up; then corten up without the variable").into());
    }
    node_options::refuse_pod_network(node_options::pod_network(matches)?)?;
    node_options::refuse_unreachable_api(matches, &node_options::pod_link(matches)?)?;
    if rustix::process::geteuid().is_root() {
        // Before a token is spent, before anything runs in the background, and before what runs there ends.
        check(matches)?;
        if is_ha && server::join(matches)? {
            eprintln!("✓ this machine has the keys of the cluster");
            check(matches)?;
        }
    }
    (UP.run)(matches)
}

/// What the node would refuse to start with.
fn check(matches: &ArgMatches) -> Result<()> {
    let line = node_line(matches)?;
    let command = (node::VERB.args)(Command::new("node")).no_binary_name(true);
    let told = command.try_get_matches_from(line).context("reading what the node is told")?;
    node::check(&told)
}
