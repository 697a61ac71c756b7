//! The node's own containerd: found and adopted, or started so that it outlives Corten, and started again when it died.
//!
//! Containers are children of their shims, not of containerd: neither its end nor ours touches them.

mod archives;
mod blobs;
pub(crate) mod left_tasks;
mod other_runtimes;
mod records;
mod synced_images;

use std::{
    fmt::Write as _,
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use corten_api::cluster_network::ClusterNetwork;
use corten_machine::{
    Cgroups, Doing, Layout, MachineError, NodeMounts,
    folders::folder_modes,
    mounts,
    process::{self, Process, detach, open_log},
    service_manager::NOTIFY_SOCKET,
};
use corten_meta::address::Cidr;
use corten_network::{PodNetwork, PodPolicies, PodSourceGuards, bridge, cni, cni::PodLink};
use rustix::process::{Pid, Signal};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    Cri,
    cri::CriError,
    logs::{self, RotateLimits},
    oci_runtime::OciRuntime,
    shims,
};

pub(crate) use archives::{holding, import};
pub(crate) use synced_images::SyncedImages;

/// The image every sandbox holds its namespaces with; made by `images/build`.
pub const PAUSE_IMAGE: &str = "localhost/corten/pause:1";
const PAUSE_ARCHIVE: &str = "pause.tar";
/// Used where our own was never brought to the node.
const PUBLIC_PAUSE_IMAGE: &str = "registry.k8s.io/pause:3.10";

/// Is this the image that every sandbox needs?
pub(crate) fn is_pause(image: &str) -> bool {
    image == PAUSE_IMAGE || image == PUBLIC_PAUSE_IMAGE
}

/// A machine that has just been switched on, and reads everything from its disk, takes far longer than others.
const START_DEADLINE: Duration = Duration::from_secs(120);
const IMAGE_FOLDER_PERIOD: Duration = Duration::from_secs(2);
/// How often, after containerd has come back, its shims are looked at, and with what pause between.
const SHIM_LOOKS: u32 = 6;
const SHIM_PERIOD: Duration = Duration::from_secs(5);
/// The kubelet's `containerLogMonitorInterval`.
const LOG_PERIOD: Duration = Duration::from_secs(10);

/// What a node can be told about its runtime.
#[derive(Clone, Debug)]
pub struct Options {
    /// This node's part of the Pod network, the primary family first.
    pub pod_cidrs: Vec<String>,
    /// Where the Pods of all nodes are.
    pub cluster_cidrs: Vec<Cidr>,
    /// Who plugs Pods in.
    pub pod_link: PodLink,
    /// The program, by name or path.
    pub containerd: PathBuf,
    /// The kubelet's `singleProcessOOMKill`: of a container only the process that is out of memory is killed. The kernel's first
    /// layout of cgroups knows no other way.
    pub single_process_oom_kill: bool,
}

impl Options {
    /// Of the first node of a cluster.
    pub fn of(network: &ClusterNetwork) -> Self {
        Self {
            pod_cidrs: bridge::networks(network),
            cluster_cidrs: network.cluster_cidrs.clone(),
            pod_link: PodLink::default(),
            containerd: PathBuf::from("containerd"),
            single_process_oom_kill: false,
        }
    }

    /// Where the node listens for its Pods, in each network: nowhere but at the machine's own addresses where a CNI plug-in of
    /// another's plugs them in.
    pub fn gateways(&self) -> Vec<IpAddr> {
        if self.pod_link.is_plugin() {
            return Vec::new();
        }
        self.pod_cidrs.iter().filter_map(|it| bridge::gateway(it)).collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::of(&ClusterNetwork::default())
    }
}

pub struct Containerd {
    layout: Layout,
    options: Options,
    mounts: NodeMounts,
    cgroups: Cgroups,
    source_guards: PodSourceGuards,
    policies: PodPolicies,
    cri: Cri,
    images: SyncedImages,
    /// The process where we started it ourselves.
    life: Mutex<Option<ContainerdProcess>>,
}

/// A containerd that we started: it has to be waited for when it ends.
struct ContainerdProcess {
    child: Child,
    /// Where its log begins in the file.
    log_begin: u64,
}

