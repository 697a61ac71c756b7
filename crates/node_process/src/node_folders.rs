//! Where a node keeps its things unless told otherwise, and what the kernel shows of its process.

use std::path::{Path, PathBuf};

use rustix::process::Pid;

pub const DATA_DIR: &str = "/var/lib/corten";

pub const RUN_DIR: &str = "/run/corten";

/// Is there once the cluster was given what a node brings to it: its class of volumes, and the kinds of snapshots. In the
/// folder of its data.
pub const SNAPSHOTS_MADE: &str = "kubelet/snapshots-made";

/// The log of the node with these data.
pub fn log_in(data: &Path) -> PathBuf {
    data.join("log/corten.log")
}

pub fn process_file(pid: Pid, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", pid.as_raw_nonzero()))
}
