//! The node that `up` starts in the background and `down` ends, wherever it was started, and the parent that looks after it.
//!
//! Each holds a lock file, locked, as its standard input where another process started it: for as long as it lives the lock
//! holds, and no longer, so there is no stale lock and no process number to mistake for another's.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, value_parser};
use corten_machine::{Layout, Process};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal},
};

use crate::{
    command_line::CommandLine,
    node_folders::{DATA_DIR, RUN_DIR, log_in, process_file},
    node_record::{How, Record, last_words},
};
use corten_console::{failure::Failure, output, shell::quoted};

/// How long the node gets to end in good order.
pub const GRACE: Duration = Duration::from_secs(30);

/// Where one node keeps its things.
pub struct NodeProcess {
    pub layout: Layout,
}

/// Adds `--data-dir` and `--run-dir`.
pub fn args(command: clap::Command) -> clap::Command {
    let dir = |name: &'static str, default: &'static str| {
        Arg::new(name).long(name).value_name("DIR").value_parser(value_parser!(PathBuf)).default_value(default)
    };
    command
        .arg(dir("data-dir", DATA_DIR).help("Where the cluster's data, images and volumes are"))
        .arg(dir("run-dir", RUN_DIR).help("Where sockets and state are that do not outlive the machine's run"))
}

/// While this lives, this process is the node of its folders: `up` finds it running and `down` ends it.
pub struct NodeClaim {
    node: NodeProcess,
    _lock: Option<File>,
}

impl NodeClaim {
    /// Fails where another process is the node.
    pub fn new(layout: Layout) -> Result<Self> {
        let node = NodeProcess { layout };
        // Before anything is noted there: what is somebody's stays as it is.
        corten_machine::close_data(&node.layout.data)?;
        let lock = node.claim()?;
        if lock.is_some() {
            node.refuse_second_run_dir()?;
        }
        if lock.is_some() {
            node.note_begin();
        }
        Ok(Self { node, _lock: lock })
    }

    /// The API is served from now on.
    pub fn serves(&self) {
        Record::change(&self.node.layout.data, |it| it.note_serving(std::process::id(), output::now()));
    }

    /// It was told to end, and did: nobody shall start it again.
    pub fn ended_in_order(self) {
        let is_own = |it: &Record| it.begun.as_ref().is_some_and(|it| it.is_process(std::process::id()));
        Record::change(&self.node.layout.data, |it| {
            if is_own(it) {
                it.note_end(How::Exited(0), Vec::new(), output::now());
            }
        });
    }
}

impl NodeProcess {
    /// The node that [`args`] speak of.
    pub fn of(matches: &ArgMatches) -> Result<Self> {
        let dir = |name| matches.get_one::<PathBuf>(name).cloned().expect("has a default");
        let absolute = |dir: PathBuf| std::path::absolute(&dir).with_context(|| format!("finding {}", dir.display()));
        Ok(Self { layout: Layout::new(absolute(dir("data-dir"))?, absolute(dir("run-dir"))?) })
    }

    /// Makes this very process the node, until the file is dropped; nothing to hold where `up` gave it as standard input.
    fn claim(&self) -> Result<Option<File>> {
        if is_same(Path::new("/proc/self/fd/0"), &self.lock_path()) {
            return Ok(None);
        }
        let Some(lock) = self.lock()? else {
            bail!("a node runs already in {}; `corten down` ends it", self.layout.run.display());
        };
        fs::write(self.pid_path(), std::process::id().to_string()).context("writing the process number")?;
        Ok(Some(lock))
    }

    /// A node in the foreground says itself that it has begun; of any other that is known to who started it.
    fn note_begin(&self) {
        let pid = std::process::id();
        Record::change(&self.layout.data, |it| {
            if !it.begun.as_ref().is_some_and(|it| it.is_process(pid)) {
                it.note_unseen(&self.layout.data, output::now());
                it.start_over(&self.layout.run, Vec::new(), output::now());
                it.note_begin(pid, last_words::end_of(&self.log_path()), output::now());
            }
        });
    }

