//! What the numbers were taken on, without saying whose it is.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, Result};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Machine {
    pub(super) processor: String,
    pub(super) cores: usize,
    pub(super) memory_gib: u64,
    pub(super) kernel: String,
    pub(super) file_system: String,
    /// The day, and of which commit the source was.
    pub(super) when: String,
}

pub(super) fn describe() -> Result<Machine> {
    let cpus = fs::read_to_string("/proc/cpuinfo").context("reading what processor this is")?;
    let fields: BTreeMap<_, _> =
        cpus.lines().filter_map(|it| it.split_once(':')).map(|(name, value)| (name.trim(), value.trim())).collect();
    let memory = fs::read_to_string("/proc/meminfo").context("reading how much memory there is")?;
    let total = memory.lines().find_map(|it| it.strip_prefix("MemTotal:")).context("the kernel tells no MemTotal")?;
    let kib: u64 = total.trim().trim_end_matches(" kB").parse()?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("reading what kernel this is")?;
    // Version numbers only: what a builder puts behind them is not for others.
    let kernel = release.split('-').next().unwrap_or_default().trim().to_owned();
    Ok(Machine {
        processor: (*fields.get("model name").unwrap_or(&"unknown")).to_owned(),
        cores: std::thread::available_parallelism()?.get(),
        memory_gib: kib >> 20,
        kernel: format!("Linux {kernel}"),
        file_system: file_system("/var/tmp")?,
        when: when(),
    })
}

/// As far as it can be told.
fn when() -> String {
    let asked = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().ok().filter(|it| it.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let day = asked("date", &["--utc", "+%Y-%m-%d"]).unwrap_or_default();
    let commit = asked("git", &["describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=, changed"]);
    commit.map_or_else(|| day.clone(), |it| format!("{day}, commit {it}"))
}

fn file_system(dir: &str) -> Result<String> {
    let mounts = fs::read_to_string("/proc/mounts").context("reading what is mounted")?;
    let mount = mounts
        .lines()
        .filter_map(|it| {
            let mut fields = it.split_whitespace().skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(at, _)| std::path::Path::new(dir).starts_with(at))
        .max_by_key(|(at, _)| at.len());
    Ok(mount.map_or("unknown", |(_, kind)| kind).to_owned())
}
