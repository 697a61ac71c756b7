//! `cargo xtask e2e`: plays scripts of real commands (kubectl, corten, curl) against the real program.
//!
//! `e2e/control-plane/` and `e2e/clients/` run against `corten server`, without root; `e2e/node/` against a whole node with
//! real containers, where there is root and containerd; `e2e/pods/` holds Pods as data, and what must be seen of them. A part
//! that cannot run here says so and is counted as skipped.

mod cluster;
mod pods;
mod script;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use cluster::Cluster;
pub(crate) use cluster::{build_images, images_cache, in_path, missing};
pub(crate) use script::{Script, Shell};

use crate::tidy::root;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only scripts whose path contains this, or one of several between commas: 10,20
    #[arg(default_value = "")]
    filter: String,
    /// Only what is in this folder of e2e
    #[arg(long, value_parser = ["node", "pods", "control-plane", "clients"])]
    suite: Option<String>,
    /// The program under test
    #[arg(long, default_value = "target/release/corten")]
    corten: PathBuf,
    /// Play the Pods on a node that runs already, with its folders `data` and `run` in DIR
    #[arg(long, value_name = "DIR")]
    running: Option<PathBuf>,
    /// How many Pods of the suite `pods` are played side by side
    #[arg(long, default_value_t = 12)]
    at_once: usize,
    #[command(flatten)]
    machine: cluster::Machine,
}

/// Plays every script; the first failure of a script ends that script, and the others go on.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = root()?;
    let corten = root.join(&args.corten);
    if !corten.exists() {
        bail!("{} is not there: build it with `cargo build --release -p corten`", corten.display());
    }
    let lanes: &[&[&str]] =
        if args.running.is_some() { &[&["pods"]] } else { &[&["node", "pods"], &["control-plane", "clients"]] };
    let tally = std::thread::scope(|scope| {
        let lanes: Vec<_> = lanes.iter().map(|it| scope.spawn(|| lane(it, &root, &corten, args))).collect();
        let tallies = lanes.into_iter().map(|it| it.join().map_err(|_| anyhow!("a lane of scripts panicked"))?);
        tallies.sum::<Result<Tally>>()
    })?;
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    if tally.failed > 0 {
        bail!("{} scripts or cases failed", tally.failed);
    }
    Ok(())
}

/// Suites that are played one after the other. Lanes run side by side: scripts mostly wait, and what one lane does to its
/// cluster, or to the machine, does not show in the other.
fn lane(suites: &[&str], root: &Path, corten: &Path, args: &Args) -> Result<Tally> {
    let mut tally = Tally::default();
    for &suite in suites.iter().filter(|it| args.suite.as_ref().is_none_or(|wanted| wanted == *it)) {
        if suite == "pods" {
            pods(root, corten, args, &mut tally)?;
            continue;
        }
        let scripts = scripts(root, suite, &args.filter)?;
        if scripts.is_empty() {
            continue;
        }
        if let Some(missing) = cluster::missing(suite) {
            println!("e2e/{suite}: skipped {} scripts: {missing}", scripts.len());
            tally.skipped += scripts.len();
            continue;
        }
        play(corten, suite, scripts, args, &mut tally).with_context(|| format!("playing e2e/{suite}"))?;
    }
    Ok(tally)
}

/// One suite's scripts share a cluster. One that fails leaves behind what the next would stumble over: these get a new one.
fn play(corten: &Path, suite: &str, scripts: Vec<Script>, args: &Args, tally: &mut Tally) -> Result<()> {
    let mut running = None;
    for script in scripts {
        if let Some(lack) = script.lacks(&mut cluster::here)? {
            println!("skipped {lack}");
            tally.skipped += 1;
            continue;
        }
        let mut cluster = match running.take() {
            Some(cluster) => cluster,
            None if suite == "node" => Cluster::node(corten, suite, &args.machine).context("starting the cluster")?,
            None => Cluster::control_plane(corten, suite, &args.machine).context("starting the cluster")?,
        };
        let has_passed = script.play(&mut cluster);
        tally.count(has_passed);
        if has_passed {
            running = Some(cluster);
        } else {
            cluster.stop().context("stopping the cluster after a failure")?;
        }
    }
    running.map_or(Ok(()), Cluster::stop).context("stopping the cluster")
}

/// The suite of data: on a cluster of its own, all at once.
fn pods(root: &Path, corten: &Path, args: &Args, tally: &mut Tally) -> Result<()> {
    let cases = pods::cases(root, &args.filter)?;
    if cases.is_empty() {
        return Ok(());
    }
    if let Some(missing) = cluster::missing("pods") {
        println!("e2e/pods: skipped {} cases: {missing}", cases.len());
        tally.skipped += cases.len();
        return Ok(());
    }
    let cluster = match &args.running {
        Some(dir) => Cluster::running(corten, dir, &args.machine),
        None => Cluster::node(corten, "pods", &args.machine).context("starting the cluster for e2e/pods")?,
    };
    let cluster = pods::play(cases, args.at_once, cluster, tally)?;
    cluster.stop().context("stopping the cluster of e2e/pods")
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |one, other| Self {
            passed: one.passed + other.passed,
            failed: one.failed + other.failed,
            skipped: one.skipped + other.skipped,
        })
    }
}

impl Tally {
    fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

pub(crate) fn scripts(root: &Path, suite: &str, filter: &str) -> Result<Vec<Script>> {
    let dir = root.join("e2e").join(suite);
    let mut paths: Vec<PathBuf> = fs::read_dir(&dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .filter_map(|it| it.ok().map(|it| it.path()))
        .filter(|it| it.extension().is_some_and(|it| it == "e2e") && is_wanted(&in_project(root, it), filter))
        .collect();
    paths.sort();
    paths.iter().map(|it| Script::read(root, it)).collect()
}

/// Where the project lies says nothing of a script.
fn in_project(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Does a path contain one of the words between the commas?
fn is_wanted(path: &str, filter: &str) -> bool {
    filter.split(',').any(|it| path.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_words_choose_scripts() {
        assert!(is_wanted("e2e/node/60-x.e2e", ""));
        assert!(is_wanted("e2e/node/60-x.e2e", "40,60"));
        assert!(!is_wanted("e2e/node/60-x.e2e", "40,50"));
        let path = in_project(Path::new("/home/40"), Path::new("/home/40/e2e/node/60-x.e2e"));
        assert!(!is_wanted(&path, "40,50"));
    }
}
