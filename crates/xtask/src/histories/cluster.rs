//! Three servers on three members of one etcd, each server and its member on a machine of their own.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use corten_testbed::{Connection, ServerAddress};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::machines::{End, Machines};

pub(super) const NAMES: [&str; 3] = ["one", "two", "three"];
const SERVER_PORT: u16 = 6443;
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;
pub(super) const PATIENCE: Duration = Duration::from_secs(90);
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that is killed, stopped and started again.
struct Process {
    command: fn(&Cluster, usize) -> Result<Command>,
    child: Option<Child>,
    is_stopped: bool,
    /// Where in its log the last start begins.
    begins_at: usize,
}

impl Process {
    fn of(command: fn(&Cluster, usize) -> Result<Command>) -> Self {
        Self { command, child: None, is_stopped: false, begins_at: 0 }
    }

    /// How it has ended by itself.
    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.as_mut().map(Child::try_wait).transpose()?.flatten())
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
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

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(number) => write!(f, "server {}", NAMES[*number]),
            Self::Member(number) => write!(f, "member {}", NAMES[*number]),
        }
    }
}

/// What runs is dropped before what it runs on.
pub(super) struct Cluster {
    servers: Vec<Process>,
    members: Vec<Process>,
    pub(super) machines: Machines,
    corten: PathBuf,
    /// The folder of its programs.
    pub(super) etcd: PathBuf,
    /// The words by which another server joins the first.
    join: Vec<String>,
    targets: Vec<ServerAddress>,
    /// A member that comes from now on joins others.
    is_founded: bool,
    /// Of this member nothing is left.
    pub(super) lost: Option<usize>,
    /// Their disks have been full, of which a member ends.
    filled: BTreeSet<usize>,
}

pub(super) fn client_url(member: usize) -> String {
    format!("http://{}:{CLIENT_PORT}", End::Machine(member).address())
}

pub(super) fn peer_url(member: usize) -> String {
    format!("http://{}:{PEER_PORT}", End::Machine(member).address())
}

impl Cluster {
    /// `etcd`: the folder of its programs.
    pub(super) async fn start(corten: PathBuf, etcd: PathBuf, has_clocks: bool) -> Result<Self> {
        let (servers, members) =
            [(); 3].map(|()| (Process::of(server_command), Process::of(member_command))).into_iter().unzip();
        let machines = Machines::new(has_clocks)?;
        let (join, targets, filled) = (Vec::new(), Vec::new(), BTreeSet::new());
        let (is_founded, lost) = (false, None);
        let mut cluster = Self { servers, members, machines, corten, etcd, join, targets, is_founded, lost, filled };
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
        cluster.is_founded = true;
        cluster.targets = (0..NAMES.len()).map(|it| cluster.target(it)).collect::<Result<_>>()?;
        Ok(cluster)
    }

    /// `corten server --join … --token …`, without its first two words.
    fn join_words(&self) -> Result<Vec<String>> {
        let mut command = Command::new(&self.corten);
        command
            .args(["token", "create", "--control-plane", "--kubeconfig"])
            .arg(self.folder(0).join("admin.kubeconfig"));
        command.arg("--server").arg(format!("https://{}:{SERVER_PORT}", End::Machine(0).address()));
        let output = command.output().context("asking for the words to join")?;
        if !output.status.success() {
            bail!("corten token create: {}", String::from_utf8_lossy(&output.stderr));
        }
        let line = String::from_utf8(output.stdout)?;
        Ok(line.split_whitespace().skip(2).map(str::to_owned).collect())
    }

    fn folder(&self, server: usize) -> PathBuf {
        self.machines.folder(server).join("server")
    }

    /// On the disk that fills.
    fn member_folder(&self, member: usize) -> PathBuf {
        self.machines.disk(member).join("member")
    }