    /// Makes this very process the parent of the node.
    pub fn claim_supervision(&self) -> Result<Option<File>> {
        if is_same(Path::new("/proc/self/fd/0"), &self.supervision_lock_path()) {
            return Ok(None);
        }
        let Some(lock) = self.supervision_lock()? else {
            bail!("the node in {} is looked after already", self.layout.run.display());
        };
        fs::write(self.supervision_pid_path(), std::process::id().to_string()).context("writing the process number")?;
        Ok(Some(lock))
    }

    /// Was it started by `up`, and not in the foreground?
    pub fn is_started_by_up(&self, pid: Pid) -> bool {
        is_same(&process_file(pid, "fd/0"), &self.lock_path())
    }

    /// What runs in the run folder has the data of this node, and what has these data runs in this run folder.
    ///
    /// # Errors
    /// Another node is in the way; it is named.
    pub fn refuse_others(&self) -> Result<()> {
        self.refuse_other_data()?;
        self.refuse_second_run_dir()
    }

    fn refuse_other_data(&self) -> Result<()> {
        let node = self.process().ok().flatten();
        let parent = || self.has_parent().ok()?.then(|| process_in(&self.supervision_pid_path()).ok().flatten())?;
        // One that is just being started or ended may have no number: it is waited for.
        let Some(running) = node.or_else(parent).and_then(|(pid, _)| CommandLine::of(pid).ok()) else { return Ok(()) };
        // One that is just dying has no command line any more.
        if !running.is_known() {
            return Ok(());
        }
        let data = running.data_dir();
        if data == self.layout.data || is_same(&data, &self.layout.data) {
            return Ok(());
        }
        let other = Layout::new(&data, &self.layout.run);
        bail!(
            "the node in {} (process {}) has its data in {}, not in {}: `{}` ends it, or name another --run-dir",
            self.layout.run.display(),
            running.pid().as_raw_nonzero(),
            data.display(),
            self.layout.data.display(),
            command_for(&other, "down")
        )
    }

    fn refuse_second_run_dir(&self) -> Result<()> {
        let Some(run) = Record::find(&self.layout.data).map(|it| it.run_dir) else { return Ok(()) };
        if run.as_os_str().is_empty() || run == self.layout.run || is_same(&run, &self.layout.run) {
            return Ok(());
        }
        let other = Self { layout: Layout::new(&self.layout.data, &run) };
        if !other.runs()? && !other.has_parent()? {
            return Ok(());
        }
        bail!(
            "the cluster in {} runs already, in {}, not in {}: `{}` ends it",
            self.layout.data.display(),
            run.display(),
            self.layout.run.display(),
            command_for(&other.layout, "down")
        )
    }

    fn lock_path(&self) -> PathBuf {
        self.layout.run.join("node.lock")
    }

    fn pid_path(&self) -> PathBuf {
        self.layout.run.join("node.pid")
    }

    fn supervision_lock_path(&self) -> PathBuf {
        self.layout.run.join("supervisor.lock")
    }

    fn supervision_pid_path(&self) -> PathBuf {
        self.layout.run.join("supervisor.pid")
    }

    pub fn log_path(&self) -> PathBuf {
        log_in(&self.layout.data)
    }

    /// The log, to write to; one that has grown large is put aside.
    pub fn open_log(&self) -> Result<File> {
        let path = self.log_path();
        // Only the owner may look into it: it holds keys and secrets.
        corten_machine::close_for_logs(&self.layout.data)?;
        corten_machine::open_log(&path).with_context(|| format!("opening {}", path.display()))
    }

    /// The lock, where no node runs.
    fn lock(&self) -> Result<Option<File>> {
        self.take(&self.lock_path())
    }

    /// The lock, where no parent looks after the node.
    pub fn supervision_lock(&self) -> Result<Option<File>> {
        self.take(&self.supervision_lock_path())
    }

    /// Who only looks holds a lock for a moment; a node and a parent hold theirs longer than this.
    fn take(&self, path: &Path) -> Result<Option<File>> {
        corten_machine::close_run(&self.layout.run)?;
        for _ in 0..LOCK_TRIES {
            if let Some(lock) = try_lock(path)? {
                return Ok(Some(lock));
            }
            std::thread::park_timeout(LOCK_PAUSE);
        }
        try_lock(path)
    }

