//! systemd keeps the node running: a unit that `corten up` writes and `corten down` removes.
//!
//! The unit is enabled: a cluster that is up comes back when the machine does, until `corten down`. Where `/etc` cannot be
//! written it lies below `/run`, and goes when the machine ends. systemd only starts again what failed. How long that rests,
//! and when it is given up, is decided by `corten supervise`, so that it is the same everywhere: older versions of systemd
//! know no pauses that grow.

#[cfg(test)]
mod tests;

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::GAVE_UP;
use crate::node_process::NodeProcess;

/// Of this run of the machine.
const RUNTIME_UNITS: &str = "/run/systemd/system";
/// For every boot.
const UNITS: &str = "/etc/systemd/system";

/// The unit of one node, in a slice of its own.
pub(super) struct Unit {
    pub name: String,
    slice: String,
    /// What of the caller's environment the node is started with.
    environment: PathBuf,
}

impl Unit {
    pub(super) fn of(node: &NodeProcess) -> Self {
        let name = node.layout.service_unit();
        Self { environment: node.layout.data.join("environment"), name, slice: node.layout.service_slice() }
    }

    pub(super) fn exists(&self) -> bool {
        paths(&self.name).iter().any(|it| it.exists())
    }

    /// Writes the unit, has it started at every boot, and starts it; does not wait for it.
    pub(super) fn start(&self, node: &NodeProcess, program: &Path, args: &[String]) -> Result<()> {
        write(&self.environment, 0o600, &environment(env::vars_os()))?;
        let text = unit(node, program, &self.environment, args);
        let ([for_every_boot, for_this_run], slices) = (paths(&self.name), paths(&self.slice));
        let [slice_for_every_boot, slice_for_this_run] = slices;
        let written = write(&slice_for_every_boot, 0o644, SLICE.as_bytes());
        let is_enabled = match written.and_then(|()| write(&for_every_boot, 0o644, text.as_bytes())) {
            Ok(()) => true,
            Err(error) => {
                eprintln!("{error:#}: the cluster does not come back when the machine starts again");
                write(&slice_for_this_run, 0o644, SLICE.as_bytes())?;
                write(&for_this_run, 0o644, text.as_bytes())?;
                false
            }
        };
        systemctl(&["daemon-reload"])?;
        if is_enabled {
            systemctl(&["enable", "--quiet", &self.name])?;
        }
        // What failed before does not count; there may be nothing to forget.
        let _ = systemctl(&["reset-failed", &self.name]);
        systemctl(&["start", "--no-block", &self.name])
    }

    /// Waits until it has ended.
    pub(super) fn stop(&self) -> Result<()> {
        systemctl(&["stop", &self.name])
    }

