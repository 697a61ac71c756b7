//! Three servers on three members of one etcd, all of this machine.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use crate::real::{Connection, Data, ServerAddress, free_port};

pub(super) const NAMES: [&str; 3] = ["one", "two", "three"];
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that is killed, stopped and started again.
struct Process {
    command: fn(&Cluster, usize) -> Result<Command>,
    child: Option<Child>,
    is_stopped: bool,
}

impl Process {
    fn of(command: fn(&Cluster, usize) -> Result<Command>) -> Self {
        Self { command, child: None, is_stopped: false }
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        let Some(child) = &self.child else { return Ok(()) };
        self.is_stopped = signal == Signal::STOP;
        Ok(kill_process(Pid::from_child(child), signal)?)
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        self.is_stopped = false;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// One of its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Server(usize),
    Member(usize),
}

pub(super) struct Cluster {
    servers: Vec<Process>,
    members: Vec<Process>,
    corten: PathBuf,
    etcd: PathBuf,
    /// Of servers, and of members to clients and to each other.
    ports: [[u16; 3]; 3],
    /// The words by which another server joins the first.
    join: Vec<String>,
    targets: Vec<ServerAddress>,
    data: Data,
}

impl Cluster {
    pub(super) async fn start(corten: PathBuf, etcd: PathBuf) -> Result<Self> {
        let mut ports = [[0; 3]; 3];
        for port in ports.iter_mut().flatten() {
            *port = free_port()?;
        }
        let (servers, members) =
            [(); 3].map(|()| (Process::of(server_command), Process::of(member_command))).into_iter().unzip();
        let data = Data::new()?;
        let mut cluster = Self { servers, members, corten, etcd, ports, join: Vec::new(), targets: Vec::new(), data };
        for member in 0..NAMES.len() {
            cluster.start_part(Part::Member(member))?;
        }
        for server in 0..NAMES.len() {
            cluster.start_part(Part::Server(server))?;
            cluster.wait_until_ready(server, PATIENCE).await?;
            if server == 0 {
                cluster.join = cluster.join_words()?;
            }
        }
        // Those that have joined need no such words any more.
        cluster.join.clear();
        cluster.targets = (0..NAMES.len()).map(|it| cluster.target(it)).collect::<Result<_>>()?;
        Ok(cluster)
    }

    /// `corten server --join … --token …`, without its first two words.
    fn join_words(&self) -> Result<Vec<String>> {
        let mut command = Command::new(&self.corten);
        command
            .args(["token", "create", "--control-plane", "--kubeconfig"])
            .arg(self.folder(0).join("admin.kubeconfig"));
        command.arg("--server").arg(format!("https://127.0.0.1:{}", self.ports[0][0]));
        let output = command.output().context("asking for the words to join")?;
        if !output.status.success() {
            bail!("corten token create: {}", String::from_utf8_lossy(&output.stderr));
        }
        let line = String::from_utf8(output.stdout)?;
        Ok(line.split_whitespace().skip(2).map(str::to_owned).collect())
    }

    fn folder(&self, server: usize) -> PathBuf {
        self.data.path().join(NAMES[server])
    }

    fn target(&self, server: usize) -> Result<ServerAddress> {
        ServerAddress::from_kubeconfig(&self.folder(server).join("admin.kubeconfig"))
    }

    pub(super) fn targets(&self) -> Vec<ServerAddress> {
        self.targets.clone()
    }

    pub(super) async fn connect(&self, server: usize) -> Result<Connection> {
        Connection::open(&self.target(server)?).await
    }

