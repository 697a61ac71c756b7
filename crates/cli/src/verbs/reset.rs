//! `corten reset`: stops the cluster and erases it.

use std::{
    fs,
    io::{BufRead, IsTerminal, Write, stderr, stdin},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::down;
use crate::{Verb, own_kubeconfig, why};
use corten_console::{output, progress::Progress};
use corten_node_process::node_process::{self, NodeProcess};

pub(crate) const VERB: Verb = Verb {
    name: "reset",
    about: "Stop the cluster on this machine and erase all its data",
    long_about: "Everything `corten down` does, and then the data is erased: objects, certificates, images, volumes, logs. \
                 The next `corten up` starts a new, empty cluster. Asks first.",
    examples: "  corten reset\n  corten reset --yes",
    args,
    run,
};

fn args(command: Command) -> Command {
    let yes = Arg::new("yes").short('y').long("yes").action(ArgAction::SetTrue).help("Do not ask");
    node_process::args(command).arg(yes)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    node_process::require_root("reset")?;
    let node = NodeProcess::of(matches)?;
    let data = &node.layout.data;
    corten_host::may_be_erased(&node.layout)?;
    if let Some((own, others)) = why::etcd_needed_by(data, output::now()) {
        let others = others.join(", ");
        eprintln!(
            "warning: {others} cannot write any more once the member of etcd here is erased; `corten node remove {own}` takes it out first"
        );
    }
    if !matches.get_flag("yes") && !confirmed(&format!("Erase the cluster and all its data in {}?", data.display()))? {
        eprintln!("nothing was done");
        return Ok(ExitCode::FAILURE);
    }
    let mut progress = Progress::begin();
    let turn = down::stop(&node, &mut progress)?;
    progress.doing("erasing the data");
    // Ours is of no use without its cluster; another's is not touched.
    if let Some(path) =
        own_kubeconfig::usual().filter(|it| own_kubeconfig::leads_to_same_cluster(it, &data.join("admin.kubeconfig")))
    {
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    let kept = corten_host::erase(&node.layout)?;
    turn.leave_folder();
    progress.done("all data is erased");
    for it in kept {
        progress.done(&format!("{} is not Corten's, and stays", it.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn confirmed(question: &str) -> Result<bool> {
    if !stdin().is_terminal() {
        bail!("there is nobody to ask; give --yes to erase without asking");
    }
    eprint!("{question} Type yes: ");
    stderr().flush().context("asking")?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(answer.trim() == "yes")
}
