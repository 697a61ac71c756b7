//! Where machines of namespaces stand: a mount and a network namespace that end with this process, and leave nothing.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Set for the process that is in them.
const INSIDE: &str = "CORTEN_XTASK_INSIDE";
const NAMESPACES: [&str; 4] = ["--mount", "--net", "--propagation", "private"];

/// Why this user can make none; `None` where they can be.
pub(crate) fn refused() -> Option<String> {
    let tried = unshare().arg("true").stdin(Stdio::null()).output();
    let why = match tried {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("running unshare: {error}"),
    };
    Some(format!("namespaces need root, or a kernel that lets everybody make them: {why}"))
}

/// Starts this program again inside of new namespaces, with these arguments besides its own, unless it is there already.
pub(crate) fn enter(more: &[OsString]) -> Result<()> {
    if is_inside() {
        return run("ip", &["link", "set", "lo", "up"]);
    }
    let mut command = unshare();
    command.arg(env::current_exe()?).args(env::args_os().skip(1)).args(more).env(INSIDE, "1");
    Err(command.exec()).context("running unshare")
}

pub(crate) fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Who is not root is root in there.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(NAMESPACES).arg("--");
    command
}

/// Runs a program; an error says what it said.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<()> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
