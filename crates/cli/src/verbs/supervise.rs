//! `corten supervise`: what `corten up` has look after the node.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};

use crate::Verb;
use corten_node_process::{
    node_process::{self, NodeProcess},
    supervision,
};

pub(crate) const VERB: Verb = Verb {
    name: "supervise",
    about: "Start a node again when it fails; `corten up` runs this",
    long_about: "`watch` keeps `corten node` running where no systemd does: it starts it, waits for its end, and starts it again, \
                 after a pause that grows from 1 s to 30 s; ten failures within ten minutes, and it is given up, with exit code \
                 69. A node that was told to end is not started again. SIGTERM ends the node and then this process; \
                 if this process alone is killed the node goes on, and `corten up` gives it another. In a unit of systemd `start` \
                 makes the same pauses, and becomes the node; `ended` notes how it ended. What was noted is in \
                 `supervision.json` in the data folder, and `corten why` tells it. What follows `--` are options of `corten node`.",
    examples: "  corten supervise watch\n  corten supervise watch --data-dir /srv/corten -- --port 7443",
    args,
    run,
};

fn args(command: Command) -> Command {
    let options = Arg::new("options").last(true).num_args(0..).value_name("OPTIONS").help("Options of `corten node`");
    let mode = |name: &'static str, about: &'static str| {
        node_process::args(Command::new(name).about(about).disable_help_subcommand(true))
    };
    command
        .subcommand_required(true)
        .subcommand(mode("watch", "Start the node, and start it again when it fails").arg(options.clone()))
        .subcommand(
            mode("start", "As a service of systemd: rest as failures before demand, then become the node").arg(options),
        )
        .subcommand(mode("ended", "As a service of systemd: note how the node ended"))
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some((mode, matches)) = matches.subcommand() else { bail!("say what to do: watch, start or ended") };
    node_process::require_root("supervise")?;
    let node = NodeProcess::of(matches)?;
    let options = || matches.get_many::<String>("options").into_iter().flatten().cloned().collect::<Vec<_>>();
    match mode {
        "watch" => supervision::watch(&node, &options()),
        "start" => supervision::start_as_service(&node, &options()),
        _ => supervision::note_end_of_service(&node),
    }
}