impl Containerd {
    /// Makes the node ready for Pods and returns when the runtime answers.
    pub async fn start(layout: Layout, options: Options) -> Result<Self, MachineError> {
        folder_modes::close_all(&layout)?;
        let cri = Cri::connect(&layout.containerd_socket())?;
        let mounts = NodeMounts::prepare(&layout)?;
        let pods = layout.pods();
        // Best effort: it is said of the node what is not enforced.
        if let Err(error) = mounts.run(move || mounts::restrict(&pods)).await.and_then(|it| it) {
            tracing::warn!(%error, "pods' volumes are not mounted nosuid, nodev");
        }
        let cgroups = Cgroups::detect(&layout);
        cgroups.prepare().doing("prepare the cgroups of", Path::new(&layout.cgroup_root))?;
        options.pod_link.prepare(&layout, &options.pod_cidrs, &options.cluster_cidrs).await?;
        let source_guards = PodSourceGuards::new(&layout, &options.pod_link);
        source_guards.watch_all().await;
        let images = SyncedImages::new(&layout, &cri);
        let policies = PodPolicies::new(&layout, &options.pod_link);
        let this =
            Self { layout, options, mounts, cgroups, source_guards, policies, cri, images, life: Mutex::new(None) };
        this.make_it_run().await?;
        this.cri.update_runtime_config(&this.options.pod_cidrs.join(",")).await?;
        // Without it no Pod starts; the others come in `supervise`.
        this.import_images(|it| it.ends_with(PAUSE_ARCHIVE)).await;
        Ok(this)
    }

    pub fn cri(&self) -> Cri {
        self.cri.clone()
    }

    pub fn mounts(&self) -> NodeMounts {
        self.mounts.clone()
    }

    /// The network of the Pods that run here.
    pub fn pod_network(&self) -> PodNetwork {
        let ranges = (self.options.pod_cidrs.clone(), self.options.cluster_cidrs.clone());
        PodNetwork::new(self.layout.clone(), self.options.pod_link.clone(), ranges, self.source_guards.clone())
    }

    /// Where new Pods wait for their policies.
    pub fn policies(&self) -> PodPolicies {
        self.policies.clone()
    }

    pub(crate) fn source_guards(&self) -> PodSourceGuards {
        self.source_guards.clone()
    }

