//! `cargo xtask bench node`: a whole node with real containers, beside what its runtime needs by itself; and `bench storage`,
//! its volumes.
//!
//! What the runtime needs by itself is measured in the same minutes, by turns, while Corten stands still.

mod claims;
mod clones;
mod dns;
mod ends;
mod floor;
mod memory;
mod pods;
mod services;
mod starts;
mod volumes;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use corten_testbed::RealNode;

use super::report::Row;

#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// One Pod after the other.
    starts: usize,
    /// Pods at once, and how often.
    at_once: usize,
    rounds: usize,
    /// For memory.
    pods: usize,
    services: usize,
    changes: usize,
    queries: usize,
    claims: usize,
    /// Of the volume that is cloned, in MiB.
    cloned_mib: usize,
}

impl Scale {
    pub(super) const FULL: Self = Self {
        starts: 20,
        at_once: 30,
        rounds: 3,
        pods: 100,
        services: 10_000,
        changes: 20,
        queries: 200_000,
        claims: 1_000,
        cloned_mib: 1_024,
    };
    pub(super) const QUICK: Self = Self {
        starts: 3,
        at_once: 10,
        rounds: 1,
        pods: 20,
        services: 500,
        changes: 5,
        queries: 20_000,
        claims: 100,
        cloned_mib: 64,
    };
}

type Part =
    for<'a> fn(&'a RealNode, Scale, &'a mut Vec<Row>) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(super) const PARTS: &[(&str, Part)] = &[
    ("starts", |node, scale, rows| Box::pin(starts::measure(node, scale, rows))),
    ("ends", |node, scale, rows| Box::pin(ends::measure(node, scale, rows))),
    ("memory", |node, scale, rows| Box::pin(memory::measure(node, scale, rows))),
    ("services", |node, scale, rows| Box::pin(services::measure(node, scale, rows))),
    ("dns", |node, scale, rows| Box::pin(dns::measure(node, scale, rows))),
];

pub(super) const STORAGE_PARTS: &[(&str, Part)] = &[
    ("volumes", |node, scale, rows| Box::pin(volumes::measure(node, scale, rows))),
    ("claims", |node, scale, rows| Box::pin(claims::measure(node, scale, rows))),
    ("clones", |node, scale, rows| Box::pin(clones::measure(node, scale, rows))),
];
/// Their nodes are on a disk of their own: one that has room for all that is promised, and shares blocks.
const ON_OWN_DISK: [&str; 2] = ["claims", "clones"];

/// Each part on a node of its own.
pub(super) async fn all(program: &Path, parts: &[(&str, Part)], scale: Scale, only: &[String]) -> Result<Vec<Row>> {
    if !rustix::process::geteuid().is_root() {
        bail!("real containers need root");
    }
    let images = images()?;
    let mut rows = Vec::new();
    for &(name, part) in parts {
        if !only.is_empty() && !only.iter().any(|it| it == name) {
            continue;
        }
        eprintln!("measuring {name}");
        // Unmounted after the node has gone.
        let disk = ON_OWN_DISK.contains(&name).then(clones::Disk::new).transpose()?;
        let place = disk.as_ref().map_or(Path::new("/var/tmp"), clones::Disk::path);
        let started = RealNode::start_in(place, program, &images).await;
        let node = started.with_context(|| format!("measuring {name}"))?;
        part(&node, scale, &mut rows).await.with_context(|| format!("measuring {name}"))?;
    }
    Ok(rows)
}

/// The archives with the images that are started, made where they are not there.
fn images() -> Result<Vec<PathBuf>> {
    let root = corten_testbed::root()?;
    let cache = env::var_os("CORTEN_IMAGES").map_or_else(|| PathBuf::from("/var/cache/corten/images"), PathBuf::from);
    let mut archives = Vec::new();
    for name in ["pause", "busybox"] {
        let status = Command::new(root.join("images/build")).arg(name).status().context("running images/build")?;
        if !status.success() {
            bail!("images/build {name}: {status}");
        }
        archives.push(cache.join(format!("{name}.tar")));
    }
    Ok(archives)
}
