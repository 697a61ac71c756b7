//! `cargo xtask bench`: measures a running `corten server` from outside, over TLS, beside what Kubernetes does; and
//! `cargo xtask bench node` a whole node, beside what its runtime needs by itself; `cargo xtask bench storage` its volumes;
//! `cargo xtask bench network` what its network does in the kernel.
//!
//! Server and load share the machine's cores, as they did when the numbers of Kubernetes were taken.

#![expect(clippy::print_stdout, reason = "a command line prints")]

mod load;
mod machine;
mod measure;
mod network;
mod node;
mod objects;
mod report;
mod scheduler;
mod subject;
#[cfg(test)]
mod tests;
mod webhook;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use corten_testbed::{Launcher, Profile, build, program};

use self::{
    measure::Scale,
    report::{Report, Row},
    subject::Subject,
};

#[derive(clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(value_enum, default_value = "control-plane")]
    subject: Subject,
    /// A small run: is everything measured, and roughly right?
    #[arg(long)]
    quick: bool,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Also write the results as a page
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PROGRAM")]
    corten: Option<PathBuf>,
    /// Measure only these parts
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

pub fn run(args: &Args) -> Result<()> {
    // A slow load generator would measure itself; beside containers that start, this one does next to nothing.
    let is_light = matches!(args.subject, Subject::Node | Subject::Storage) && args.corten.is_some();
    if cfg!(debug_assertions) && !is_light {
        return run_optimized(args.corten.is_some());
    }
    let names: Vec<&str> = match args.subject {
        Subject::ControlPlane => measure::PARTS.iter().map(|(name, _)| *name).collect(),
        Subject::Node => node::PARTS.iter().map(|(name, _)| *name).collect(),
        Subject::Storage => node::STORAGE_PARTS.iter().map(|(name, _)| *name).collect(),
        Subject::Network => network::PARTS.iter().map(|(name, _)| *name).collect(),
    };
    if let Some(unknown) = args.only.iter().find(|it| !names.contains(&it.as_str())) {
        bail!("{unknown:?} is not measured; the parts are {}", names.join(", "));
    }
    let rows = measure(args)?;
    let report = Report { machine: machine::describe()?, quick: args.quick, subject: args.subject, rows };
    match args.output {
        Output::Table => println!("{}", report.table()),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report.json())?),
    }
    if let Some(file) = &args.write {
        let before = fs::read_to_string(file).unwrap_or_default();
        let page = report.page() + report::measured_otherwise(&before);
        fs::write(file, page).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn measure(args: &Args) -> Result<Vec<Row>> {
    let program = program(args.corten.as_deref(), Profile::Dist)?;
    if args.subject == Subject::Network {
        let scale = if args.quick { network::Scale::QUICK } else { network::Scale::FULL };
        return network::all(&program, scale, &args.only);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the load")?;
    if args.subject == Subject::ControlPlane {
        let scale = if args.quick { Scale::QUICK } else { Scale::FULL };
        return runtime.block_on(measure::all(&Launcher::new(program)?, scale, &args.only));
    }
    let scale = if args.quick { node::Scale::QUICK } else { node::Scale::FULL };
    let parts = if args.subject == Subject::Node { node::PARTS } else { node::STORAGE_PARTS };
    runtime.block_on(node::all(&program, parts, scale, &args.only))
}

/// Loads a control plane with what clusters do all day; how long it takes is not told.
pub fn load(program: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the load")?;
    let launcher = Launcher::new(program.to_owned())?;
    runtime.block_on(measure::all(&launcher, Scale::QUICK, &measure::DAILY.map(String::from)))?;
    Ok(())
}

fn run_optimized(is_given: bool) -> Result<()> {
    let packages = if is_given { &["xtask"][..] } else { &["corten", "xtask"] };
    let program = build(Profile::Dist, packages)?.join("xtask");
    let status = Command::new(&program).args(env::args_os().skip(1)).status().context("running the optimized bench")?;
    if !status.success() {
        bail!("the bench ended with {status}");
    }
    Ok(())
}
