//! Another program takes the place of the one that runs: an upgrade, or the same one with other options. Only Corten's process ends.
//! Containers go on, and the member of etcd does.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use corten_api::version::{VERSION, is_own, kubelet_skew};
use corten_client::Client;
use corten_records::etcd_member::EtcdFolder;
use rustix::process::Pid;

use corten_console::{failure::Failure, progress::Progress};
use corten_node_process::{
    node_folders::process_file,
    node_process::{GRACE, NodeProcess, command_for},
    supervision,
};

/// Adds `--restart`.
pub fn args(command: Command) -> Command {
    command.arg(
        Arg::new("restart")
            .long("restart")
            .action(ArgAction::SetTrue)
            .help("Start what runs already again, with the options that are given; containers go on"),
    )
}

pub(super) fn is_asked(matches: &ArgMatches) -> bool {
    matches.get_flag("restart")
}

/// Why the node that runs ends before its time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    AnotherProgram,
    Asked,
}

/// Ends the node that runs, in order, where it is of another program than this one, or where that is asked for. Did it?
///
/// # Errors
/// It runs in the foreground: nobody would notice who started it.
pub(super) fn end_other(node: &NodeProcess, is_asked: bool, progress: &mut Progress) -> Result<bool> {
    let Some((pid, reason)) = other(node, is_asked) else { return Ok(false) };
    if !node.is_started_by_up(pid) && !supervision::is_looked_after(node)? {
        let mut failure =
            Failure::new(format!("a node runs in the foreground (process {}), and stays", pid.as_raw_nonzero()));
        failure.details.push("end it where it was started, and start it again there, or by `corten up`".to_owned());
        return Err(failure.next(command_for(&node.layout, "up")).into());
    }
    progress.doing("ending what runs; containers go on");
    let etcd = EtcdFolder::of(&node.layout.data);
    if etcd.record().exists() {
        let mark = etcd.goes_on();
        std::fs::write(&mark, "").with_context(|| format!("writing {}", mark.display()))?;
    }
    supervision::end(node, GRACE)?;
    // Its parent may have been killed.
    node.end(GRACE)?;
    progress.done(match reason {
        Reason::AnotherProgram => "another program of Corten ran: this one takes its place, and containers go on",
        Reason::Asked => "it starts again, and containers go on",
    });
    Ok(true)
}

fn other(node: &NodeProcess, is_asked: bool) -> Option<(Pid, Reason)> {
    // One that is just ending may have lost its number, and is nobody's to end.
    let (pid, _) = node.process().ok().flatten()?;
    // What cannot be looked at is taken to be the same: it ends, perhaps.
    let is_another = is_same(&process_file(pid, "exe"), Path::new("/proc/self/exe")).is_ok_and(|it| !it);
    let asked = is_asked.then_some(Reason::Asked);
    is_another.then_some(Reason::AnotherProgram).or(asked).map(|it| (pid, it))
}

/// The program of a process stays readable there though its file was replaced or removed (`proc_pid_exe(5)`).
fn is_same(running: &Path, own: &Path) -> std::io::Result<bool> {
    let (mut running, mut own) = (File::open(running)?, File::open(own)?);
    let (one, other) = (running.metadata()?, own.metadata()?);
    if (one.dev(), one.ino()) == (other.dev(), other.ino()) {
        return Ok(true);
    }
    if one.len() != other.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = running.read(&mut left)?;
        if n == 0 {
            return Ok(true);
        }
        match own.read_exact(&mut right[..n]) {
            Ok(()) if left[..n] == right[..n] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// The node of a cluster on other machines is no newer than its servers, and not much older. Where none answers nothing is known; and
/// what upstream's server does not serve yet, a node does without.
///
/// # Errors
/// This program is too far from the server's.
pub(super) async fn refuse_skew(client: &Client) -> Result<()> {
    let Ok(server) = client.server_version().await else { return Ok(()) };
    if !is_own(&server) {
        eprintln!("… the API server is Kubernetes's own, {server}: the node does without what it does not serve");
        return Ok(());
    }
    let Some(skew) = kubelet_skew(VERSION, &server) else { return Ok(()) };
    let mut failure = Failure::new(format!("this machine's node is not started by this program: {skew}"));
    failure.details.push("what runs on this machine goes on as it is".to_owned());
    Err(failure.next("corten up # with this program, on each machine with a control plane first").into())
}

#[cfg(test)]
mod tests;
