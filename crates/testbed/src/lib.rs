//! The real program: built, started, spoken to, killed.

mod connection;
mod control_plane;
mod node;
mod port;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

pub use connection::{Connection, ServerAddress, Shared, expect, text_field};
pub use control_plane::{ControlPlane, Data, Launcher, cpu_of, memory_of};
pub use node::RealNode;
pub use port::free_port;

/// What the program is built for.
#[derive(Clone, Copy)]
pub enum Profile {
    /// Tests: built in seconds.
    Release,
    /// What is shipped, and what is measured.
    Dist,
}

impl Profile {
    /// Its name in Cargo.toml, and that of its folder below `target`.
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }
}

/// The program under test: the one that is given, or one that is built for this.
pub fn program(given: Option<&Path>, profile: Profile) -> Result<PathBuf> {
    match given {
        Some(program) => Ok(program.to_owned()),
        None => Ok(build(profile, &["corten"])?.join("corten")),
    }
}

/// The folder of the project's source.
///
/// # Errors
/// This crate does not lie two folders below it.
pub fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.ancestors().nth(2).context("finding the workspace")?.to_owned())
}

/// The folder of etcd's programs, where `cargo xtask etcd` has fetched them.
///
/// # Errors
/// As of [`root`].
pub fn etcd_programs() -> Result<Option<PathBuf>> {
    let programs = root()?.join("target/etcd/usr/bin");
    Ok(["etcd", "etcdctl"].iter().all(|it| programs.join(it).exists()).then_some(programs))
}

/// Answers the folder of the programs.
///
/// # Errors
/// Cargo does not run, or the packages do not build.
pub fn build(profile: Profile, packages: &[&str]) -> Result<PathBuf> {
    let root = root()?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(&root).args(["build", "--profile", profile.name()]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    let status = cargo.status().context("running cargo")?;
    if !status.success() {
        bail!("cargo build ended with {status}");
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(profile.name()))
}