    fn log(&self, part: Part) -> PathBuf {
        match part {
            Part::Server(number) => self.machines.folder(number).join("server.log"),
            Part::Member(number) => self.machines.folder(number).join("member.log"),
        }
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
            if let Some(status) = self.process(Part::Server(server)).ended()? {
                // A unit starts one again that has found no etcd; whatever else ends it is a defect.
                if !self.last_words(Part::Server(server)).contains("connecting to etcd") {
                    bail!("server {} ended with {status}: {}", NAMES[server], self.last_words(Part::Server(server)));
                }
                self.start_part(Part::Server(server))?;
            }
            let answer = tokio::time::timeout(patience, async { self.connect(server).await?.get("/readyz").await });
            if let Ok(Ok(_)) = answer.await {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("server {} was not ready after {patience:?}: {}", NAMES[server], self.last_words(Part::Server(server)))
    }

    /// A unit starts one again, too; for nothing but a full disk it ends.
    fn start_ended(&mut self, member: usize) -> Result<()> {
        let part = Part::Member(member);
        let Some(status) = self.process(part).ended()? else { return Ok(()) };
        if !self.filled.contains(&member) {
            bail!("{part} ended with {status}: {}", self.last_words(part));
        }
        self.start_part(part)
    }

    /// It has a leader, and knows what is written.
    async fn wait_until_healthy(&mut self, member: usize) -> Result<()> {
        let part = Part::Member(member);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            // It is healthy with others alone.
            (0..NAMES.len()).try_for_each(|it| self.start_ended(it))?;
            if self.is_healthy(member)? {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("{part} was not healthy after {PATIENCE:?}: {}", self.last_words(part))
    }

    /// Of its last start.
    pub(super) fn last_words(&self, part: Part) -> String {
        let begins_at = match part {
            Part::Server(it) => self.servers[it].begins_at,
            Part::Member(it) => self.members[it].begins_at,
        };
        let log = fs::read(self.log(part)).unwrap_or_default();
        let log = String::from_utf8_lossy(log.get(begins_at..).unwrap_or_default());
        let lines: Vec<_> = log.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    fn process(&mut self, part: Part) -> &mut Process {
        match part {
            Part::Server(it) => &mut self.servers[it],
            Part::Member(it) => &mut self.members[it],
        }
    }

    pub(super) fn start_part(&mut self, part: Part) -> Result<()> {
        let (Part::Server(number) | Part::Member(number)) = part;
        let command = self.process(part).command;
        let mut command = command(self, number)?;
        let log = File::options().append(true).create(true).open(self.log(part))?;
        self.process(part).begins_at = usize::try_from(log.metadata()?.len())?;
        command.stderr(log);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        self.process(part).child = Some(child.with_context(|| format!("starting {part}"))?);
        Ok(())
    }

    /// As `kill -9` does.
    pub(super) fn kill(&mut self, part: Part) -> Result<()> {
        self.process(part).kill()
    }

    /// It is there, and does nothing: as on a machine that swaps.
    pub(super) fn stop(&mut self, part: Part) -> Result<()> {
        self.process(part).signal(Signal::STOP)
    }

    pub(super) fn fill_disk(&mut self, member: usize) -> Result<()> {
        self.filled.insert(member);
        self.machines.fill(member)
    }

    /// With all that it has: another comes in its place.
    pub(super) fn lose(&mut self, member: usize) -> Result<()> {
        self.kill(Part::Member(member))?;
        self.lost = Some(member);
        fs::remove_dir_all(self.member_folder(member)).context("erasing what a member has")
    }

    /// What was killed is started again. Of a member that has lost what it had, etcd is told first.
    pub(super) fn start_killed(&mut self) -> Result<()> {
        let parts = |part: fn(usize) -> Part| (0..NAMES.len()).map(part);
        for part in parts(Part::Member).chain(parts(Part::Server)) {
            let is_lost = matches!(part, Part::Member(it) if self.lost == Some(it));
            if self.process(part).child.is_none() && !is_lost {
                self.start_part(part)?;
            }
        }
        Ok(())
    }

    /// Undoes all that was done to it. It does the rest itself.
    pub(super) async fn heal(&mut self) -> Result<()> {
        self.machines.connect_all()?;
        for machine in 0..NAMES.len() {
            self.machines.make_room(machine)?;
        }
        for process in self.servers.iter_mut().chain(&mut self.members).filter(|it| it.is_stopped) {
            process.signal(Signal::CONT)?;
        }
        self.start_killed()?;
        self.replace_lost().await?;
        for member in 0..NAMES.len() {
            self.wait_until_healthy(member).await?;
        }
        self.filled.clear();
        self.disarm()?;
        for server in 0..NAMES.len() {
            self.wait_until_ready(server, PATIENCE).await?;
        }
        Ok(())
    }
}

fn server_command(cluster: &Cluster, server: usize) -> Result<Command> {
    let mut command = cluster.machines.command_by_clock(server, &cluster.corten);
    command.arg("server").arg("--data-dir").arg(cluster.folder(server));
    command.args(["--bind", &End::Machine(server).address().to_string(), "--port", &SERVER_PORT.to_string()]);
    if server == 0 {
        command.arg("--etcd-servers").arg([0, 1, 2].map(client_url).join(","));
    } else {
        command.args(&cluster.join);
    }
    Ok(command)
}

fn member_command(cluster: &Cluster, member: usize) -> Result<Command> {
    let mut command = cluster.machines.command(member, &cluster.etcd.join("etcd"));
    let all = [0, 1, 2].map(|it| format!("{}={}", NAMES[it], peer_url(it))).join(",");
    let (clients, peers) = (client_url(member), peer_url(member));
    command.args(["--name", NAMES[member], "--log-level", "error", "--data-dir"]).arg(cluster.member_folder(member));
    // Its disk is small.
    command.args(["--snapshot-count", "1000", "--max-wals", "1", "--max-snapshots", "1"]);
    command.args(["--initial-cluster-state", if cluster.is_founded { "existing" } else { "new" }]);
    for (option, address) in [
        ("--initial-cluster", &all),
        ("--listen-client-urls", &clients),
        ("--advertise-client-urls", &clients),
        ("--listen-peer-urls", &peers),
        ("--initial-advertise-peer-urls", &peers),
    ] {
        command.args([option, address]);
    }
    Ok(command)
}
