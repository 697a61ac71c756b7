//! Carries out what the kubelet decides on this machine: each effect becomes calls to the runtime and work on folders.
//!
//! Nothing is chosen here. A failure is told in upstream's words, for the mind to pass on.

mod addresses;
mod cdi;
mod cgroups;
mod config;
mod health;
mod housekeeping;
mod images;
mod measure;
mod pleg;
mod plugged;
mod readings;
mod resize;
mod running;
mod sandboxes;
mod stop;
mod volumes;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use corten_devices::{ClaimDrivers, DevicePlugins};
use corten_kubelet::{
    Action, ContainerSpec, Event, Failure, HookAnswer, HostEffect, MountSource, NodeNews, Observed, ObservedSandbox,
    Outcome, Plugin, PodRef, ProbeVerdict, Resources, SandboxSpec, StartFailure, StartStage,
};
use corten_machine::{Cgroups, EndOfMachine, Layout, NodeMounts, PodLimits, oom::Kills};
use corten_network::{PodPolicies, PodSourceGuards, cni::PodLink, peers::WireGuard};
use corten_volumes::{Drivers, Mounter};
use tokio::sync::{Mutex, Notify};

use crate::{
    Containerd, Cri, CriError, VolumeError, Volumes,
    containerd::{SyncedImages, left_tasks},
    cri, logs, node_paths,
    oci_runtime::records,
    stats::{
        Stats,
        counters::{self, Counters},
    },
    user_namespaces::UserNamespaces,
};

pub use config::{MASKED_PATHS, READ_ONLY_PATHS};
pub use running::RunningHere;

/// `MaxContainerTerminationMessageLogLength`: what may be read back of a log for a message.
const LOG_TAIL_BYTES: usize = 2048;
/// How many processes one pod may have.
const PIDS_MAX: u64 = 16_384;

/// One node's hands. Cheap to clone.
#[derive(Clone)]
pub struct NodeHands {
    inner: Arc<Inner>,
}

struct Inner {
    cri: Cri,
    layout: Layout,
    cgroups: Cgroups,
    volumes: Volumes,
    /// Brings what outlives Pods.
    mounter: Mounter,
    /// Gives what device plugins offer.
    devices: DevicePlugins,
    /// Prepares what claims were given.
    claims: ClaimDrivers,
    /// Something was done to a container: the next look must come at once.
    nudge: Notify,
    observer: Mutex<pleg::Observer>,
    known: pleg::PodCache,
    schedule: Mutex<housekeeping::HousekeepingSchedule>,
    kills: Arc<std::sync::Mutex<Kills>>,
    end: EndOfMachine,
    mounts: NodeMounts,
    link: PodLink,
    source_guards: PodSourceGuards,
    policies: PodPolicies,
    making: sandboxes::Making,
    /// Set where Pods begin anew at the addresses that they had.
    offers: OnceLock<addresses::Offers>,
    images: SyncedImages,
    user_namespaces: UserNamespaces,
    stats: Stats,
    counters: Counters,
    stop_turns: stop::StopTurns,
    /// All processes of a container end where one is killed for want of memory.
    kills_together: bool,
    node_name: OnceLock<String>,
    /// The tunnel to other nodes, where it is one.
    wireguard: OnceLock<WireGuard>,
}

