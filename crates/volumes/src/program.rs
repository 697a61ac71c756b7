//! Runs a program of the system from a thread that has entered the node's mount namespace: its child is there, too.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Fault, with_faults_named};

/// A file system of many terabytes takes minutes to check.
const DEADLINE: Duration = Duration::from_secs(110);

/// Where programs of the system are.
const FOLDERS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) fn is_installed(program: &str) -> bool {
    FOLDERS.split(':').any(|it| Path::new(it).join(program).exists())
}

/// How a program ended.
pub(crate) struct ProgramOutput {
    /// `None`: killed.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs it to its end, whatever that is.
pub(crate) fn run_to_end(program: &str, args: &[&str]) -> Result<ProgramOutput, Fault> {
    let spawned = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .env("PATH", FOLDERS)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = with_faults_named(spawned, program)?;
    let (ended, is_ended) = mpsc::channel::<()>();
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let watch = std::thread::Builder::new().name("volume-program".to_owned()).spawn(move || {
        if is_ended.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout)
            && let Some(pid) = pid
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output();
    drop(ended);
    if let Ok(watch) = watch {
        let _ = watch.join();
    }
    let output = with_faults_named(output, program)?;
    let text = |it: Vec<u8>| String::from_utf8_lossy(&it).trim().to_owned();
    Ok(ProgramOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) })
}

/// Runs it; what it wrote to its standard output is the answer.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<String, Fault> {
    let ProgramOutput { code, stdout, stderr } = run_to_end(program, args)?;
    match code {
        Some(0) => Ok(stdout),
        Some(code) => {
            let said = if stderr.is_empty() { stdout } else { stderr };
            Err(Fault::internal(format!("{program}: exit status {code}: {said}")))
        }
        None => Err(Fault::internal(io::Error::new(io::ErrorKind::TimedOut, format!("{program}: no end in time")))),
    }
}
