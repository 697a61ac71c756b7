//! The shims of a node: one for each sandbox, the parent of its containers.
//!
//! They outlive containerd, and one that dies at the wrong moment forgets some of them: those nobody would ever end.

use std::{collections::BTreeSet, ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path, time::Duration};

use corten_machine::{
    Layout,
    process::{self, Process},
};
use rustix::process::{Pid, Signal};

const PROGRAM: &[u8] = b"containerd-shim-runc-v2";
/// What a shim gets to clean up after itself.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) struct Shim {
    process: Process,
    pid: Pid,
    /// Of its sandbox.
    id: String,
}

/// The shims that speak to the containerd at `socket`.
pub(crate) fn of(socket: &Path) -> Vec<Shim> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|it| Pid::from_raw(it.file_name().to_str()?.parse().ok()?));
    pids.filter_map(|it| Shim::find(it, socket.as_os_str())).collect()
}

/// How many sandboxes of a node there are, whether it runs or not.
pub fn n_sandboxes(layout: &Layout) -> usize {
    of(&layout.containerd_socket()).len()
}

/// Those of them that another containerd started, before the present one.
pub(crate) fn earlier_than(containerd: Pid, socket: &Path) -> Vec<Shim> {
    let Some(began) = began(containerd) else { return Vec::new() };
    let is_earlier = |shim: &Shim| self::began(shim.pid).is_some_and(|it| it < began);
    of(socket).into_iter().filter(is_earlier).collect()
}

/// When a process began, in the kernel's ticks since it booted.
pub(crate) fn began(pid: Pid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The second field is the name in brackets, and may hold anything; this one is the 22nd.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Ends those whose sandbox is not among the `known` ones and that have no container.
pub(crate) fn end_forgotten(shims: Vec<Shim>, known: &BTreeSet<String>) {
    for shim in shims.into_iter().filter(|it| !known.contains(&it.id) && it.is_childless()) {
        tracing::info!(sandbox = shim.id, "a shim that containerd has forgotten is ended");
        shim.process.signal(Signal::TERM);
        if !shim.process.ends_within(GRACE) {
            shim.kill();
        }
    }
}

impl Shim {
    fn find(pid: Pid, socket: &OsStr) -> Option<Self> {
        // Taken hold of before it is looked at: the number may come to mean another.
        let process = Process::find(pid)?;
        if !process::is_own(pid.as_raw_nonzero().get()) {
            return None;
        }
        let command_line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
        let args: Vec<&[u8]> = command_line.split(|it| *it == 0).collect();
        // It names its containerd's socket in its arguments.
        if !args.first()?.ends_with(PROGRAM) || !args.contains(&socket.as_bytes()) {
            return None;
        }
        let id = args.iter().skip_while(|it| **it != b"-id").nth(1)?;
        Some(Self { process, pid, id: String::from_utf8_lossy(id).into_owned() })
    }

    pub(crate) fn is_of(&self, sandbox: &str) -> bool {
        self.id == sandbox
    }

    pub(crate) fn kill(&self) {
        self.process.signal(Signal::KILL);
    }

    /// Where that cannot be told, it has children.
    fn is_childless(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero()));
        tasks.is_ok_and(|mut it| {
            it.all(|task| {
                let children = task.and_then(|it| fs::read_to_string(it.path().join("children")));
                children.is_ok_and(|it| it.trim().is_empty())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command, Stdio},
    };

    use super::*;

    /// Looks like a shim, and runs until its standard input ends.
    fn start(id: &str, socket: &str, script: &str) -> Child {
        let mut shim = Command::new("/bin/sh");
        shim.arg0("/usr/bin/containerd-shim-runc-v2").args(["-c", script, "-id", id, "-address", socket]);
        shim.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started")
    }

    #[test]
    fn only_those_that_nobody_knows_and_that_hold_nothing_are_ended() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let socket = dir.path().join("containerd.sock");
        let address = socket.to_str().expect("text");
        let idle = "echo begun; read x";
        let mut known = start("known", address, idle);
        let mut forgotten = start("forgotten", address, idle);
        let mut holding = start("holding", address, "sleep 1000 & echo begun; read x; kill $!");
        let mut anothers = start("anothers", "/elsewhere/containerd.sock", idle);
        for shim in [&mut known, &mut forgotten, &mut holding, &mut anothers] {
            let mut begun = [0; 5];
            std::io::Read::read_exact(shim.stdout.as_mut().expect("piped"), &mut begun).expect("it has begun");
        }
        let found = of(&socket);
        let ids: BTreeSet<&str> = found.iter().map(|it| &*it.id).collect();
        assert_eq!(ids, BTreeSet::from(["forgotten", "holding", "known"]));
        let myself = Pid::from_raw(std::process::id().try_into().expect("a pid")).expect("not zero");
        assert!(earlier_than(myself, &socket).is_empty(), "they began after this test");
        assert!(began(myself) <= began(Pid::from_child(&known)));

        end_forgotten(found, &BTreeSet::from(["known".to_owned()]));
        assert!(!forgotten.wait().expect("waited for").success());
        for mut shim in [known, holding, anothers] {
            assert_eq!(shim.try_wait().expect("looked"), None, "it goes on");
            drop(shim.stdin.take());
            shim.wait().expect("waited for");
        }
    }
}
