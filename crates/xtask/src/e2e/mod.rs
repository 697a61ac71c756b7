//! `cargo xtask e2e`: plays scripts of real commands (kubectl, corten, curl) against the real program.
//!
//! `e2e/control-plane/` and `e2e/clients/` run against `corten server`, without root; `e2e/node/` against a whole node with
//! real containers, where there is root and containerd, `e2e/cluster/` against several; `e2e/pods/` holds Pods as data, and what must be seen of them. A part
//! that cannot run here says so and is counted as skipped.

mod apart;
mod cluster;
mod pods;
mod script;
mod tools;

use std::{
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use cluster::Cluster;
pub(crate) use cluster::{build_images, images_cache, in_path, missing};
use corten_testbed::root;
pub(crate) use script::{Script, Shell};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only scripts whose path contains this, or one of several between commas: 10,20
    #[arg(default_value = "")]
    filter: String,
    /// Only what is in this folder of e2e
    #[arg(long, value_parser = ["node", "pods", "control-plane", "clients", "cluster"])]
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
    /// Play this lane, which is to have a network of its own, in the network that there is
    #[arg(long, hide = true)]
    lane: Option<usize>,
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
    let lanes = if args.running.is_some() {
        RUNNING
    } else if corten_machine::systemd_is_in_charge() {
        LANES_OF_SYSTEMD
    } else {
        LANES
    };
    let chosen = lanes.iter().enumerate().filter(|(number, _)| args.lane.is_none_or(|it| it == *number));
    let tally = std::thread::scope(|scope| {
        let (root, corten) = (&root, &corten);
        let lanes: Vec<_> = chosen.map(|(n, it)| scope.spawn(move || it.play(n, root, corten, args))).collect();
        let tallies = lanes.into_iter().map(|it| it.join().map_err(|_| anyhow!("a lane of scripts panicked"))?);
        tallies.sum::<Result<Tally>>()
    })?;
    println!("{tally}");
    if tally.failed > 0 {
        bail!("{} scripts or cases failed", tally.failed);
    }
    Ok(())
}

/// Suites that are played one after the other. Lanes run side by side: scripts mostly wait, and what one lane does to its
/// cluster, or to the machine, does not show in the other.
#[derive(Clone, Copy)]
struct Lane {
    suites: &'static [Suite],
    /// In a network of its own, which leads nowhere: a machine's network has room for one node.
    is_apart: bool,
}

/// A folder of e2e; of its scripts those whose names are in the range.
struct Suite {
    name: &'static str,
    from: &'static str,
    to: &'static str,
}

const fn whole(name: &'static str) -> Suite {
    part(name, "", "~")
}

/// Of a suite what sorts from `from` up to `to`, without that.
const fn part(name: &'static str, from: &'static str, to: &'static str) -> Suite {
    Suite { name, from, to }
}

impl Suite {
    fn scripts(&self, root: &Path, filter: &str) -> Result<Vec<Script>> {
        let mut paths = script_paths(root, self.name, filter)?;
        let is_ours = |name: &OsStr| name >= OsStr::new(self.from) && name < OsStr::new(self.to);
        paths.retain(|it| it.file_name().is_some_and(is_ours));
        paths.iter().map(|it| Script::read(root, it)).collect()
    }
}

/// Lanes take about as long as each other, and are no more than that needs: they share the processor. Of the nodes, the one in the
/// machine's own network plays what disturbs the whole machine.
const LANES: &[Lane] = &[
    Lane { suites: &[part("node", "", "76"), whole("pods")], is_apart: true },
    Lane { suites: &[part("node", "89", "~")], is_apart: true },
    Lane { suites: &[part("node", "76", "89"), part("control-plane", "u", "~")], is_apart: false },
    Lane { suites: &[part("control-plane", "", "u")], is_apart: false },
    Lane { suites: &[part("cluster", "", "41"), part("cluster", "50", "60"), whole("clients")], is_apart: false },
    Lane { suites: &[part("cluster", "41", "50")], is_apart: false },
    Lane { suites: &[part("cluster", "60", "~")], is_apart: false },
];
/// systemd starts nodes in the machine's own network, whichever that is of whoever asks for one.
const LANES_OF_SYSTEMD: &[Lane] = &[
    Lane { suites: &[whole("node"), whole("pods")], is_apart: false },
    Lane { suites: &[whole("control-plane")], is_apart: false },
    LANES[4],
    LANES[5],
    LANES[6],
];
/// On a node that runs already.
const RUNNING: &[Lane] = &[Lane { suites: &[whole("pods")], is_apart: false }];

