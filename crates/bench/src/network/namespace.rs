//! A network of its own, which goes when it is dropped.

use std::{
    fs::File,
    process::{self, Command},
    thread,
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::{
    fd::AsFd,
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    /// `role`: what it is in this process.
    pub(super) fn new(role: &str) -> Result<Self> {
        let name = format!("corten-bench-{}-{role}", process::id());
        ip(&format!("netns add {name}"))?;
        let namespace = Self { name };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Has `ip` do that there.
    pub(super) fn ip(&self, line: &str) -> Result<()> {
        ip(&format!("-n {} {line}", self.name))
    }

    /// Runs `work` there, in a thread of its own, since a namespace is entered for good. Sockets that are opened there stay there.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let namespace = File::open(format!("/run/netns/{}", self.name)).context("opening a network namespace")?;
        let enter = || move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter().context("entering a network namespace")?;
                work()
            });
            thread.join().map_err(|_| anyhow!("the work in a network namespace panicked"))?
        })
    }

    /// As [`Namespace::run`]; what it spawns is there, too.
    pub(super) fn run_async<T: Send>(&self, work: impl AsyncFnOnce() -> Result<T> + Send) -> Result<T> {
        self.run(|| tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = ip(&format!("netns delete {}", self.name)) {
            eprintln!("{error:#}");
        }
    }
}

fn ip(line: &str) -> Result<()> {
    let output = Command::new("ip").args(line.split(' ')).output().context("running ip")?;
    if !output.status.success() {
        bail!("ip {line}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
