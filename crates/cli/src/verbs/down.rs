//! `corten down`: everything stopped, nothing left on the machine but the data.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use corten_machine::locked_process;
use corten_records::etcd_member::EtcdFolder;
use rustix::process::Signal;

use crate::Verb;
use corten_console::{output, progress::Progress};
use corten_node_process::{
    node_lock::NodeLock,
    node_process::{self, GRACE, NodeProcess},
    node_record::Record,
    supervision,
};

pub(crate) const VERB: Verb = Verb {
    name: "down",
    about: "Stop the cluster on this machine, with all its containers",
    long_about: "Leaves no process, mount, network namespace, cgroup or nftables rule behind. All data stays: `corten up` goes on \
                 where `corten down` stopped. Harmless when nothing is up. Containers are killed; with `--drain` they are \
                 ended first, as when the machine shuts down: each with its grace, those of critical Pods last, and \
                 start again with the next `corten up`.",
    examples: "  corten down\n  corten down --drain && poweroff\n  corten up",
    args,
    run,
};

/// How long another command may take to start or end the node.
const TURN: Duration = Duration::from_secs(180);

/// How long a node may take to end its Pods; its own option `--shutdown-grace-period` is what ends it.
const DRAIN: Duration = Duration::from_secs(3600);

fn args(command: Command) -> Command {
    node_process::args(command).arg(
        Arg::new("drain")
            .long("drain")
            .action(ArgAction::SetTrue)
            .help("End Pods in good order first, within the node's --shutdown-grace-period"),
    )
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    node_process::require_root("down")?;
    let node = NodeProcess::of(matches)?;
    let mut progress = Progress::begin();
    if matches.get_flag("drain") {
        progress.doing("ending the pods");
        if node.drain(DRAIN)? {
            progress.done("the pods have ended");
        }
    }
    stop(&node, &mut progress)?.leave_folder();
    Ok(ExitCode::SUCCESS)
}

/// The member of etcd goes on when its node is killed.
fn end_etcd(node: &NodeProcess) -> Result<()> {
    let lock = EtcdFolder::of(&node.layout.data).lock();
    let looking =
        || locked_process::holder_within(&lock, GRACE).context("looking for the member of etcd on this machine");
    for signal in [Signal::TERM, Signal::KILL] {
        let Some(member) = looking()? else { return Ok(()) };
        member.signal(signal);
        member.ends_within(GRACE);
    }
    Ok(())
}

/// Ends the node first, and before it what would start it again, so that nothing starts what is being stopped: no `corten up`
/// either, until the turn has ended.
pub(crate) fn stop(node: &NodeProcess, progress: &mut Progress) -> Result<NodeLock> {
    node.refuse_others()?;
    progress.doing("stopping the node");
    corten_machine::could_be_a_nodes(&node.layout)?;
    let turn = NodeLock::wait(node, Instant::now() + TURN, progress)?;
    let has_run = node.runs()?;
    supervision::end(node, GRACE)?;
    // One in the foreground, one whose parent was killed, or one that does not end by itself.
    node.end(GRACE)?;
    end_etcd(node)?;
    if has_run {
        progress.done("the node has ended");
    }
    progress.doing("stopping containers");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(corten_host::stop_all(&node.layout)).context("taking the node from the machine")?;
    node.forget();
    if Record::find(&node.layout.data).is_some() {
        Record::change(&node.layout.data, |it| it.note_stop(output::now()));
    }
    progress.done("everything is stopped");
    Ok(turn)
}