    pub(crate) fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn images(&self) -> SyncedImages {
        self.images.clone()
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Starts containerd again whenever it ends; meanwhile imports images that are put in the image folders, and keeps logs
    /// from filling the disk.
    /// Returns at `shutdown`, and leaves containerd running.
    pub async fn supervise(&self, shutdown: impl Future<Output = ()> + Send) {
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                () = self.ended() => {}
                () = self.keep_house() => {}
            }
            tracing::warn!("containerd has ended; it is started again, containers go on meanwhile");
            if let Err(error) = self.restart().await {
                tracing::error!(%error, "containerd does not start");
                tokio::select! {
                    biased;
                    () = &mut shutdown => return,
                    () = tokio::time::sleep(Duration::from_secs(1)) => {}
                }
            }
        }
    }

    /// Imports images that are brought to the node, and keeps logs small. Never returns.
    async fn keep_house(&self) {
        let images = async {
            loop {
                self.import_images(|_| true).await;
                tokio::time::sleep(IMAGE_FOLDER_PERIOD).await;
            }
        };
        let logs = async {
            loop {
                tokio::time::sleep(LOG_PERIOD).await;
                if let Err(error) = logs::rotate_all(&self.cri, RotateLimits::default()).await {
                    tracing::debug!(%error, "cannot look at the sizes of logs");
                }
            }
        };
        futures_util::future::join3(images, logs, self.end_late_shims()).await;
    }

    /// A shim that was being started when the containerd before died comes to light only when that one's is done.
    async fn end_late_shims(&self) {
        for _ in 0..SHIM_LOOKS {
            tokio::time::sleep(SHIM_PERIOD).await;
            let Some(containerd) = running(&self.layout) else { continue };
            let socket = self.layout.containerd_socket();
            let shims = tokio::task::spawn_blocking(move || shims::earlier_than(containerd, &socket)).await;
            let ended = match shims {
                Ok(shims) => self.end_forgotten(shims, Vec::new()).await,
                Err(error) => Err(MachineError::Missing(error.to_string())),
            };
            if let Err(error) = ended {
                tracing::warn!(%error, "cannot end the shims that have been forgotten");
            }
        }
    }

    async fn restart(&self) -> Result<(), MachineError> {
        match self.damage_it_ended_by().await {
            Some(what) => self.begin_anew(&what).await,
            None => self.make_it_run().await,
        }
    }

    /// Starts containerd where none runs, and returns when it answers; without its records where they are damaged.
    async fn make_it_run(&self) -> Result<(), MachineError> {
        match self.begin().await {
            Err(MachineError::Damaged(what)) => self.begin_anew(&what).await,
            other => other,
        }
    }

    /// Takes the records of containerd away, and with them every container: the node makes them again.
    async fn begin_anew(&self, what: &str) -> Result<(), MachineError> {
        let kept_in = records::kept_in(&self.layout);
        tracing::error!(what, kept_in = %kept_in.display(), "the records of containerd are damaged and begun anew: all containers are started again");
        self.life.lock().await.take();
        records::forget(&self.layout, &self.mounts, &self.cgroups).await?;
        self.begin().await?;
        // Without it no Pod starts.
        self.import_images(|it| it.ends_with(PAUSE_ARCHIVE)).await;
        Ok(())
    }

    async fn remove_damaged(&self, bytes_max: u64) -> Vec<PathBuf> {
        let root = self.layout.containerd_root();
        tokio::task::spawn_blocking(move || blobs::remove_damaged(&root, bytes_max)).await.unwrap_or_default()
    }

    /// Where it has ended, and damaged records are why.
    async fn damage_it_ended_by(&self) -> Option<String> {
        let mut life = self.life.lock().await;
        let life = life.as_mut()?;
        life.child.try_wait().ok()??;
        records::damage(&life.log(&self.layout))
    }

    async fn begin(&self) -> Result<(), MachineError> {
        let layout = self.layout.clone();
        // One that could not open its records serves all the same, without what matters.
        let is_running = running(&layout).is_some();
        let is_crippled = is_running && self.cri.version().await.is_err_and(|it| it.is_unimplemented());
        // Nor can one that would have containers' cgroups made, or Pods plugged in, by somebody else.
        let is_told_otherwise = is_running && !is_told(&layout, &self.options.pod_link, &self.cgroups);
        if is_crippled || is_told_otherwise {
            let layout = layout.clone();
            let ended = tokio::task::spawn_blocking(move || end(&layout)).await.map_err(io::Error::other);
            ended.doing("end the containerd of", &self.layout.run)?;
        }
        let is_there = running(&layout).is_some();
        // Looked at before anything new is made: what is there and nobody knows of was left behind.
        let look = move || (shims::of(&layout.containerd_socket()), cni::taken(&layout));
        let looked = tokio::task::spawn_blocking(look).await.map_err(io::Error::other);
        let (shims, addresses) = looked.doing("look for what was left behind in", &self.layout.run)?;
        if !is_there {
            self.spawn().await?;
        }
        self.wait_until_it_answers().await?;
        if !is_there {
            let checked = records::check(&self.layout, &self.cri).await;
            if let Some(what) = self.damage_it_ended_by().await {
                return Err(MachineError::Damaged(what));
            }
            checked?;
            // A node that cannot tell which images are whole is of more use than none; the next start tries again.
            if let Err(error) = self.images.forget_unsynced().await {
                tracing::error!(%error, "images that the machine's end may have damaged cannot be removed");
            }
        }
        // One that goes on may just be making them.
        let shims = if is_there { Vec::new() } else { shims };
        self.end_forgotten(shims, addresses).await
    }

    /// Ends shims, and gives back addresses, of sandboxes that containerd does not know.
    async fn end_forgotten(
        &self,
        shims: Vec<shims::Shim>,
        addresses: Vec<cni::AllocatedAddress>,
    ) -> Result<(), MachineError> {
        let known = match self.cri.list_pod_sandboxes(None).await {
            Ok(sandboxes) => sandboxes.into_iter().map(|it| it.id).collect(),
            Err(error) => {
                tracing::warn!(%error, "cannot tell what has been forgotten");
                return Ok(());
            }
        };
        let ended = tokio::task::spawn_blocking(move || {
            shims::end_forgotten(shims, &known);
            cni::give_back(addresses, &known);
        });
        ended.await.map_err(io::Error::other).doing("end what has been forgotten in", &self.layout.run)
    }

    /// Returns when no containerd of this node runs.
    async fn ended(&self) {
        let Some(process) = running(&self.layout).and_then(Process::find) else { return };
        if let Err(error) = process.ended().await {
            tracing::warn!(%error, "cannot watch containerd");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn spawn(&self) -> Result<(), MachineError> {
        if !self.remove_damaged(blobs::SMALL).await.is_empty() {
            records::forget_imports(&self.layout)?;
        }
        self.images.begin()?;
        let path = self.layout.containerd_config();
        let with_systemd = self.cgroups.are_systemds();
        let runtime = self
            .mounts
            .run(move || OciRuntime::choose(with_systemd))
            .await
            .doing("look for a runtime for", &self.layout.run)?;
        fs::write(&path, config(&self.layout, &self.options.pod_link, &self.cgroups, &runtime)?)
            .doing("write", &path)?;
        let log_path = self.layout.containerd_log();
        let log = open_log(&log_path).doing("open", &log_path)?;
        let log_begin = log.metadata().doing("read", &log_path)?.len();
        let errors = log.try_clone().doing("open", &log_path)?;
        let mut program = Command::new(&self.options.containerd);
        program.arg("--config").arg(&path).stdin(Stdio::null()).stdout(log).stderr(errors).current_dir("/");
        // It would tell systemd that Corten is ready, and runc would pass that on from containers.
        program.env_remove(NOTIFY_SOCKET);
        detach(&mut program);
        let child = self
            .mounts
            .run(move || program.spawn())
            .await
            .and_then(|it| it)
            .doing("start", &self.options.containerd)?;
        let pid_path = self.layout.containerd_pid();
        fs::write(&pid_path, child.id().to_string()).doing("write", &pid_path)?;
        // Best effort: where cgroups cannot be written, containerd shares ours.
        if let Err(error) = self.cgroups.isolate_runtime(child.id()) {
            tracing::warn!(%error, "containerd stays in the cgroup of corten");
        }
        *self.life.lock().await = Some(ContainerdProcess { child, log_begin });
        Ok(())
    }

    async fn wait_until_it_answers(&self) -> Result<(), MachineError> {
        let end = Instant::now() + START_DEADLINE;
        loop {
            let error = match self.cri.version().await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if let Some(failure) = self.failure(&error).await {
                return Err(failure);
            }
            if Instant::now() > end {
                let (seconds, log) = (START_DEADLINE.as_secs(), self.layout.containerd_log());
                let message =
                    format!("containerd runs, and has not answered within {seconds} s: {error}; see {}", log.display());
                return Err(MachineError::Missing(message));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Why it will not answer, where that is known.
    async fn failure(&self, error: &CriError) -> Option<MachineError> {
        let mut life = self.life.lock().await;
        let life = life.as_mut()?;
        let how = match life.child.try_wait() {
            Ok(Some(status)) => format!("ended ({status})"),
            // Its other services answer: this one failed, and will not come.
            _ if error.is_unimplemented() => "runs without the service for containers".to_owned(),
            _ => return None,
        };
        let told = life.log(&self.layout);
        if let Some(what) = records::damage(&told) {
            return Some(MachineError::Damaged(what));
        }
        let (log, last) = (self.layout.containerd_log(), records::last_complaint(&told));
        Some(MachineError::Missing(format!("containerd {how}; see {}: {last}", log.display())))
    }
}

/// Was the containerd that runs started for these cgroups, and for this Pod network?
fn is_told(layout: &Layout, link: &PodLink, cgroups: &Cgroups) -> bool {
    let config = fs::read_to_string(layout.containerd_config()).unwrap_or_default();
    config.contains(&systemd_cgroup(cgroups))
        && link.programs().is_ok_and(|it| config.contains(&network_folders(layout, link, &it)))
}

/// Where the programs and the configuration of the Pods' network are.
fn network_folders(layout: &Layout, link: &PodLink, programs: &Path) -> String {
    format!("bin_dir = {}\n    conf_dir = {}", quoted(programs), quoted(&link.config(layout)))
}

/// As TOML has it.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

/// Who makes containers' cgroups.
fn systemd_cgroup(cgroups: &Cgroups) -> String {
    format!("SystemdCgroup = {}", cgroups.are_systemds())
}

/// The containerd of this node, where it runs.
pub(crate) fn running(layout: &Layout) -> Option<Pid> {
    let config = layout.containerd_config();
    let noted = fs::read_to_string(layout.containerd_pid()).ok().and_then(|it| it.trim().parse().ok());
    if let Some(pid) = noted.filter(|it| is_containerd(*it, &config)) {
        return Pid::from_raw(pid);
    }
    // The note may be lost or torn; a second one beside the first would find all its files taken.
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    pids.find(|it| is_containerd(*it, &config)).and_then(Pid::from_raw)
}

/// Is this a containerd with that configuration? A zombie has no command line; another process that got the number has
/// another. Whoever can start a process can give it such a command line, so it must be one of this user's and in no container.
fn is_containerd(pid: i32, config: &Path) -> bool {
    if !process::is_own(pid) {
        return false;
    }
    let Ok(command_line) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let args: Vec<&[u8]> = command_line.split(|it| *it == 0).collect();
    args.first().is_some_and(|it| it.ends_with(b"containerd"))
        && args.windows(2).any(|it| it[0] == b"--config" && it[1] == config.as_os_str().as_encoded_bytes())
}

/// Ends containerd; containers go on. Blocks the thread until it has ended.
pub(crate) fn end(layout: &Layout) {
    let Some(process) = running(layout).and_then(Process::find) else { return };
    process.signal(Signal::TERM);
    if !process.ends_within(Duration::from_secs(5)) {
        process.signal(Signal::KILL);
        process.ends_within(Duration::from_secs(5));
    }
}

impl ContainerdProcess {
    /// What it has told so far; more than that where the file was begun anew meanwhile.
    fn log(&self, layout: &Layout) -> String {
        let text = fs::read(layout.containerd_log()).unwrap_or_default();
        let begin = usize::try_from(self.log_begin).ok().filter(|it| *it <= text.len()).unwrap_or(0);
        String::from_utf8_lossy(&text[begin..]).into_owned()
    }
}

/// CAP_SYS_RESOURCE: without it no process may be shielded from the kernel's out-of-memory killer.
fn may_lower_oom_scores() -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    effective.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).is_some_and(|it| it & SYS_RESOURCE != 0)
}

pub(crate) fn apparmor_works() -> bool {
    fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|it| it.trim() == "Y")
        && ["/sbin/apparmor_parser", "/usr/sbin/apparmor_parser"].iter().any(|it| Path::new(it).exists())
}

/// containerd's configuration, in the version that 1.6 to 2.x read.
fn config(layout: &Layout, link: &PodLink, cgroups: &Cgroups, runtime: &OciRuntime) -> Result<String, MachineError> {
    let has_own_pause = archives::archives(layout).iter().any(|it| it.ends_with(PAUSE_ARCHIVE));
    let may_lower = may_lower_oom_scores();
    let mut text = String::new();
    let written = write!(
        text,
        r#"version = 2
root = {root}
state = {state}
oom_score = {oom_score}
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = {socket}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = {restrict}
  disable_apparmor = {no_apparmor}
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  netns_mounts_under_state_dir = true
  enable_cdi = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        {systemd_cgroup}
        BinaryName = {program}
        Root = {records}
  [plugins."io.containerd.grpc.v1.cri".cni]
    {network}
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"#,
        root = quoted(&layout.containerd_root()),
        state = quoted(&layout.containerd_state()),
        oom_score = if may_lower { -999 } else { 0 },
        socket = quoted(&layout.containerd_socket()),
        pause = if has_own_pause { PAUSE_IMAGE } else { PUBLIC_PAUSE_IMAGE },
        restrict = !may_lower,
        no_apparmor = !apparmor_works(),
        systemd_cgroup = systemd_cgroup(cgroups),
        program = quoted(runtime.program()),
        records = quoted(&layout.run.join(runtime.name())),
        network = network_folders(layout, link, &link.programs()?),
    );
    written.expect("writing to a string never fails");
    text += &other_runtimes::other_runtimes(cgroups.are_systemds());
    Ok(text)
}
