//! The node that `up` starts in the background and `down` ends, wherever it was started.
//!
//! It holds the lock file, locked, as its standard input where `up` started it: for as long as the process lives the lock holds, and no longer, so there is
//! no stale lock and no process number to mistake for another's.

use std::{
    fs::{self, File},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, value_parser};
use corten_host::{Layout, Process};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal},
};

pub(crate) const DATA_DIR: &str = "/var/lib/corten";
pub(crate) const RUN_DIR: &str = "/run/corten";

/// Where one node keeps its things.
pub(crate) struct NodeProcess {
    pub(crate) layout: Layout,
}

/// Adds `--data-dir` and `--run-dir`.
pub(crate) fn args(command: clap::Command) -> clap::Command {
    let dir = |name: &'static str, default: &'static str| {
        Arg::new(name).long(name).value_name("DIR").value_parser(value_parser!(PathBuf)).default_value(default)
    };
    command
        .arg(dir("data-dir", DATA_DIR).help("Where the cluster's data, images and volumes are"))
        .arg(dir("run-dir", RUN_DIR).help("Where sockets and state are that do not outlive the machine's run"))
}

/// While this lives, this process is the node of its folders: `up` finds it running and `down` ends it.
pub struct NodeClaim {
    _lock: Option<File>,
}

impl NodeClaim {
    /// Fails where another process is the node.
    pub fn new(layout: Layout) -> Result<Self> {
        Ok(Self { _lock: NodeProcess { layout }.claim()? })
    }
}

impl NodeProcess {
    /// The node that [`args`] speak of.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        let dir = |name| matches.get_one::<PathBuf>(name).cloned().expect("has a default");
        let absolute = |dir: PathBuf| std::path::absolute(&dir).with_context(|| format!("finding {}", dir.display()));
        Ok(Self { layout: Layout::new(absolute(dir("data-dir"))?, absolute(dir("run-dir"))?) })
    }

    /// Makes this very process the node, until the file is dropped; nothing to hold where `up` gave it as standard input.
    fn claim(&self) -> Result<Option<File>> {
        if self.is_standard_input() {
            return Ok(None);
        }
        let Some(lock) = self.lock()? else {
            bail!("a node runs already in {}; `corten down` ends it", self.layout.run.display());
        };
        fs::write(self.pid_path(), std::process::id().to_string()).context("writing the process number")?;
        Ok(Some(lock))
    }

    fn is_standard_input(&self) -> bool {
        let input = std::io::stdin();
        let input = input.as_fd().try_clone_to_owned().map(File::from).and_then(|it| it.metadata());
        match (input, fs::metadata(self.lock_path())) {
            (Ok(input), Ok(lock)) => (input.dev(), input.ino()) == (lock.dev(), lock.ino()),
            _ => false,
        }
    }

    fn lock_path(&self) -> PathBuf {
        self.layout.run.join("node.lock")
    }

    fn pid_path(&self) -> PathBuf {
        self.layout.run.join("node.pid")
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.layout.data.join("log/corten.log")
    }

    /// The lock, where no node runs.
    fn lock(&self) -> Result<Option<File>> {
        let path = self.lock_path();
        fs::create_dir_all(&self.layout.run).with_context(|| format!("making {}", self.layout.run.display()))?;
        let file = File::options().create(true).truncate(false).write(true).read(true).open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("locking {}", path.display())),
        }
    }

    pub(crate) fn runs(&self) -> Result<bool> {
        // Looking must not make folders where nothing ever ran.
        Ok(self.lock_path().exists() && self.lock()?.is_none())
    }

    /// Starts `corten node` with these arguments; nothing where it runs already.
    pub(crate) fn start(&self, args: &[String]) -> Result<Option<Child>> {
        let Some(lock) = self.lock()? else { return Ok(None) };
        let log_path = self.log_path();
        let folder = log_path.parent().unwrap_or(Path::new("/"));
        // Only the owner may look into it: it holds keys and secrets.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("making {}", folder.display()))?;
        let log = corten_host::open_log(&log_path).with_context(|| format!("opening {}", log_path.display()))?;
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(&program);
        command
            .arg("node")
            .arg("--data-dir")
            .arg(&self.layout.data)
            .arg("--run-dir")
            .arg(&self.layout.run)
            .args(args)
            .current_dir("/")
            .stdin(Stdio::from(lock))
            .stdout(Stdio::from(log.try_clone().context("opening the log twice")?))
            .stderr(Stdio::from(log));
        corten_host::detach(&mut command);
        let child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        fs::write(self.pid_path(), child.id().to_string()).context("writing the process number")?;
        Ok(Some(child))
    }

    /// Asks the node to end and waits until it has; containers go on. False where none ran.
    pub(crate) fn end(&self, within: Duration) -> Result<bool> {
        let Some(process) = self.process()? else { return Ok(false) };
        process.signal(Signal::TERM);
        if !process.ends_within(within) {
            process.signal(Signal::KILL);
            if !process.ends_within(Duration::from_secs(10)) {
                bail!("the node of {} does not end", self.layout.run.display());
            }
        }
        Ok(true)
    }

    /// Asks the node to end its Pods and then itself, and waits until it has. False where none ran.
    pub(crate) fn drain(&self, within: Duration) -> Result<bool> {
        let Some(process) = self.process()? else { return Ok(false) };
        process.signal(Signal::USR1);
        if !process.ends_within(within) {
            bail!("the node of {} does not end its pods", self.layout.run.display());
        }
        Ok(true)
    }

    /// The node's process, where it runs.
    fn process(&self) -> Result<Option<Process>> {
        if !self.runs()? {
            return Ok(None);
        }
        let path = self.pid_path();
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let pid = text.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{} holds no process number", path.display()))?;
        Ok(Process::find(pid))
    }

    /// Takes the lock's files away. Only when no node runs.
    pub(crate) fn forget(&self) {
        for path in [self.pid_path(), self.lock_path()] {
            let _ = fs::remove_file(path);
        }
        // Only when nothing else is in it.
        let _ = fs::remove_dir(&self.layout.run);
    }

    /// The log's last lines: why a node ended.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(self.log_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(8192)..]).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].iter().map(|it| format!("  {it}\n")).collect()
    }
}

/// Nodes make namespaces, mounts and networks.
pub(crate) fn require_root(verb: &str) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "`corten {verb}` needs root: try `sudo corten {verb}` (the control plane alone, `corten server`, does not)"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_holds_as_long_as_the_process_that_has_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
        assert!(!node.runs().expect("looked") && !node.layout.run.exists(), "looking makes nothing");
        assert!(!node.end(Duration::ZERO).expect("harmless"));

        let lock = node.lock().expect("opened").expect("free");
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::from(lock)).spawn().expect("started");
        fs::write(node.pid_path(), child.id().to_string()).expect("written");
        assert!(node.runs().expect("looked"));
        let refusal = node.claim().expect_err("it is another's").to_string();
        assert!(refusal.contains("`corten down` ends it"), "{refusal}");
        assert!(node.start(&[]).expect("harmless").is_none(), "a second one is not started");
        assert!(node.end(Duration::from_secs(10)).expect("ended"));
        assert!(!node.runs().expect("looked"));
        child.wait().expect("waited for");

        let claim = node.claim().expect("free").expect("not given as standard input");
        assert!(node.runs().expect("looked"), "one in the foreground is seen, too");
        let pid = fs::read_to_string(node.pid_path()).expect("written");
        assert_eq!(pid, std::process::id().to_string(), "and can be ended");
        drop(claim);
        assert!(!node.runs().expect("looked"));
        node.forget();
        assert!(!node.layout.run.exists());
    }
}