impl NodeHands {
    pub fn new(containerd: &Containerd) -> Self {
        let layout = containerd.layout().clone();
        let end = EndOfMachine::default();
        let cgroups = containerd.cgroups().clone();
        let mounter = Mounter::new(layout.clone(), containerd.mounts(), Drivers::default());
        let inner = Inner {
            schedule: Mutex::new(housekeeping::HousekeepingSchedule::new(end.news(), mounter.left())),
            end,
            kills: Arc::new(std::sync::Mutex::new(Kills::open())),
            cri: containerd.cri(),
            kills_together: cgroups.is_unified() && !containerd.options().single_process_oom_kill,
            cgroups,
            volumes: Volumes::new(layout.clone(), containerd.mounts()),
            mounter,
            devices: DevicePlugins::new(&layout),
            claims: ClaimDrivers::new(&layout),
            nudge: Notify::new(),
            observer: Mutex::new(pleg::Observer::new(&layout)),
            known: pleg::PodCache::default(),
            mounts: containerd.mounts(),
            link: containerd.options().pod_link.clone(),
            source_guards: containerd.source_guards(),
            policies: containerd.policies(),
            making: sandboxes::Making::default(),
            offers: OnceLock::new(),
            images: containerd.images(),
            user_namespaces: UserNamespaces::new(&layout),
            stats: Stats::default(),
            counters: Counters::default(),
            stop_turns: stop::StopTurns::default(),
            node_name: OnceLock::new(),
            wireguard: OnceLock::new(),
            layout,
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn cri(&self) -> &Cri {
        &self.inner.cri
    }

    pub fn layout(&self) -> &Layout {
        &self.inner.layout
    }

    /// Says which node these hands are of, for what they tell others.
    pub fn set_node_name(&self, name: &str) {
        // The first word holds.
        let _ = self.inner.node_name.set(name.to_owned());
    }

    /// Has the Node tell this tunnel's key, and that it is not well.
    pub fn set_wireguard(&self, wireguard: WireGuard) {
        // The first word holds.
        let _ = self.inner.wireguard.set(wireguard);
    }

    pub(crate) fn node_name(&self) -> &str {
        self.inner.node_name.get().map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn cgroups(&self) -> &Cgroups {
        &self.inner.cgroups
    }

    /// Do all processes of a container end where one is killed for want of memory?
    pub(crate) fn kills_together(&self) -> bool {
        self.inner.kills_together
    }

    pub(crate) fn mounts(&self) -> NodeMounts {
        self.inner.mounts.clone()
    }

    /// Who brings volumes that outlive Pods.
    pub fn mounter(&self) -> &Mounter {
        &self.inner.mounter
    }

    /// The plugins that offer devices to containers.
    pub fn device_plugins(&self) -> &DevicePlugins {
        &self.inner.devices
    }

    /// The drivers that prepare claims for devices.
    pub fn claim_drivers(&self) -> &ClaimDrivers {
        &self.inner.claims
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Carries out one effect and tells how it ended.
    pub async fn perform(&self, effect: HostEffect) -> Vec<Event> {
        let pod = effect.pod().clone();
        let (operation, began) = (counters::operation(&effect), Instant::now());
        let mut outcome = self.inner.outcome(effect).await;
        node_paths::shorten(&self.inner.layout, &pod, &mut outcome);
        self.inner.counters.note(&pod, operation, &outcome, began.elapsed());
        if matches!(
            outcome,
            Outcome::Stopped { .. } | Outcome::SandboxStopped { .. } | Outcome::Container { result: Err(_), .. }
        ) {
            self.inner.nudge.notify_one();
        }
        // Before the pod lets go of its volumes it is known which of them must not be detached yet.
        let left = self.mounter().left().borrow().clone();
        let is_release = matches!(outcome, Outcome::VolumesReleased(_) | Outcome::PodRemoved(_)) && !left.is_empty();
        let left = is_release.then(|| Event::OfNode(NodeNews::VolumesLeft(left)));
        left.into_iter().chain([Event::Done { pod, outcome }]).collect()
    }

    /// The next call for news is a first one again.
    pub async fn renew(&self) {
        let mut observer = self.inner.observer.lock().await;
        self.inner.known.clear();
        self.inner.devices.renew();
        *observer = pleg::Observer::new(&self.inner.layout);
    }

    /// Waits for the next news of the machine; the first call answers as soon as the runtime does.
    pub async fn events(&self) -> Vec<Event> {
        let mut observer = self.inner.observer.lock().await;
        observer.next(&self.inner).await
    }
}

impl Inner {
    /// Other hands of the same machine, which know nothing of what these have seen.
    #[cfg(test)]
    fn like(other: &Self) -> Self {
        Self {
            cri: other.cri.clone(),
            layout: other.layout.clone(),
            cgroups: other.cgroups.clone(),
            volumes: other.volumes.clone(),
            mounter: other.mounter.clone(),
            devices: other.devices.clone(),
            claims: other.claims.clone(),
            nudge: Notify::new(),
            observer: Mutex::new(pleg::Observer::new(&other.layout)),
            known: pleg::PodCache::default(),
            schedule: Mutex::new(housekeeping::HousekeepingSchedule::new(other.end.news(), other.mounter.left())),
            end: other.end.clone(),
            kills: other.kills.clone(),
            mounts: other.mounts.clone(),
            link: other.link.clone(),
            source_guards: other.source_guards.clone(),
            policies: other.policies.clone(),
            wireguard: other.wireguard.clone(),
            making: sandboxes::Making::default(),
            offers: OnceLock::new(),
            images: other.images.clone(),
            user_namespaces: other.user_namespaces.clone(),
            stats: Stats::default(),
            counters: Counters::default(),
            stop_turns: stop::StopTurns::default(),
            kills_together: other.kills_together,
            node_name: other.node_name.clone(),
        }
    }

    async fn outcome(&self, effect: HostEffect) -> Outcome {
        match effect {
            HostEffect::PrepareVolumes { pod, volumes, group } => {
                Outcome::Volumes(self.prepare_volumes(&pod, volumes, group).await)
            }
            HostEffect::RunSandbox(spec) => Outcome::Sandbox(self.run_sandbox(&spec).await),
            HostEffect::StopSandbox { id, .. } => {
                let result = self.stop_sandbox(&id).await;
                Outcome::SandboxStopped { id, result }
            }
            HostEffect::RemoveSandbox { id, .. } => {
                let result = self.remove_sandbox(&id).await;
                Outcome::SandboxRemoved { id, result }
            }
            HostEffect::InspectImage { container, image, .. } => {
                Outcome::Image { container, result: self.inspect(&image).await }
            }
            HostEffect::PullImage { container, image, credentials, .. } => {
                Outcome::Pulled { container, result: self.pull(&image, credentials).await }
            }
            HostEffect::PrepareDevices { pod, claims } => {
                Outcome::Prepared(self.claims.prepare(&pod, claims).await.map_err(Failure::new))
            }
            HostEffect::RecallDevices { pod } => Outcome::Recalled(self.claims.recall(&pod.uid).await),
            HostEffect::AllocateDevices { pod, wish } => {
                let given = self.devices.allocate(&pod.uid, wish).await;
                Outcome::Devices(given.map(Box::new).map_err(Failure::new))
            }
            HostEffect::StartContainer(spec) => {
                let result = self.start_container(&spec).await;
                Outcome::Container { container: spec.name, attempt: spec.attempt, result }
            }
            HostEffect::StopContainer { pod, container, id, timeout_seconds, signal } => {
                let grace = Duration::from_secs(u64::try_from(timeout_seconds).unwrap_or(0));
                let result = self.stop(&pod, &id, grace, signal.as_deref()).await;
                Outcome::Stopped { container, id, result }
            }
            HostEffect::RemoveContainer { pod, container, id, attempt } => {
                let result = self.end(|| self.cri.remove_container(&id)).await;
                if result.is_ok() {
                    self.remove_log(&pod, &container, attempt).await;
                }
                Outcome::Removed { container, id, result }
            }
            HostEffect::Probe { container, id, probe, action, timeout_seconds, .. } => {
                let verdict = self.probe(&id, &action, Duration::from_secs(timeout_seconds.into())).await;
                Outcome::Probed { container, id, probe, verdict }
            }
            HostEffect::RunHook { container, id, hook, action, timeout_seconds, .. } => {
                let result = self.hook(&id, &action, Duration::from_secs(timeout_seconds.into())).await;
                Outcome::Hooked { container, id, hook, result: result.map_err(Failure::new) }
            }
            HostEffect::ReadFiles { pod, container, files } => {
                let result = self.volumes.read_files(&pod.uid, files).await;
                Outcome::FilesRead { container, result: result.map_err(|it| Failure::new(it.to_string())) }
            }
            HostEffect::Resize { pod, qos, steps, checks } => {
                Outcome::Resized(self.resize(&pod, qos, steps, checks).await)
            }
            HostEffect::PinContainer { container, id, cpus, .. } => {
                Outcome::Pinned { container, result: self.pin(&id, cpus).await }
            }
            HostEffect::TailLog { pod, container, attempt, lines } => {
                let path = self.log(&pod, &container, attempt);
                let text = logs::tail_of(path, u64::from(lines), LOG_TAIL_BYTES).await;
                Outcome::LogTail { container, text }
            }
            HostEffect::ReleaseVolumes { pod } => Outcome::VolumesReleased(self.release_volumes(&pod).await),
            HostEffect::RemovePod { pod } => Outcome::PodRemoved(self.remove_pod(&pod).await),
        }
    }

    // ---- sandboxes ----

    async fn run_sandbox(&self, spec: &SandboxSpec) -> Result<ObservedSandbox, Failure> {
        self.prepare_pod(spec).await.map_err(|it| Failure::new(it.to_string()))?;
        let first_id = self.first_id(&spec.pod, spec.own_users).await.map_err(Failure::new)?;
        let config = config::sandbox(spec, &self.layout, &self.cgroups, first_id);
        let _making = self.making.begin(&spec.pod.uid, spec.attempt);
        let id = self.run_at(spec, config).await.map_err(|it| rpc(&it))?;
        if !spec.host_network
            && let Err(error) = self.source_guards.watch(&id).await
        {
            // No container of a Pod that could speak for others ever starts.
            self.stop_sandbox(&id).await?;
            return Err(Failure::new(format!("failed to check the sources of what the sandbox sends: {error}")));
        }
        if !spec.host_network
            && let Err(error) = self.lay_policies(&id, spec).await
        {
            // No container starts before its policies hold.
            self.stop_sandbox(&id).await?;
            return Err(Failure::new(format!("failed to lay the network policies of the pod: {error}")));
        }
        let status = self.cri.pod_sandbox_status(&id).await.map_err(|it| rpc(&it))?;
        let sandbox = pleg::sandbox_of(&status);
        self.known.note_sandbox(&sandbox);
        Ok(ObservedSandbox { pod: spec.pod.clone(), attempt: spec.attempt, ..sandbox })
    }

    /// The first id of the pod's own user namespace, where it has one.
    async fn first_id(&self, pod: &PodRef, own_users: bool) -> Result<Option<u32>, String> {
        if !own_users {
            return Ok(None);
        }
        let (given, uid) = (self.user_namespaces.clone(), pod.uid.clone());
        let work = tokio::task::spawn_blocking(move || given.first_id(&uid));
        work.await.map_err(|it| it.to_string())?.map(Some)
    }

    /// The pod's log folder and its cgroup, which must be there before its first container.
    async fn prepare_pod(&self, spec: &SandboxSpec) -> std::io::Result<()> {
        let who = &spec.pod;
        let logs = self.layout.pod_logs(&who.key.namespace, &who.key.name, &who.uid);
        let (limits, qos, uid) = (limits_of(&spec.resources), spec.qos, who.uid.clone());
        let named = |it: std::io::Error| std::io::Error::new(it.kind(), format!("creating {}: {it}", logs.display()));
        tokio::fs::create_dir_all(&logs).await.map_err(named)?;
        self.on_cgroups("create", move |cgroups| cgroups.create_pod(qos, &uid, &limits)).await
    }

    async fn stop_sandbox(&self, id: &str) -> Result<(), Failure> {
        let port = self.source_guards.port(id);
        let plugged = self.plugged(id).await;
        let mut stopped = self.end(|| self.cri.stop_pod_sandbox(id)).await;
        // As a full disk leaves it, too: not only a boot finds it so.
        if stopped.is_err() && self.link.forget_broken_result(&self.layout, id) {
            stopped = self.end(|| self.cri.stop_pod_sandbox(id)).await;
        }
        stopped?;
        self.policies.unplug(id, plugged.as_ref().map_or(&[], |it| &it.addresses)).await;
        if let Some(port) = port {
            self.source_guards.forget(&port).await;
        }
        Ok(())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<(), Failure> {
        self.stop_sandbox(id).await?;
        self.end(|| self.cri.remove_pod_sandbox(id)).await
    }

    /// Has something ended that may be gone already. What the runtime has lost of it is made again, and what it has kept of it is
    /// ended; then it is asked anew.
    async fn end<A>(&self, ask: impl Fn() -> A) -> Result<(), Failure>
    where
        A: Future<Output = Result<(), CriError>>,
    {
        let result = match ask().await {
            Err(error)
                if records::make_again(&self.layout, &error.message)
                    || left_tasks::end(&self.layout, &error.message).await =>
            {
                ask().await
            }
            other => other,
        };
        gone_is_fine(result)
    }

    // ---- containers ----

    /// What is written into the container's cgroup of version 2, by file, beyond what CRI has words for: who is killed for want
    /// of memory, one process or all, and how much may be swapped out (KEP-2400).
    fn cgroup_files(&self, spec: &ContainerSpec) -> BTreeMap<String, String> {
        let kills_together = self.kills_together.then(|| ("memory.oom.group", "1".to_owned()));
        let swaps = self.cgroups.limits_swap().then(|| ("memory.swap.max", spec.swap_bytes.to_string()));
        kills_together.into_iter().chain(swaps).map(|(file, text)| (file.to_owned(), text)).collect()
    }

    async fn start_container(&self, spec: &ContainerSpec) -> Result<corten_kubelet::ObservedContainer, StartFailure> {
        let failed = |stage, message: String| StartFailure { stage, message, container: None };
        let spec = self.with_described_devices(spec).await.map_err(|it| failed(StartStage::Create, it))?;
        let spec = &*spec;
        let mounts = self.mounts(spec).await.map_err(|it| failed(StartStage::Config, it.to_string()))?;
        let log = self.log(&spec.pod, &spec.name, spec.attempt);
        let folder = log.parent().expect("a log lies in a folder");
        tokio::fs::create_dir_all(folder).await.map_err(|it| failed(StartStage::Create, it.to_string()))?;
        let first_id = self.first_id(&spec.pod, spec.own_users).await;
        let first_id = first_id.map_err(|it| failed(StartStage::Config, it))?;
        let sandbox = config::sandbox_of_container(spec, &self.layout, &self.cgroups, first_id);
        let devices = self.devices(spec).map_err(|it| failed(StartStage::Config, it.to_string()))?;
        self.devices.pre_start(&spec.plugged.allocated).await.map_err(|it| failed(StartStage::Config, it))?;
        let parts = config::Parts { mounts, devices, unified: self.cgroup_files(spec), first_id };
        let config = config::container(spec, parts, &self.layout);
        let created = self.cri.create_container(&spec.sandbox_id, config, sandbox).await;
        let id = created.map_err(|it| failed(StartStage::Create, images::explain(spec, it.message)))?;
        if let Err(problem) = self.check_image_mounts(&id, spec).await {
            self.end(|| self.cri.remove_container(&id)).await.map_err(|it| failed(StartStage::Create, it.message))?;
            return Err(failed(StartStage::Create, problem));
        }
        if let Err(error) = self.cri.start_container(&id).await {
            // What is left behind shows how it ended: exit code 128, StartError.
            let container = self.look_at(&id, spec).await;
            return Err(StartFailure { stage: StartStage::Start, message: error.message, container });
        }
        self.keep_used(&spec.image_ref).await;
        let found = self.look_at(&id, spec).await;
        // The last words of one that has ended already may still be on their way.
        if let Some(running) = found.as_ref().filter(|it| matches!(it.state, Observed::Running { .. })) {
            self.known.note_container(running);
        }
        Ok(found.unwrap_or_else(|| pleg::just_started(&id, spec)))
    }

    async fn look_at(&self, id: &str, spec: &ContainerSpec) -> Option<corten_kubelet::ObservedContainer> {
        let mut status = self.cri.container_status(id).await.ok()?;
        pleg::correct_reason(self, &mut status).await;
        let message = self.last_words(&status).await;
        Some(pleg::container_of(&status, &spec.sandbox_id, message))
    }

    async fn mounts(&self, spec: &ContainerSpec) -> Result<Vec<cri::Mount>, VolumeError> {
        let mut mounts = Vec::new();
        for (index, mount) in spec.mounts.iter().enumerate() {
            let uid = &spec.pod.uid;
            let (path, name, sub_path) = match &mount.source {
                MountSource::Image { image_ref, reference, sub_path } => {
                    mounts.push(config::image_mount(mount, image_ref, reference, sub_path));
                    continue;
                }
                MountSource::Volume { plugin: Plugin::Csi, name, sub_path } => {
                    let path = self.mounter.path(uid, Plugin::Csi.as_str(), name);
                    let path = path.map_err(|it| VolumeError::Refused(it.to_string()))?;
                    (path, name.as_str(), sub_path.as_str())
                }
                MountSource::Volume { plugin, name, sub_path } => {
                    (self.volumes.volume(uid, plugin.as_str(), name)?, name.as_str(), sub_path.as_str())
                }
                MountSource::HostPath { name, path, sub_path } => {
                    (PathBuf::from(path), name.as_str(), sub_path.as_str())
                }
                MountSource::Hosts(hosts) => (self.volumes.hosts_file(uid, hosts).await?, "", ""),
                MountSource::TerminationLog => {
                    (self.volumes.termination_log(uid, &spec.name, spec.attempt).await?, "", "")
                }
            };
            let path = if sub_path.is_empty() {
                path
            } else {
                let bound = self.volumes.sub_path(uid, &spec.name, index, &path, sub_path).await;
                bound.map_err(|error| no_sub_path(name, &spec.name, &error))?
            };
            mounts.push(config::mount(mount, &path));
        }
        Ok(mounts)
    }

    fn log(&self, pod: &PodRef, container: &str, attempt: u32) -> PathBuf {
        self.layout.container_log(&pod.key.namespace, &pod.key.name, &pod.uid, container, attempt)
    }

    /// Its log and what rotation made of it. One that stays for a fault costs only room until the pod is removed.
    async fn remove_log(&self, pod: &PodRef, container: &str, attempt: u32) {
        let log = self.log(pod, container, attempt);
        let (Some(folder), Some(name)) = (log.parent(), log.file_name().and_then(|it| it.to_str())) else { return };
        let Ok(mut entries) = tokio::fs::read_dir(folder).await else { return };
        while let Ok(Some(entry)) = entries.next_entry().await {
            if entry.file_name().to_str().is_some_and(|it| it.starts_with(name))
                && let Err(error) = tokio::fs::remove_file(entry.path()).await
            {
                tracing::debug!(path = %entry.path().display(), %error, "cannot remove a log");
            }
        }
    }

    // ---- probes and hooks ----

    async fn probe(&self, id: &str, action: &Action, timeout: Duration) -> ProbeVerdict {
        let Action::Exec { command } = action else { return health::probe(action, timeout).await };
        match self.cri.exec_sync(id, command.clone(), timeout).await {
            Ok(it) if it.exit_code == 0 => ProbeVerdict::Success,
            Ok(it) if output_of(&it).trim().is_empty() => ProbeVerdict::SilentFailure(it.exit_code),
            Ok(it) => ProbeVerdict::Failure(output_of(&it)),
            Err(error) if error.is_deadline() => {
                let seconds = timeout.as_secs();
                ProbeVerdict::Failure(format!("command timed out: {:?} timed out after {seconds}s", command.join(" ")))
            }
            Err(error) => ProbeVerdict::Unknown(rpc(&error).message),
        }
    }

    async fn hook(&self, id: &str, action: &Action, timeout: Duration) -> Result<HookAnswer, String> {
        let Action::Exec { command } = action else { return health::hook(action, timeout).await };
        match self.cri.exec_sync(id, command.clone(), timeout).await {
            Ok(it) if it.exit_code == 0 => Ok(HookAnswer::Ran),
            Ok(it) => {
                let (command, code) = (command.join(" "), it.exit_code);
                Err(format!("command '{command}' exited with {code}: {}", output_of(&it)))
            }
            Err(error) => Err(rpc(&error).message),
        }
    }
}

fn output_of(answer: &cri::ExecSyncResponse) -> String {
    let text = |it: &[u8]| String::from_utf8_lossy(&it[..it.len().min(10 << 10)]).into_owned();
    format!("{}{}", text(&answer.stdout), text(&answer.stderr))
}

/// As in `makeMounts`, the user is not told what lies where on the machine.
fn no_sub_path(volume: &str, container: &str, error: &VolumeError) -> VolumeError {
    tracing::debug!(%error, volume, container, "no subPath");
    VolumeError::Refused(format!("failed to prepare subPath for volumeMount {volume:?} of container {container:?}"))
}

fn gone_is_fine(result: Result<(), CriError>) -> Result<(), Failure> {
    match result {
        Err(error) if !error.is_not_found() => Err(rpc(&error)),
        _ => Ok(()),
    }
}

/// An answer of the runtime, as grpc-go writes it.
pub(crate) fn rpc(error: &CriError) -> Failure {
    Failure::new(format!("rpc error: code = {:?} desc = {}", error.code, error.message))
}

fn limits_of(resources: &Resources) -> PodLimits {
    let positive = |it: i64| u64::try_from(it).ok().filter(|it| *it > 0);
    PodLimits {
        cpu_shares: positive(resources.cpu_shares),
        cpu_quota_micros: Some(resources.cpu_quota).filter(|it| *it > 0),
        memory_bytes: positive(resources.memory_limit_bytes),
        pids: Some(PIDS_MAX),
    }
}

#[cfg(test)]
mod tests;
