//! Starts, ends and kills a server, and asks the kernel what it uses.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::{
    connection::{Connection, ServerAddress, Shared},
    port::free_port,
};

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Launcher {
    program: PathBuf,
}

/// A folder with the server's data, on the disk that durable writes shall be measured on.
pub struct Data(TempDir);

impl Data {
    pub fn new() -> Result<Self> {
        // Not /tmp, which may be memory.
        let dir = tempfile::Builder::new().prefix("corten-").tempdir_in("/var/tmp")?;
        Ok(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Launcher {
    pub fn new(program: PathBuf) -> Result<Self> {
        if !program.is_file() {
            bail!("{} is not there", program.display());
        }
        Ok(Self { program })
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Answers when the server is ready, and how long that took from the start of its process.
    pub async fn start(&self, data: &Data) -> Result<(ControlPlane, Duration)> {
        self.start_with(data, &[]).await
    }

    /// As [`Launcher::start`], with these options beside those that it needs.
    pub async fn start_with(&self, data: &Data, more: &[String]) -> Result<(ControlPlane, Duration)> {
        let (dir, port) = (data.0.path().join("data"), free_port()?);
        let mut command = Command::new(&self.program);
        command.arg("server").arg("--data-dir").arg(&dir);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]).args(more);
        ControlPlane::start(command, data, (&dir.join("admin.kubeconfig"), port)).await
    }
}

async fn is_ready(target: &ServerAddress, port: u16) -> bool {
    // A kubeconfig from before a restart names another port.
    if target.port() != port {
        return false;
    }
    match Connection::open(target).await {
        Ok(mut connection) => connection.get("/readyz").await.is_ok(),
        Err(_) => false,
    }
}

pub struct ControlPlane {
    child: Child,
    log: PathBuf,
    target: Option<ServerAddress>,
}

impl ControlPlane {
    /// Of whatever program: it is ready when the server of the kubeconfig says so at this port.
    pub async fn start(
        mut command: Command,
        data: &Data,
        (kubeconfig, port): (&Path, u16),
    ) -> Result<(Self, Duration)> {
        let (log, start) = (data.0.path().join("log"), Instant::now());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let child = command.spawn().with_context(|| format!("starting {}", command.get_program().display()))?;
        let mut server = Self { child, log, target: None };
        while start.elapsed() < PATIENCE {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server ended with {status}: {}", server.last_words());
            }
            if let Ok(target) = ServerAddress::from_kubeconfig(kubeconfig)
                && is_ready(&target, port).await
            {
                let took = start.elapsed();
                server.target = Some(target);
                return Ok((server, took));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bail!("the server was not ready after {PATIENCE:?}: {}", server.last_words())
    }

    pub fn target(&self) -> &ServerAddress {
        self.target.as_ref().expect("it is set before anyone else gets to see this")
    }

    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(self.target()).await
    }

    pub async fn connect_many(&self, n: usize) -> Result<Vec<Connection>> {
        let mut connections = Vec::with_capacity(n);
        for _ in 0..n {
            connections.push(self.connect().await?);
        }
        Ok(connections)
    }

    /// A connection that many requests share.
    pub async fn connect_shared(&self) -> Result<Shared> {
        Shared::open(self.target()).await
    }

    /// Resident memory in bytes.
    pub fn memory(&self) -> Result<u64> {
        memory_of(self.child.id())
    }

    /// Processor time used so far, to the kernel's tick.
    pub fn cpu(&self) -> Result<Duration> {
        cpu_of(self.child.id())
    }

    pub fn stop(mut self) -> Result<()> {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}: {}", self.last_words());
        }
        Ok(())
    }

    /// As `kill -9` does.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(10).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Resident memory of a process, in bytes.
pub fn memory_of(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).context("the kernel tells no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// Processor time a process has used so far, to the kernel's tick.
pub fn cpu_of(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name in brackets, and may hold anything.
    let (_, fields) = stat.rsplit_once(')').context("reading the process's stat")?;
    let field = |n: usize| -> Result<u64> {
        Ok(fields.split_whitespace().nth(n).context("reading the process's stat")?.parse()?)
    };
    let ticks = field(11)? + field(12)?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}