    pub fn runs(&self) -> Result<bool> {
        Ok(is_held(&self.lock_path())? || self.unlocked().is_some())
    }

    /// The node's process where its lock was removed: by its record and its own command line.
    fn unlocked(&self) -> Option<(Pid, Process)> {
        if self.lock_path().exists() {
            return None;
        }
        let pid = Record::find(&self.layout.data)?.begun?.pid;
        let pid = Pid::from_raw(pid.try_into().ok()?)?;
        // Taken hold of before it is looked at: the number may come to mean another.
        let process = Process::find(pid)?;
        let line = CommandLine::of(pid).ok()?;
        let run = line.value("run-dir").unwrap_or(RUN_DIR);
        (line.is_known() && line.data_dir() == self.layout.data && Path::new(run) == self.layout.run)
            .then_some((pid, process))
    }

    pub fn has_parent(&self) -> Result<bool> {
        is_held(&self.supervision_lock_path())
    }

    /// `corten node` with these arguments.
    pub fn command(&self, program: &Path, args: &[String]) -> Command {
        let mut command = Command::new(program);
        command.arg("node").args(self.folders()).args(args).current_dir("/");
        command
    }

    fn folders(&self) -> [&OsStr; 4] {
        ["--data-dir".as_ref(), self.layout.data.as_os_str(), "--run-dir".as_ref(), self.layout.run.as_os_str()]
    }

    /// Starts the node with these arguments; nothing where it runs already.
    pub fn start(&self, program: &Path, args: &[String]) -> Result<Option<Child>> {
        let Some(lock) = self.lock()? else { return Ok(None) };
        self.spawn(self.command(program, args), lock, &self.pid_path()).map(Some)
    }

    /// Starts a parent, which starts the node with these arguments, or takes over the one that runs.
    pub fn start_parent(&self, program: &Path, lock: File, args: &[String]) -> Result<Child> {
        let mut command = Command::new(program);
        command.args(["supervise", "watch"]).args(self.folders()).arg("--").args(args).current_dir("/");
        self.spawn(command, lock, &self.supervision_pid_path())
    }

    /// In a session of its own, with the lock as standard input, and the log.
    fn spawn(&self, mut command: Command, lock: File, pid_path: &Path) -> Result<Child> {
        let log = self.open_log()?;
        command
            .stdin(Stdio::from(lock))
            .stdout(Stdio::from(log.try_clone().context("opening the log twice")?))
            .stderr(Stdio::from(log));
        corten_machine::detach(&mut command);
        // Who finds the lock held shall not take the number of another process for its holder's.
        let _ = fs::remove_file(pid_path);
        let mut child = command.spawn().with_context(|| format!("starting {}", command.get_program().display()))?;
        if let Err(error) = fs::write(pid_path, child.id().to_string()) {
            // Nobody could end it.
            child.kill().and_then(|()| child.wait()).context("ending what could not be noted")?;
            return Err(error).context("writing the process number");
        }
        Ok(child)
    }

    /// Of a process that the kernel does not let go: most often it waits for a disk or a mount.
    fn endless(&self, who: &str) -> Failure {
        Failure::new(format!("{who} in {} does not end", self.layout.run.display()))
            .next("ps -eo pid,stat,wchan:32,args | grep corten    # D: it waits for a disk or a mount")
    }

