//! `cargo xtask e2e`: plays scripts of real commands (kubectl, corten, curl) against the real program.
//!
//! `e2e/control-plane/` runs against `corten server`, without root; `e2e/node/` against a whole node with real
//! containers, where there is root and containerd. A part that cannot run here says so and is counted as skipped.

mod cluster;
mod script;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use cluster::Cluster;
use script::Script;

use crate::tidy::root;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only scripts whose path contains this
    #[arg(default_value = "")]
    filter: String,
    /// The program under test
    #[arg(long, default_value = "target/release/corten")]
    corten: PathBuf,
}

/// Plays every script; the first failure of a script ends that script, and the others go on.
pub(crate) fn run(args: &Args) -> Result<()> {
    let root = root()?;
    let corten = root.join(&args.corten);
    if !corten.exists() {
        bail!("{} is not there: build it with `cargo build --release -p corten`", corten.display());
    }
    let mut tally = Tally::default();
    for suite in ["control-plane", "node"] {
        let scripts = scripts(&root, suite, &args.filter)?;
        if scripts.is_empty() {
            continue;
        }
        if let Some(missing) = cluster::missing(suite) {
            println!("e2e/{suite}: skipped {} scripts: {missing}", scripts.len());
            tally.skipped += scripts.len();
            continue;
        }
        let cluster = if suite == "node" { Cluster::node(&corten) } else { Cluster::control_plane(&corten) };
        let mut cluster = cluster.with_context(|| format!("starting the cluster for e2e/{suite}"))?;
        for script in scripts {
            tally.count(script.play(&mut cluster));
        }
        cluster.stop().with_context(|| format!("stopping the cluster of e2e/{suite}"))?;
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    if tally.failed > 0 {
        bail!("{} scripts failed", tally.failed);
    }
    Ok(())
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
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

fn scripts(root: &std::path::Path, suite: &str, filter: &str) -> Result<Vec<Script>> {
    let dir = root.join("e2e").join(suite);
    let mut paths: Vec<PathBuf> = fs::read_dir(&dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .filter_map(|it| it.ok().map(|it| it.path()))
        .filter(|it| it.extension().is_some_and(|it| it == "e2e") && it.display().to_string().contains(filter))
        .collect();
    paths.sort();
    paths.iter().map(|it| Script::read(root, it)).collect()
}