    /// Only when it does not run.
    pub(super) fn remove(&self) -> Result<()> {
        let _ = fs::remove_file(&self.environment);
        // One that is not enabled makes no difference.
        let _ = systemctl(&["disable", "--quiet", &self.name]);
        let files = paths(&self.name).into_iter().chain(paths(&self.slice));
        for path in files.filter(|it| it.exists()) {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        let _ = systemctl(&["reset-failed", &self.name]);
        systemctl(&["daemon-reload"])
    }

    /// Does systemd still run it, or mean to start it again?
    pub(super) fn is_alive(&self) -> bool {
        let state = Command::new("systemctl").args(["is-active", &self.name]).stderr(Stdio::null()).output();
        let state = state.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default();
        !matches!(&*state, "failed" | "inactive")
    }
}

/// Where a unit's file may lie, the place that is tried first at the beginning.
fn paths(name: &str) -> [PathBuf; 2] {
    [UNITS, RUNTIME_UNITS].map(|it| Path::new(it).join(name))
}

/// What the node and its runtime live in. When the machine ends, the node ends first: nothing stops the slice with all in it.
const SLICE: &str = "\
# Written by `corten up`, removed by `corten down`.
[Unit]
Description=Corten and its containerd
DefaultDependencies=no
Before=slices.target
";

fn systemctl(args: &[&str]) -> Result<()> {
    let output = Command::new("systemctl").args(args).stdin(Stdio::null()).output().context("running systemctl")?;
    if !output.status.success() {
        bail!("systemctl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn write(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    corten_machine::write_whole(path, mode, bytes).with_context(|| format!("writing {}", path.display()))
}

/// `KillMode=process`: containerd, its shims and the containers are no part of a restart. `Delegate=yes`: of a node whose
/// Pods have no slices, systemd keeps its hands off cgroups below, and all controllers on above them. No sandboxing: mounts
/// must reach Pods and the machine.
fn unit(node: &NodeProcess, program: &Path, environment: &Path, args: &[String]) -> String {
    let program = program.to_string_lossy();
    let (data, run) = (node.layout.data.to_string_lossy(), node.layout.run.to_string_lossy());
    let command = |mode: &str, args: &[String]| {
        let words = ["supervise", mode, "--data-dir", &*data, "--run-dir", &*run];
        let mut line = quoted(&program);
        for word in words.into_iter().chain((!args.is_empty()).then_some("--")).chain(args.iter().map(String::as_str)) {
            let _ = write!(line, " {}", quoted(word));
        }
        line
    };
    format!(
        "\
# Written by `corten up`, removed by `corten down`.
[Unit]
Description=Corten, the Kubernetes cluster of {description}
Wants=network-online.target
After=network-online.target
RequiresMountsFor={folders}
# Only for what is worse than the failures that `corten supervise` counts: the program is gone, for example.
StartLimitIntervalSec=600
StartLimitBurst=30

[Service]
Type=notify
ExecStart={start}
ExecStopPost=-{ended}
EnvironmentFile=-{environment}
Restart=on-failure
RestartSec=500ms
RestartPreventExitStatus={GAVE_UP}
RestartForceExitStatus=SIGHUP SIGPIPE
TimeoutStartSec=infinity
TimeoutStopSec=60
KillMode=process
Slice={slice}
Delegate=yes
OOMPolicy=continue
OOMScoreAdjust=-999
UMask=0022
LimitNOFILE=1048576
LimitNPROC=infinity
TasksMax=infinity
StandardOutput=append:{log}
StandardError=inherit

[Install]
WantedBy=multi-user.target
",
        description = verbatim(&data),
        folders = [&*data, &*run].map(quoted).join(" "),
        start = command("start", args),
        ended = command("ended", &[]),
        slice = node.layout.service_slice(),
        environment = verbatim(&environment.to_string_lossy()),
        log = verbatim(&node.log_path().to_string_lossy()),
    )
}

/// One word of a command line, as `systemd.service(5)` reads it: nothing in it is expanded.
fn quoted(word: &str) -> String {
    let mut text = String::from('"');
    for character in word.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '%' | '$' => text.extend([character, character]),
            '\n' => text.push_str("\\n"),
            _ => text.push(character),
        }
    }
    text + "\""
}

/// A whole setting.
fn verbatim(text: &str) -> String {
    text.replace('%', "%%")
}

/// What of the caller's environment reaches the node: how it logs, where programs are, and the way to image registries.
fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in variables {
        let Some(known) = name.to_str().filter(|it| is_for_node(it)) else { continue };
        let value = if known == "PATH" { trusted(&value) } else { value };
        text.extend(known.bytes().chain(*b"=\""));
        for byte in value.as_bytes() {
            if b"\"\\$`".contains(byte) {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.extend(*b"\"\n");
    }
    text
}

/// The folders of a search path in which nobody but root, or whoever starts the node, can put a program: it runs at every boot.
fn trusted(path: &OsStr) -> OsString {
    let (left_out, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        env::split_paths(path).partition(|it| !it.is_absolute() || corten_machine::others_write(it));
    for folder in left_out {
        eprintln!("{}: programs there are not used by the node: other users can replace them", folder.display());
    }
    env::join_paths(folders).unwrap_or_default()
}

fn is_for_node(name: &str) -> bool {
    // A line of the file is a variable.
    if !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') {
        return false;
    }
    let begins = ["CORTEN_", "RUST_"].iter().any(|it| name.starts_with(it));
    // What etcd takes at most: of its other variables none is for every start.
    name == "PATH" || name == "ETCD_QUOTA_BACKEND_BYTES" || begins || name.to_ascii_uppercase().ends_with("_PROXY")
}
