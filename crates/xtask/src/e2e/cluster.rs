//! The cluster under test: started for a suite, told to scripts by environment variables, and taken away without a trace.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use corten_testbed::free_port;

use super::{script::Shell, tools};

/// Where this program was when it began: once it is built anew, the system names it otherwise.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| env::current_exe().unwrap_or_default());

/// How often it is looked for processes that are left.
const LOOKS_MAX: usize = 100;
/// A command that waits for ever fails its script, and not all of them.
const COMMAND_MAX: Duration = Duration::from_secs(300);
/// Of `timeout` in coreutils.
const EXIT_OF_TIMEOUT: i32 = 124;

/// What is different about the machine that the scripts are played on.
#[derive(clap::Args, Clone)]
pub(super) struct Machine {
    /// Take the archives of images from DIR instead of making them
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,
    /// Let the nodes run by the containerd, the shim and the runtimes in DIR, before those of the machine
    #[arg(long, value_name = "DIR")]
    containerd: Option<PathBuf>,
    /// How many times slower the machine is than those that the scripts mean when they speak of seconds
    #[arg(long, default_value_t = 1.0)]
    slowness: f64,
}

pub(super) struct Cluster {
    corten: PathBuf,
    machine: Machine,
    dir: PathBuf,
    kubeconfig: PathBuf,
    port: u16,
    /// The control plane; `None` where `corten up` keeps the process.
    process: Option<Child>,
    is_ours: bool,
    /// Scripts start what runs, on machines that `e2e/member` makes.
    of_members: bool,
}

/// What this machine lacks for a suite, in words; `None` if nothing.
pub(crate) fn missing(suite: &str) -> Option<String> {
    let mut tools = vec!["kubectl", "curl", "openssl", "python3"];
    if suite == "clients" {
        tools.extend(["node", "npm", "cargo"]);
        // Debian has it in a package of its own.
        let venv = Command::new("/usr/bin/python3").args(["-c", "import ensurepip"]).stderr(Stdio::null()).status();
        if !venv.is_ok_and(|it| it.success()) {
            return Some("not installed: python3-venv".into());
        }
    }
    if suite == "cluster" && corten_machine::systemd_is_in_charge() {
        return Some("systemd starts nodes in the machine's own network".into());
    }
    if ["cluster", "node", "pods"].contains(&suite) {
        tools.extend(["containerd", "runc", "nft", "ip"]);
        if !rustix::process::geteuid().is_root() {
            return Some("real containers need root".into());
        }
    }
    let absent: Vec<&str> = tools.into_iter().filter(|it| !in_path(it)).collect();
    (!absent.is_empty()).then(|| format!("not installed: {}", absent.join(", ")))
}

pub(crate) fn in_path(tool: &str) -> bool {
    tools::found(tool).is_some()
}

/// A command on this machine, to its end: the exit code, and what it printed.
pub(super) fn here(command: &str) -> Result<(i32, String)> {
    let output = Command::new("bash").args(["-c", command]).output().context("running bash")?;
    Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned()))
}

