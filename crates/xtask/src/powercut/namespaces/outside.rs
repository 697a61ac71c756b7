//! Where the machines of namespaces stand: a mount and a network namespace that end with this process, and leave nothing.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::e2e::{in_path, missing as missing_for};

/// Set for the process that is in them.
const INSIDE: &str = "CORTEN_POWERCUT_INSIDE";
/// The programs that are needed besides those of a node, each with the Debian package that has it.
const NEEDED: [(&str, &str); 5] = [
    ("mkfs.xfs", "xfsprogs"),
    ("xfs_io", "xfsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("docker-registry", "docker-registry"),
    ("unshare", "util-linux"),
];

/// Why no machine of namespaces can be here; `None` where one can.
pub(crate) fn missing() -> Option<String> {
    if let Some(missing) = missing_for("node") {
        return Some(missing);
    }
    let absent: Vec<&str> = NEEDED.into_iter().filter(|it| !in_path(it.0)).map(|it| it.1).collect();
    if !absent.is_empty() {
        return Some(format!("not installed: {}", absent.join(", ")));
    }
    // The kernel loads what it knows when it is first mounted.
    let _ = Command::new("modprobe").args(["-q", "xfs"]).stderr(Stdio::null()).status();
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has_xfs = known.lines().any(|it| it.trim() == "xfs");
    (!has_xfs).then(|| "this kernel has no xfs, on which a disk is copied at once".to_owned())
}

/// Starts this program again inside of new namespaces, unless it is there already.
pub(crate) fn enter() -> Result<()> {
    if env::var_os(INSIDE).is_some() {
        return run("ip", &["link", "set", "lo", "up"]);
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--propagation", "private", "--"]);
    command.arg(env::current_exe()?).args(env::args_os().skip(1)).env(INSIDE, "1");
    Err(command.exec()).context("running unshare")
}

/// Runs a program; an error says what it said.
pub(super) fn run(program: &str, args: &[&str]) -> Result<()> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
