//! What comes before the machine's own programs in the path of scripts.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A kubectl that lives for a moment collects garbage for a fifth of that, and is a quarter of what the scripts cost. The setting
/// reaches kubectl alone: what else is written in Go runs as its users run it.
const KUBECTL: &str = "GOGC=400";

/// Makes the folder in `dir`. Scripts do not see it: its name is hidden.
pub(super) fn make(dir: &Path) -> Result<()> {
    let folder = folder(dir);
    fs::create_dir_all(&folder)?;
    let Some(kubectl) = found("kubectl") else { return Ok(()) };
    let path = folder.join("kubectl");
    fs::write(&path, format!("#!/bin/sh\n{KUBECTL} exec \"{}\" \"$@\"\n", kubectl.display()))?;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).with_context(|| format!("making {}", path.display()))
}

pub(super) fn folder(dir: &Path) -> PathBuf {
    dir.join(".bin")
}

/// A program of the machine's.
pub(super) fn found(tool: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]);
    folders.map(|it| it.join(tool)).find(|it| it.exists())
}