impl Cluster {
    /// `corten server` on a free port, in a folder of its own.
    pub(super) fn control_plane(corten: &Path, suite: &str, machine: &Machine) -> Result<Self> {
        let dir = fresh_dir(suite)?;
        let port = free_port()?;
        let log = File::create(dir.join("log"))?;
        let process = Command::new(corten)
            .args(["server", "--bind", "127.0.0.1", "--port", &port.to_string(), "--data-dir"])
            .arg(dir.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("starting corten server")?;
        let kubeconfig = dir.join("data/admin.kubeconfig");
        let (corten, machine, process) = (corten.to_owned(), machine.clone(), Some(process));
        let mut cluster = Self { corten, machine, dir, kubeconfig, port, process, is_ours: true, of_members: false };
        cluster.wait_ready(Duration::from_secs(30))?;
        Ok(cluster)
    }

    /// `corten up` with folders of its own, so that a cluster somebody uses on this machine is not touched.
    pub(super) fn node(corten: &Path, suite: &str, machine: &Machine) -> Result<Self> {
        let dir = fresh_dir(suite)?;
        let port = free_port()?;
        let kubeconfig = dir.join("data/admin.kubeconfig");
        let (corten, machine) = (corten.to_owned(), machine.clone());
        let mut cluster =
            Self { corten, machine, dir, kubeconfig, port, process: None, is_ours: true, of_members: false };
        cluster.images(suite)?;
        cluster.up()?;
        cluster.wait_ready(Duration::from_secs(60))?;
        Ok(cluster)
    }

    /// A folder with images, in which scripts make machines that each have a network of their own. The first has the control plane.
    pub(super) fn members(corten: &Path, suite: &str, machine: &Machine) -> Result<Self> {
        let dir = fresh_dir(suite)?;
        let port = free_port()?;
        let kubeconfig = dir.join("members/1/data/admin.kubeconfig");
        let (corten, machine) = (corten.to_owned(), machine.clone());
        let cluster = Self { corten, machine, dir, kubeconfig, port, process: None, is_ours: true, of_members: true };
        cluster.images(suite)?;
        Ok(cluster)
    }

    /// A node that runs already, with its folders `data` and `run` in `dir`; it stays as it is.
    pub(super) fn running(corten: &Path, dir: &Path, machine: &Machine) -> Self {
        let kubeconfig = dir.join("data/admin.kubeconfig");
        let (corten, machine, dir) = (corten.to_owned(), machine.clone(), dir.to_owned());
        Self { corten, machine, dir, kubeconfig, port: 0, process: None, is_ours: false, of_members: false }
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    fn node_flags(&self) -> Vec<String> {
        let path = |name: &str| self.dir.join(name).display().to_string();
        ["--data-dir".into(), path("data"), "--run-dir".into(), path("run")].into()
    }

    /// What the node is started with, each time: how full the machine's disk is shall not decide whether the tests' Pods run.
    fn up_flags(&self) -> Vec<String> {
        let mut flags = self.node_flags();
        flags.extend(["--bind".into(), "127.0.0.1".into(), "--port".into(), self.port.to_string()]);
        flags.push("--eviction-hard=memory.available<100Mi,nodefs.available<200Mi,imagefs.available<200Mi".into());
        flags.push("--image-gc-high-threshold=100".into());
        flags
    }

    /// Puts the images of the tests where the node takes them from; builds them first unless they are given.
    fn images(&self, suite: &str) -> Result<()> {
        let root = corten_testbed::root()?;
        let folder = self.dir.join("data/images");
        fs::create_dir_all(&folder)?;
        let cache = self.machine.images.clone().unwrap_or_else(images_cache);
        // The node takes them in the order of these names: what hardly any case needs comes last.
        let names: &[(&str, &str)] = match suite {
            "pods" => &[("pause", "pause.tar"), ("suite", "suite.tar"), ("demo", "with-demo.tar")],
            // Each of many nodes would take seconds of the processor for databases that no script of the suite runs.
            "cluster" => &[("pause", "pause.tar"), ("web", "web.tar")],
            _ => &[("pause", "pause.tar"), ("demo", "demo.tar")],
        };
        for (name, place) in names {
            if self.machine.images.is_none() {
                build_images(&root, name, None)?;
            }
            let archive = format!("{name}.tar");
            fs::copy(cache.join(&archive), folder.join(place)).with_context(|| format!("taking {archive}"))?;
        }
        Ok(())
    }

    fn up(&self) -> Result<()> {
        let status = Command::new(&self.corten)
            .arg("up")
            .args(self.up_flags())
            .env("PATH", self.path())
            .env("HOME", &self.dir)
            .stdin(Stdio::null())
            .status()
            .context("running corten up")?;
        if !status.success() {
            self.show_log();
            bail!("corten up: {status}");
        }
        Ok(())
    }

    fn wait_ready(&mut self, patience: Duration) -> Result<()> {
        let patience = patience.mul_f64(self.machine.slowness);
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.process.as_mut().and_then(|it| it.try_wait().transpose()).transpose()? {
                self.show_log();
                bail!("corten ended while starting: {status}");
            }
            let mut kubectl = Command::new("kubectl");
            kubectl
                .args(["get", "--raw", "/readyz", "--request-timeout", "2s"])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if self.environment(&mut kubectl).status().is_ok_and(|it| it.success()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                self.show_log();
                bail!("not ready after {} s", patience.as_secs());
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// Where programs are looked for: the tools of scripts, the program under test, and the runtime that it is to use, come first.
    fn path(&self) -> OsString {
        let bin = self.corten.parent().map(Path::to_owned).unwrap_or_default();
        let runtime = self.machine.containerd.as_ref().and_then(|it| it.canonicalize().ok());
        let path = env::var_os("PATH").unwrap_or_default();
        let paths = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
        env::join_paths([tools::folder(&self.dir), bin].into_iter().chain(runtime).chain(paths)).unwrap_or(path)
    }

    /// Tells a command where the cluster is.
    pub(super) fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("PATH", self.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("CORTEN_E2E_DIR", &self.dir)
            .env("CORTEN_URL", format!("https://127.0.0.1:{}", self.port))
            .env("CORTEN_NODE_FLAGS", self.node_flags().join(" "))
            .env("CORTEN_UP_FLAGS", self.up_flags().join(" "))
            // What plays somebody else's program.
            .env("CORTEN_XTASK", &*PROGRAM)
            .env("CORTEN_PORT", self.port.to_string())
            // Nothing of the user's own kubectl settings or caches takes part; but what installs a client needs them.
            .env("CORTEN_USER_HOME", env::var_os("HOME").unwrap_or_default())
            .env("HOME", &self.dir)
    }

    fn show_log(&self) {
        for name in ["log", "data/log/corten.log"] {
            let text = fs::read_to_string(self.dir.join(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for line in &lines[lines.len().saturating_sub(30)..] {
                println!("  log: {line}");
            }
        }
    }

    /// Ends the cluster and checks that it goes cleanly.
    pub(super) fn stop(mut self) -> Result<()> {
        if !self.is_ours {
            return Ok(());
        }
        if let Some(mut process) = self.process.take() {
            let pid = i32::try_from(process.id()).ok().and_then(rustix::process::Pid::from_raw).context("a pid")?;
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
            let status = process.wait()?;
            self.end_left();
            if !status.success() {
                self.show_log();
                bail!("corten server ended with {status} on SIGTERM");
            }
        } else if self.of_members {
            let mut down = Command::new(corten_testbed::root()?.join("e2e/member"));
            let status = self.environment(down.arg("down")).status().context("running e2e/member")?;
            self.end_left();
            if !status.success() {
                bail!("e2e/member down: {status}");
            }
        } else {
            let mut reset = Command::new(&self.corten);
            reset.args(["reset", "--yes"]).args(self.node_flags());
            let status = self.environment(&mut reset).status().context("running corten reset")?;
            self.end_left();
            if !status.success() {
                bail!("corten reset: {status}");
            }
        }
        fs::remove_dir_all(&self.dir).with_context(|| format!("removing {}", self.dir.display()))
    }

    /// What is in the folder of the scripts. Hidden files are of programs' own, as kubectl's cache is.
    fn entries(&self) -> BTreeSet<PathBuf> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let is_hidden = |it: &fs::DirEntry| it.file_name().as_encoded_bytes().starts_with(b".");
        entries.filter(|it| !is_hidden(it)).map(|it| it.path()).collect()
    }

    /// What `play` leaves in the folder is no other script's: a port, a pid or a key of who has ended would be taken for its own.
    /// Machines stay: scripts of the suite of machines go on with those that one has made.
    pub(super) fn left_as_it_was(&mut self, play: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.entries();
        let has_passed = play(self);
        let machines = self.dir.join("members");
        for path in self.entries().difference(&before).filter(|it| **it != machines) {
            let is_folder = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
            let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            if let Err(error) = removed {
                println!("  {} stays: {error}", path.display());
            }
        }
        has_passed
    }

    /// Kills what scripts have begun beside themselves and left, as one does that fails before its end. Such a process has the
    /// environment of this cluster's scripts, whatever session it is in.
    fn end_left(&self) {
        let mark = format!("CORTEN_E2E_DIR={}", self.dir.display());
        let is_left = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|it| *it == 0).any(|it| it == mark.as_bytes())
        };
        // One that is killed may just have begun another.
        for _ in 0..LOOKS_MAX {
            let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
            let pids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
            let left: Vec<_> = pids.filter(is_left).filter_map(rustix::process::Pid::from_raw).collect();
            if left.is_empty() {
                return;
            }
            for pid in left {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Shell for Cluster {
    fn run(&mut self, command: &str) -> Result<(i32, String)> {
        let seconds = COMMAND_MAX.mul_f64(self.slowness()).as_secs();
        let mut bash = Command::new("timeout");
        bash.args(["--kill-after=10", &seconds.to_string(), "bash", "-c", command])
            .current_dir(corten_testbed::root()?);
        let output = self.environment(&mut bash).output().context("running bash")?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let exit = output.status.code().unwrap_or(-1);
        if exit == EXIT_OF_TIMEOUT {
            let _ = writeln!(text, "the command had not ended after {seconds} s, and was killed");
        }
        Ok((exit, text))
    }

    fn show_state(&self) {
        let look = "kubectl get nodes,pods -A -o wide --request-timeout 5s; corten why -A; df -h \"$CORTEN_E2E_DIR\"; free -m; cat /proc/loadavg";
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("exec 2>&1; {look}")]);
        let seen = self.environment(&mut bash).output().map(|it| it.stdout).unwrap_or_default();
        for line in String::from_utf8_lossy(&seen).lines() {
            println!("  state: {line}");
        }
        self.show_log();
    }

    fn slowness(&self) -> f64 {
        self.machine.slowness
    }
}

/// Where `images/build` leaves what it makes.
pub(crate) fn images_cache() -> PathBuf {
    env::var_os("CORTEN_IMAGES").map_or_else(|| PathBuf::from("/var/cache/corten/images"), PathBuf::from)
}

/// For this machine's architecture, unless another is named.
pub(crate) fn build_images(root: &Path, name: &str, another: Option<&str>) -> Result<()> {
    let mut build = Command::new(root.join("images/build"));
    let status = build.arg(name).args(another).status().context("running images/build")?;
    if !status.success() {
        bail!("images/build {name}: {status}");
    }
    Ok(())
}

/// On a disk: `/tmp` is often made of memory, which images and volumes of nodes would fill.
fn fresh_dir(name: &str) -> Result<PathBuf> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let disk = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let dir = disk.join(format!("corten-e2e-{name}-{}-{n}", std::process::id()));
    tools::make(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}
