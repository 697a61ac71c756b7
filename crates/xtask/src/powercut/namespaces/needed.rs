//! What machines of namespaces need of the one that they are on.

use std::{
    fs,
    process::{Command, Stdio},
};

use crate::e2e::{in_path, missing as missing_for};

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
