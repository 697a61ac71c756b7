//! `cargo xtask etcd`: fetches the etcd that Debian packages, without installing it, and holds the store's contract against it.
//!
//! The scripts of `e2e/` find it where `target/etcd` is in the path: `cargo xtask etcd` says how.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::tidy::root;

/// The release whose etcd is new enough: bookworm's tells progress too early.
const RELEASE: &str = "trixie";
const PACKAGES: [&str; 2] = ["etcd-server", "etcd-client"];
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

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
    if let Some(programs) = fetched(root) {
        return Ok(programs);
    }
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(part)).with_context(|| format!("making {}", apt.display()))?;
    }
    fs::write(apt.join("sources.list"), format!("deb [signed-by={KEYRING}] {MIRROR} {RELEASE} main\n"))
        .context("naming Debian's mirror")?;
    command(&apt, &["update"])?;
    command(&apt, &[&["download"][..], &PACKAGES].concat())?;
    for file in fs::read_dir(&apt).context("looking for the packages")? {
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

/// The folder of its programs, where they have been fetched.
pub(crate) fn fetched(root: &Path) -> Option<PathBuf> {
    let programs = root.join("target/etcd/usr/bin");
    ["etcd", "etcdctl"].iter().all(|it| programs.join(it).exists()).then_some(programs)
}

/// `apt-get` with lists and a cache of its own: nothing of the machine's changes.
fn command(apt: &Path, words: &[&str]) -> Result<()> {
    let at = |name: &str| apt.join(name).display().to_string();
    let settings = [
        ("Dir::Etc::sourcelist", at("sources.list")),
        ("Dir::Etc::sourceparts", "/dev/null".into()),
        ("Dir::State::lists", at("lists")),
        ("Dir::State::status", "/dev/null".into()),
        ("Dir::Cache", at("cache")),
        ("Acquire::Languages", "none".into()),
        ("APT::Sandbox::User", "root".into()),
    ];
    let mut command = Command::new("apt-get");
    command.arg("-qq").current_dir(apt);
    for (name, value) in settings {
        command.args(["-o", &format!("{name}={value}")]);
    }
    let status = command.args(words).status().context("running apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed", words.join(" "));
    }
    Ok(())
}
