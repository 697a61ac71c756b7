//! `cargo xtask machines`: plays the scripts of `e2e/machine/` on whole Debian machines, whose plug can be pulled.
//!
//! A script has the form of those of `e2e/node/`. Its commands run in the machine; `e2e/machine/README.md` explains what is
//! done to the machine itself.

mod node_suite;
mod payload;
mod shell;

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, Result, bail};
use corten_testbed::root;

pub(crate) use self::payload::Payload;
use self::shell::Machines;
use crate::{
    e2e::{Script, Shell as _, scripts},
    machine::{Arch, Suite, base, missing, remove_on_signals},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only scripts whose path contains this, or one of several between commas: 10,20
    #[arg(default_value = "")]
    filter: String,
    /// The program under test, built for the machines' architecture [default: that of a release build]
    #[arg(long)]
    corten: Option<PathBuf>,
    /// The release of Debian, instead of one after another
    #[arg(long, value_enum)]
    suite: Option<Suite>,
    #[arg(long, value_enum, default_value_t = Arch::Amd64)]
    arch: Arch,
    /// MiB of memory of each machine
    #[arg(long, default_value_t = 2048)]
    memory: u32,
    /// Leave the machines as they are when the scripts have been played, or one has failed: `cargo xtask guest` goes on
    #[arg(long)]
    keep: bool,
    /// Go on with the machines that an earlier run kept: trixie-4711, of which each is trixie-4711-1 and so on
    #[arg(long, requires = "suite")]
    on: Option<String>,
    /// Play e2e/node in the machine instead
    #[arg(long)]
    node: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = root()?;
    let corten = root.join(args.corten.clone().unwrap_or_else(|| args.arch.built().into()));
    if !corten.is_file() {
        let build = if args.arch == Arch::OWN { "cargo build --release -p corten" } else { ".ci/arm64 release" };
        bail!("{} is not there: build it with `{build}`", corten.display());
    }
    if args.node && args.arch != Arch::OWN {
        bail!("e2e/node is played by this program itself, which is not built for {}", args.arch);
    }
    let folder = if args.node { "node" } else { "machine" };
    let scripts = scripts(&root, folder, &args.filter)?;
    if let Some(missing) = missing(args.arch) {
        println!("e2e/{folder}: skipped {} scripts: no machine can be emulated here; {missing}", scripts.len());
        return Ok(());
    }
    if scripts.is_empty() {
        bail!("no script of e2e/{folder} is called {:?}", args.filter);
    }
    remove_on_signals()?;
    let suites = args.suite.map_or_else(|| vec![Suite::Trixie, Suite::Bookworm], |it| vec![it]);
    let mut n_failed = 0;
    for suite in suites {
        let begin = Instant::now();
        let base = base(suite, args.arch).context("making the base disk")?;
        if args.node {
            let payload = Payload::with_suite(&root, &corten)?;
            n_failed += usize::from(!node_suite::play(args, suite, &base, &payload)?);
        } else {
            let payload = Payload::with_demo(&root, &corten, args.arch)?;
            let machines = || Machines::new(args, suite, base.clone(), &payload);
            n_failed += play(&scripts, machines, args.keep || args.on.is_some())?;
        }
        println!("{suite} {}: {:.0} s", args.arch, begin.elapsed().as_secs_f64());
    }
    if n_failed > 0 {
        bail!("{n_failed} scripts failed");
    }
    Ok(())
}

/// The scripts share a machine, as long as none fails: one that did leaves behind what the next would stumble over.
fn play<'a>(scripts: &[Script], machines: impl Fn() -> Machines<'a>, keep: bool) -> Result<usize> {
    let mut n_failed = 0;
    let mut running = machines();
    for script in scripts {
        if let Some(lack) = script.lacks(&mut |it| running.run(it))? {
            println!("skipped {lack}");
            continue;
        }
        if script.play(&mut running) {
            continue;
        }
        n_failed += 1;
        if keep {
            break;
        }
        running.remove()?;
        running = machines();
    }
    if keep {
        running.say_what_is_kept();
    } else {
        running.remove()?;
    }
    Ok(n_failed)
}