    pub(super) async fn wait_until_ready(&mut self, server: usize, patience: Duration) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < patience {
            let process = self.process(Part::Server(server));
            if let Some(status) = process.child.as_mut().and_then(|it| it.try_wait().transpose()).transpose()? {
                // A unit starts one again that has found no etcd; whatever else ends it is a defect.
                if !self.last_words(server).contains("connecting to etcd") {
                    bail!("server {} ended with {status}: {}", NAMES[server], self.last_words(server));
                }
                self.start_part(Part::Server(server))?;
            }
            let answer = tokio::time::timeout(patience, async { self.connect(server).await?.get("/readyz").await });
            if let Ok(Ok(_)) = answer.await {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("server {} was not ready after {patience:?}: {}", NAMES[server], self.last_words(server))
    }

    pub(super) fn last_words(&self, server: usize) -> String {
        let log = fs::read_to_string(self.data.path().join(format!("{}.log", NAMES[server]))).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn process(&mut self, part: Part) -> &mut Process {
        match part {
            Part::Server(it) => &mut self.servers[it],
            Part::Member(it) => &mut self.members[it],
        }
    }

    fn start_part(&mut self, part: Part) -> Result<()> {
        let (Part::Server(number) | Part::Member(number)) = part;
        let command = self.process(part).command;
        let mut command = command(self, number)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        self.process(part).child = Some(child.with_context(|| format!("starting {part:?}"))?);
        Ok(())
    }

    /// As `kill -9` does.
    pub(super) fn kill(&mut self, part: Part) -> Result<()> {
        self.process(part).kill()
    }

    /// It is there, and does nothing: as on a machine that swaps, or behind a network that loses everything.
    pub(super) fn stop(&mut self, part: Part) -> Result<()> {
        self.process(part).signal(Signal::STOP)
    }

    /// What was killed is started again, and what was stopped goes on.
    pub(super) async fn heal(&mut self) -> Result<()> {
        let parts = |part: fn(usize) -> Part| (0..NAMES.len()).map(part);
        for part in parts(Part::Member).chain(parts(Part::Server)) {
            let process = self.process(part);
            if process.child.is_none() {
                self.start_part(part)?;
            } else if process.is_stopped {
                process.signal(Signal::CONT)?;
            }
        }
        for server in 0..NAMES.len() {
            self.wait_until_ready(server, PATIENCE).await?;
        }
        Ok(())
    }
}

fn server_command(cluster: &Cluster, server: usize) -> Result<Command> {
    let mut command = Command::new(&cluster.corten);
    let log = cluster.data.path().join(format!("{}.log", NAMES[server]));
    command.arg("server").arg("--data-dir").arg(cluster.folder(server));
    command.args(["--bind", "127.0.0.1", "--port", &cluster.ports[0][server].to_string()]);
    if server == 0 {
        let urls = cluster.ports[1].map(|it| format!("http://127.0.0.1:{it}"));
        command.arg("--etcd-servers").arg(urls.join(","));
    } else {
        command.args(&cluster.join);
    }
    command.stderr(File::options().append(true).create(true).open(log)?);
    Ok(command)
}

fn member_command(cluster: &Cluster, member: usize) -> Result<Command> {
    let mut command = Command::new(&cluster.etcd);
    let address = |ports: &[u16; 3], of: usize| format!("http://127.0.0.1:{}", ports[of]);
    let (clients, peers) = (address(&cluster.ports[1], member), address(&cluster.ports[2], member));
    let all = (0..NAMES.len()).map(|it| format!("{}={}", NAMES[it], address(&cluster.ports[2], it)));
    let (all, folder) = (all.collect::<Vec<_>>().join(","), format!("member-{}", NAMES[member]));
    // A killed process loses nothing that it has handed to the kernel.
    command.args(["--name", NAMES[member], "--log-level", "error", "--unsafe-no-fsync", "--data-dir"]);
    command.arg(cluster.data.path().join(&folder)).args(["--initial-cluster", &all]);
    for (option, address) in [
        ("--listen-client-urls", &clients),
        ("--advertise-client-urls", &clients),
        ("--listen-peer-urls", &peers),
        ("--initial-advertise-peer-urls", &peers),
    ] {
        command.args([option, address]);
    }
    command.stderr(File::options().append(true).create(true).open(cluster.data.path().join(format!("{folder}.log")))?);
    Ok(command)
}
