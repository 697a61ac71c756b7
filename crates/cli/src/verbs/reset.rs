//! `corten reset`: stops the cluster and erases it.

use std::{
    fs,
    io::{BufRead, IsTerminal, Write, stderr, stdin},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{down, up};
use crate::{
    Verb,
    node_process::{self, NodeProcess},
    progress::Progress,
};

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
    is_a_nodes(data)?;
    if !matches.get_flag("yes") && !confirmed(&format!("Erase the cluster and all its data in {}?", data.display()))? {
        eprintln!("nothing was done");
        return Ok(ExitCode::FAILURE);
    }
    let mut progress = Progress::new();
    down::stop(&node, &mut progress)?;
    progress.doing("erasing the data");
    // Ours is of no use without its cluster; another's is not touched.
    if let Some(path) =
        up::default_kubeconfig().filter(|it| up::leads_to_same_cluster(it, &data.join("admin.kubeconfig")))
    {
        fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    corten_host::erase(&node.layout)?;
    progress.done("all data is erased");
    Ok(ExitCode::SUCCESS)
}

/// A slip in `--data-dir` must not erase somebody's home: what is to be erased looks like a node's, or is empty.
fn is_a_nodes(data: &std::path::Path) -> Result<()> {
    let Ok(mut entries) = fs::read_dir(data) else { return Ok(()) };
    let known = ["pki", "store", "containerd", "admin.kubeconfig"].iter().any(|it| data.join(it).exists());
    if !known && entries.next().is_some() {
        bail!("{} is not a cluster's data: nothing was erased", data.display());
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erases_clusters_only() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        is_a_nodes(dir.path()).expect("empty");
        is_a_nodes(&dir.path().join("absent")).expect("absent");
        fs::write(dir.path().join("thesis.tex"), "").expect("written");
        assert!(is_a_nodes(dir.path()).expect_err("refused").to_string().contains("not a cluster's data"));
        fs::create_dir(dir.path().join("pki")).expect("made");
        is_a_nodes(dir.path()).expect("a cluster's");
    }
}