    /// Asks the parent to end, and the node with it, and waits until it has.
    pub fn end_parent(&self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        while self.has_parent()? {
            // One that has just been started has not told its number yet.
            let parent = process_in(&self.supervision_pid_path()).ok().flatten();
            let left = end.saturating_duration_since(Instant::now());
            match parent {
                Some((_, parent)) => {
                    parent.signal(Signal::TERM);
                    if !parent.ends_within(left) {
                        // The node goes on, and whoever asked ends it next.
                        parent.signal(Signal::KILL);
                        if !parent.ends_within(Duration::from_secs(10)) {
                            bail!(self.endless("the parent of the node"));
                        }
                    }
                }
                None if left.is_zero() => {
                    let message = format!("the parent of the node in {} cannot be found", self.layout.run.display());
                    bail!(Failure::new(message).next("ps -ef | grep corten"))
                }
                None => std::thread::park_timeout(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    /// Asks the node to end and waits until it has; containers go on. False where none ran.
    pub fn end(&self, within: Duration) -> Result<bool> {
        let Some((_, process)) = self.process()? else { return Ok(false) };
        process.signal(Signal::TERM);
        if !process.ends_within(within) {
            process.signal(Signal::KILL);
            if !process.ends_within(Duration::from_secs(10)) {
                bail!(self.endless("the node"));
            }
        }
        Ok(true)
    }

    /// Asks the node to end its Pods and then itself, and waits until it has. False where none ran.
    pub fn drain(&self, within: Duration) -> Result<bool> {
        let Some((_, process)) = self.process()? else { return Ok(false) };
        process.signal(Signal::USR1);
        if !process.ends_within(within) {
            let message = format!("the node of {} does not end its pods", self.layout.run.display());
            bail!(Failure::new(message).next(format!("tail {}", quoted(&self.log_path().to_string_lossy()))));
        }
        Ok(true)
    }

    /// The node's process, where it runs.
    pub fn process(&self) -> Result<Option<(Pid, Process)>> {
        if let Some(unlocked) = self.unlocked() {
            return Ok(Some(unlocked));
        }
        if !is_held(&self.lock_path())? {
            return Ok(None);
        }
        process_in(&self.pid_path())
    }

    /// What a parent leaves when it ends. Not its lock: somebody may have opened it just now.
    pub fn forget_supervision(&self) {
        let _ = fs::remove_file(self.supervision_pid_path());
    }

    /// Takes the locks' files away. Only when no node runs.
    pub fn forget(&self) {
        self.forget_supervision();
        for path in [self.pid_path(), self.lock_path(), self.supervision_lock_path()] {
            let _ = fs::remove_file(path);
        }
        corten_machine::leave(&self.layout.run);
    }
}

/// The folders of the node with these data, as it was started last.
pub fn layout_of(data: &Path) -> Layout {
    let run = Record::find(data).map(|it| it.run_dir).filter(|it| !it.as_os_str().is_empty());
    Layout::new(data, run.unwrap_or_else(|| RUN_DIR.into()))
}

/// `corten VERB` for the node with these data, with the folders that it was started with last.
pub fn command_on(data: &Path, verb: &str) -> String {
    command_for(&layout_of(data), verb)
}

/// `corten up` for the node with these data, with the options that it was started with last, and one more.
pub fn up_with(data: &Path, more: &str) -> String {
    let name = more.split('=').next().unwrap_or_default();
    let before = Record::load(data).options.into_iter().filter(|it| it.split('=').next() != Some(name));
    before.fold(command_on(data, "up"), |command, it| command + " " + &quoted(&it)) + " " + more
}

/// `corten VERB` for the node with these folders.
pub fn command_for(layout: &Layout, verb: &str) -> String {
    let mut command = format!("corten {verb}");
    for (name, dir, usual) in [("data-dir", &layout.data, DATA_DIR), ("run-dir", &layout.run, RUN_DIR)] {
        if dir.as_path() != Path::new(usual) {
            command += &format!(" --{name}={}", quoted(&dir.to_string_lossy()));
        }
    }
    command
}

const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The lock, where nobody holds it at this moment.
pub fn try_lock(path: &Path) -> Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).read(true).open(path);
    let file = file.with_context(|| format!("opening {}", path.display()))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("locking {}", path.display())),
    }
}

/// Looking makes and changes nothing, and keeps no other from looking.
pub fn is_held(path: &Path) -> Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error).with_context(|| format!("locking {}", path.display())),
    }
}

fn process_in(path: &Path) -> Result<Option<(Pid, Process)>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let pid = text.trim().parse().ok().and_then(Pid::from_raw);
    let pid = pid.with_context(|| format!("{} holds no process number", path.display()))?;
    Ok(Process::find(pid).map(|it| (pid, it)))
}

/// Is this still the file of that name?
pub fn is_same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Nodes make namespaces, mounts and networks.
pub fn require_root(verb: &str) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "`corten {verb}` needs root: try `sudo corten {verb}` (the control plane alone, `corten server`, does not)"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
