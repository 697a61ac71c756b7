//! `cargo xtask bench`: measures a running `corten server` from outside, over TLS, beside what Kubernetes does.
//!
//! Server and load share the machine's cores, as they did when the numbers of Kubernetes were taken.

mod connection;
mod control_plane;
mod load;
mod machine;
mod measure;
mod objects;
mod report;
#[cfg(test)]
mod tests;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use self::{control_plane::Launcher, measure::Scale, report::Report};

#[derive(clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(args: &Args) -> Result<()> {
    // A slow load generator would measure itself.
    if cfg!(debug_assertions) {
        return run_optimized();
    }
    if let Some(unknown) = args.only.iter().find(|it| !measure::PARTS.iter().any(|(name, _)| name == it)) {
        let names: Vec<_> = measure::PARTS.iter().map(|(name, _)| *name).collect();
        bail!("{unknown:?} is not measured; the parts are {}", names.join(", "));
    }
    let program = match &args.corten {
        Some(program) => program.clone(),
        None => build(&["corten"])?.join("corten"),
    };
    let scale = if args.quick { Scale::QUICK } else { Scale::FULL };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the load")?;
    let rows = runtime.block_on(measure::all(&Launcher::new(program)?, scale, &args.only))?;

    let report = Report { machine: machine::describe()?, quick: args.quick, rows };
    match args.output {
        Output::Table => println!("{}", report.table()),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report.json())?),
    }
    if let Some(file) = &args.write {
        fs::write(file, report.page()).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn run_optimized() -> Result<()> {
    let program = build(&["corten", "xtask"])?.join("xtask");
    let status = Command::new(&program).args(env::args_os().skip(1)).status().context("running the optimized bench")?;
    if !status.success() {
        bail!("the bench ended with {status}");
    }
    Ok(())
}

/// Answers the folder of the programs.
fn build(packages: &[&str]) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("finding the workspace")?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(root).args(["build", "--release"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    let status = cargo.status().context("running cargo")?;
    if !status.success() {
        bail!("cargo build ended with {status}");
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release"))
}