impl Lane {
    fn play(&self, number: usize, root: &Path, corten: &Path, args: &Args) -> Result<Tally> {
        let mut tally = Tally::default();
        for suite in self.suites.iter().filter(|it| args.suite.as_ref().is_none_or(|wanted| wanted == it.name)) {
            let scripts = if suite.name == "pods" { Vec::new() } else { suite.scripts(root, &args.filter)? };
            let n = if suite.name == "pods" { pods::cases(root, &args.filter)?.len() } else { scripts.len() };
            if n == 0 {
                continue;
            }
            if let Some(missing) = cluster::missing(suite.name) {
                println!("e2e/{}: skipped {n}: {missing}", suite.name);
                tally.skipped += n;
                continue;
            }
            if self.is_apart && args.lane.is_none() {
                return Ok(tally.and(apart::play(number)?));
            }
            if suite.name == "pods" {
                pods(root, corten, args, &mut tally)?;
            } else {
                let playing = || format!("playing e2e/{}", suite.name);
                play(corten, suite.name, scripts, args, &mut tally).with_context(playing)?;
            }
        }
        Ok(tally)
    }
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
            None if suite == "cluster" => Cluster::members(corten, suite, &args.machine)?,
            None if suite == "node" => Cluster::node(corten, suite, &args.machine).context("starting the cluster")?,
            None => Cluster::control_plane(corten, suite, &args.machine).context("starting the cluster")?,
        };
        let has_passed = cluster.left_as_it_was(|cluster| script.play(cluster));
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
        tallies.fold(Self::default(), Self::and)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl Tally {
    fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }

    /// As it is printed; `None` for any other line.
    fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<usize> = line.split(' ').step_by(2).map_while(|it| it.parse().ok()).collect();
        let [passed, failed, skipped] = numbers[..] else { return None };
        Some(Self { passed, failed, skipped }).filter(|it| it.to_string() == line)
    }

    fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

pub(crate) fn scripts(root: &Path, suite: &str, filter: &str) -> Result<Vec<Script>> {
    script_paths(root, suite, filter)?.iter().map(|it| Script::read(root, it)).collect()
}

fn script_paths(root: &Path, suite: &str, filter: &str) -> Result<Vec<PathBuf>> {
    let dir = root.join("e2e").join(suite);
    let mut paths: Vec<PathBuf> = fs::read_dir(&dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .filter_map(|it| it.ok().map(|it| it.path()))
        .filter(|it| it.extension().is_some_and(|it| it == "e2e") && is_wanted(&in_project(root, it), filter))
        .collect();
    paths.sort();
    Ok(paths)
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
    fn what_a_lane_counted_is_read() {
        let tally = Tally { passed: 3, failed: 0, skipped: 12 };
        assert_eq!(Tally::parse(&tally.to_string()).map(|it| it.to_string()), Some(tally.to_string()));
        for line in ["", "3 passed", "ok     e2e/node/10-pods.e2e", "3 passed, 0 failed, 12 skipped, so far"] {
            assert!(Tally::parse(line).is_none(), "{line}");
        }
    }

    #[test]
    fn several_words_choose_scripts() {
        assert!(is_wanted("e2e/node/60-x.e2e", ""));
        assert!(is_wanted("e2e/node/60-x.e2e", "40,60"));
        assert!(!is_wanted("e2e/node/60-x.e2e", "40,50"));
        let path = in_project(Path::new("/home/40"), Path::new("/home/40/e2e/node/60-x.e2e"));
        assert!(!is_wanted(&path, "40,50"));
    }
}
