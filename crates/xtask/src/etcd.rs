//! `cargo xtask etcd`: fetches the etcd that Debian packages, without installing it, and holds the store's contract against it.
//!
//! The scripts of `e2e/` find it where `target/etcd` is in the path: `cargo xtask etcd` says how.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use corten_testbed::{etcd_programs, root};

use crate::debian::Apt;

/// The release whose etcd is new enough: bookworm's tells progress too early.
const RELEASE: &str = "trixie";
const PACKAGES: [&str; 2] = ["etcd-server", "etcd-client"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only fetch it, and print the folder of its programs
    #[arg(long)]
    fetch: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let programs = programs(&root()?)?;
    println!("{}", programs.display());
    if args.fetch {
        return Ok(());
    }
    let tests = ["test", "-p", "corten-etcd", "--features", "real"];
    let status = Command::new("cargo").args(tests).env("CORTEN_ETCD", &programs).status().context("running cargo")?;
    if !status.success() {
        bail!("the tests against etcd failed");
    }
    Ok(())
}

/// The folder with `etcd` and `etcdctl`, which are fetched once.
fn programs(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/etcd");
    if let Some(programs) = etcd_programs()? {
        return Ok(programs);
    }
    let apt = Apt::new(folder.join("apt"), "deb", RELEASE)?;
    apt.run(&[&["download"][..], &PACKAGES].concat())?;
    for file in fs::read_dir(&apt.folder).context("looking for the packages")? {
        let path = file.context("looking for the packages")?.path();
        if path.extension().is_some_and(|it| it == "deb") {
            let status = Command::new("dpkg-deb").arg("-x").arg(&path).arg(&folder).status();
            if !status.context("running dpkg-deb")?.success() {
                bail!("{} cannot be unpacked", path.display());
            }
        }
    }
    Ok(folder.join("usr/bin"))
}
