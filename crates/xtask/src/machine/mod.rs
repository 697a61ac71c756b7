//! Whole machines to test on: Debian in QEMU without acceleration, each on a copy-on-write copy of a disk that is made once.
//!
//! ```text
//! base disk ── make ── boot ── run, put ── cut (or its own reboot) ── boot ── … ── gone
//! ```
//! A cut is a plug that is pulled: what the guest had not synced is lost, and nothing else.

mod by_hand;
mod guest;
mod leftovers;
mod network;
mod qemu;
mod ready;
mod speed;
mod ssh;

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use corten_testbed::root;
use serde::{Deserialize, Serialize};

pub(crate) use by_hand::{Args as ByHand, run as by_hand};
pub(crate) use guest::{Boot, Guest, GuestSpec};
pub(crate) use leftovers::remove_on_signals;
pub(crate) use ready::not_ready;
pub(crate) use speed::slowness;

use crate::e2e::in_path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Suite {
    Bookworm,
    Trixie,
    /// Debian 14 to be: what its packages bring that no release has yet, as containerd 2.
    Forky,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    /// That of this machine.
    pub(crate) const OWN: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::Amd64 };

    /// Where a release build of the program for it lies; `.ci/arm64 release` makes the one for arm64.
    pub(crate) fn built(self) -> &'static str {
        match self {
            Self::Arm64 if self != Self::OWN => "target/arm64/aarch64-unknown-linux-gnu/release/corten",
            _ => "target/release/corten",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
            Self::Forky => "forky",
        })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        })
    }
}

/// Where base disks and guests are. It can be removed whenever no guest runs.
fn folder() -> PathBuf {
    env::var_os("CORTEN_MACHINES").map_or_else(|| PathBuf::from("/var/cache/corten/machines"), PathBuf::from)
}

/// The programs that guests of this architecture need, each with the Debian package that has it.
fn needed(arch: Arch) -> Vec<(&'static str, &'static str)> {
    let mut needed = vec![
        ("qemu-img", "qemu-utils"),
        ("debootstrap", "debootstrap"),
        ("mkfs.ext4", "e2fsprogs"),
        ("ssh", "openssh-client"),
        ("tar", "tar"),
        ("setpriv", "util-linux"),
    ];
    match arch {
        Arch::Amd64 => needed.push(("qemu-system-x86_64", "qemu-system-x86")),
        Arch::Arm64 => needed.push(("qemu-system-aarch64", "qemu-system-arm")),
    }
    needed
}

/// Why no guest can run here, and what to do about it; `None` where one can.
pub(crate) fn missing(arch: Arch) -> Option<String> {
    let absent: Vec<&str> = needed(arch).into_iter().filter(|it| !in_path(it.0)).map(|it| it.1).collect();
    if !absent.is_empty() {
        return Some(format!("apt-get install --no-install-recommends {}", absent.join(" ")));
    }
    (!rustix::process::geteuid().is_root()).then(|| "run it as root: only root can make a disk with Debian".to_owned())
}

/// The folder of the base disk, which is made first where it is not there.
pub(crate) fn base(suite: Suite, arch: Arch) -> Result<PathBuf> {
    if let Some(missing) = missing(arch) {
        bail!("machines cannot be emulated here; {missing}");
    }
    let script = root()?.join("e2e/machine/base");
    let made = Command::new(&script)
        .args([suite.to_string(), arch.to_string()])
        .env("CORTEN_MACHINES", folder())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", script.display()))?;
    if !made.status.success() {
        bail!("{} {suite} {arch}: {}", script.display(), made.status);
    }
    let printed = String::from_utf8(made.stdout).context("reading where the disk is")?;
    Ok(PathBuf::from(printed.trim_end()))
}

/// The folder of one guest.
fn guest_folder(name: &str) -> PathBuf {
    folder().join("guests").join(name)
}

/// The last lines of a text file.
fn tail(path: &Path, n_lines: usize) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(n_lines)..].join("\n")
}
