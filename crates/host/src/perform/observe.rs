//! What the machine shows: the runtime's sandboxes and containers, and the node's facts.
//!
//! containerd tells at once that something happened; what it is, is read afresh. Now and then all is read in any case.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    time::Duration,
};

use corten_kubelet::{
    ContainerSpec, Event, Exit, NodeFacts, NodeImage, Observed, ObservedContainer, ObservedSandbox, PodRef, Snapshot,
};
use corten_meta::Time;
use futures_util::{Stream, StreamExt};
use jiff::Timestamp;
use tokio::time::Instant;

use super::Inner;
use crate::{CriError, Layout, RuntimeEvent, cri, events, gather, logs};

/// Without any event the runtime is read this often.
const RELIST: Duration = Duration::from_secs(2);
/// A snapshot is told this often even where it shows nothing new.
const RESYNC: Duration = Duration::from_secs(60);
const FACTS: Duration = Duration::from_secs(10);
/// While the node cannot run Pods, whether that is over is asked this often.
const FACTS_IN_TROUBLE: Duration = Duration::from_secs(1);
/// As upstream: of an unread log, this much is a message.
const FALLBACK_LINES: u64 = 80;
const FALLBACK_BYTES: usize = 2048;
/// Below this much free memory or disk the node is under pressure, as upstream.
const MEMORY_FLOOR: u64 = 100 << 20;

/// Keeps what was last told.
pub(super) struct Observer {
    events: Pin<Box<dyn Stream<Item = RuntimeEvent> + Send>>,
    told: Option<(Snapshot, Instant)>,
    facts: Option<NodeFacts>,
    facts_at: Option<Instant>,
    /// What does not change any more is asked for once.
    ended: BTreeMap<String, ObservedContainer>,
    running: BTreeMap<String, ObservedContainer>,
    networks: BTreeMap<String, Vec<String>>,
}

impl Observer {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            events: Box::pin(events(&layout.containerd_socket())),
            told: None,
            facts: None,
            facts_at: None,
            ended: BTreeMap::new(),
            running: BTreeMap::new(),
            networks: BTreeMap::new(),
        }
    }

    pub(super) async fn next(&mut self, inner: &Inner) -> Vec<Event> {
        loop {
            let mut news = Vec::new();
            if self.are_facts_due() {
                self.facts_at = Some(Instant::now());
                let facts = self.facts(inner).await;
                if self.facts.as_ref() != Some(&facts) {
                    self.facts = Some(facts.clone());
                    news.push(Event::Facts(Box::new(facts)));
                }
            }
            match self.snapshot(inner).await {
                Ok(snapshot) if self.is_news(&snapshot) => {
                    self.told = Some((snapshot.clone(), Instant::now()));
                    news.push(Event::Snapshot(snapshot));
                }
                Ok(_) => {}
                // The next facts say that the runtime is away; until it is back nothing is known.
                Err(error) => tracing::debug!(%error, "cannot read the runtime"),
            }
            if !news.is_empty() {
                return news;
            }
            let pause = if self.is_in_trouble() { FACTS_IN_TROUBLE } else { RELIST };
            tokio::select! {
                biased;
                () = inner.nudge.notified() => {}
                event = self.events.next() => {
                    // A runtime that has come back has something to say of itself, too.
                    if event == Some(RuntimeEvent::Connected) {
                        self.facts_at = None;
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn is_in_trouble(&self) -> bool {
        self.facts.as_ref().is_some_and(|it| it.runtime_problem.is_some() || it.network_problem.is_some())
    }

    fn are_facts_due(&self) -> bool {
        let period = if self.is_in_trouble() { FACTS_IN_TROUBLE } else { FACTS };
        self.facts_at.is_none_or(|it| it.elapsed() >= period)
    }

    fn is_news(&self, snapshot: &Snapshot) -> bool {
        let same = |(told, at): &(Snapshot, Instant)| {
            told.sandboxes == snapshot.sandboxes && told.containers == snapshot.containers && at.elapsed() < RESYNC
        };
        !self.told.as_ref().is_some_and(same)
    }

    async fn snapshot(&mut self, inner: &Inner) -> Result<Snapshot, CriError> {
        let taken_at = Some(Time(Timestamp::now()));
        let sandboxes = inner.cri.list_pod_sandboxes(None).await?;
        let containers = inner.cri.list_containers(None).await?;
        let mut snapshot = Snapshot { taken_at, ..Snapshot::default() };
        for it in sandboxes.iter().filter(|it| it.labels.contains_key(POD_UID)) {
            let sandbox = self.sandbox(inner, it).await?;
            snapshot.sandboxes.extend(sandbox);
        }
        for it in containers.iter().filter(|it| it.labels.contains_key(POD_UID)) {
            let container = self.container(inner, it).await?;
            snapshot.containers.extend(container);
        }
        let ids: BTreeSet<&String> =
            sandboxes.iter().map(|it| &it.id).chain(containers.iter().map(|it| &it.id)).collect();
        self.ended.retain(|id, _| ids.contains(id));
        self.running.retain(|id, _| ids.contains(id));
        self.networks.retain(|id, _| ids.contains(id));
        snapshot.sandboxes.sort_by(|a, b| a.id.cmp(&b.id));
        snapshot.containers.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(snapshot)
    }

    async fn sandbox(&mut self, inner: &Inner, it: &cri::PodSandbox) -> Result<Option<ObservedSandbox>, CriError> {
        let ready = it.state == i32::from(cri::PodSandboxState::Ready);
        if ready && !self.networks.contains_key(&it.id) {
            match inner.cri.pod_sandbox_status(&it.id).await {
                Ok(status) => {
                    self.networks.insert(it.id.clone(), sandbox_of(&status).ips);
                }
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(ObservedSandbox {
            id: it.id.clone(),
            pod: pod_of(&it.labels),
            attempt: it.metadata.as_ref().map_or(0, |it| it.attempt),
            ready,
            created_at: time(it.created_at),
            ips: self.networks.get(&it.id).cloned().unwrap_or_default(),
        }))
    }

    async fn container(&mut self, inner: &Inner, it: &cri::Container) -> Result<Option<ObservedContainer>, CriError> {
        let known = match cri::ContainerState::try_from(it.state) {
            Ok(cri::ContainerState::Exited) => self.ended.get(&it.id),
            Ok(cri::ContainerState::Running) => self.running.get(&it.id),
            _ => None,
        };
        if let Some(known) = known {
            return Ok(Some(known.clone()));
        }
        let status = match inner.cri.container_status(&it.id).await {
            Ok(status) => status,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let message = inner.last_words(&status).await;
        let container = container_of(&status, &it.pod_sandbox_id, message);
        match container.state {
            Observed::Exited(_) => self.ended.insert(it.id.clone(), container.clone()),
            Observed::Running { .. } => self.running.insert(it.id.clone(), container.clone()),
            _ => None,
        };
        Ok(Some(container))
    }

    async fn facts(&mut self, inner: &Inner) -> NodeFacts {
        let layout = inner.layout.clone();
        let machine = tokio::task::spawn_blocking(move || (gather(&layout), Pressure::read(&layout))).await;
        let (machine, pressure) = machine.unwrap_or_default();
        let (runtime_problem, network_problem) = problems(inner.cri.status().await);
        let version = inner.cri.version().await.ok();
        let version = version.map(|it| format!("{}://{}", it.runtime_name, it.runtime_version));
        let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        NodeFacts {
            cpus: i64::from(machine.cpus),
            memory_bytes: whole(machine.memory_bytes),
            swap_bytes: whole(pressure.swap_bytes),
            ephemeral_storage_bytes: whole(machine.storage_bytes),
            hugepages: BTreeMap::new(),
            architecture: machine.architecture,
            operating_system: machine.operating_system,
            os_image: machine.os_image,
            kernel_version: machine.kernel_version,
            machine_id: machine.machine_id,
            system_uuid: machine.system_uuid,
            boot_id: machine.boot_id,
            container_runtime_version: version
                .or_else(|| self.facts.as_ref().map(|it| it.container_runtime_version.clone()))
                .unwrap_or_default(),
            runtime_problem,
            network_problem,
            memory_pressure: pressure.memory,
            disk_pressure: pressure.disk,
            pid_pressure: pressure.pids,
            images: images(inner.cri.list_images().await.unwrap_or_default()),
        }
    }
}

/// What is running out.
#[derive(Default)]
struct Pressure {
    swap_bytes: u64,
    memory: bool,
    disk: bool,
    pids: bool,
}

impl Pressure {
    fn read(layout: &Layout) -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let meminfo = text("/proc/meminfo");
        let kib = |name: &str| {
            let line = meminfo.lines().find_map(|it| it.strip_prefix(name));
            line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        };
        let disk = rustix::fs::statvfs(&layout.data).ok();
        // As upstream: a tenth of the disk, a twentieth of its inodes.
        let disk =
            disk.is_some_and(|it| it.f_bavail < it.f_blocks / 10 || (it.f_files > 0 && it.f_ffree < it.f_files / 20));
        let number = |path: &str| text(path).trim().parse::<u64>().ok();
        let loadavg = text("/proc/loadavg");
        let used = loadavg.split_whitespace().nth(3).and_then(|it| it.split_once('/')?.1.parse::<u64>().ok());
        let pids = match (used, number("/proc/sys/kernel/pid_max")) {
            (Some(used), Some(max)) => used > max / 10 * 9,
            _ => false,
        };
        Self {
            swap_bytes: kib("SwapTotal:").unwrap_or(0) << 10,
            memory: kib("MemAvailable:").is_some_and(|it| it << 10 < MEMORY_FLOOR),
            disk,
            pids,
        }
    }
}

/// What the runtime says of itself and of the network.
fn problems(status: Result<cri::RuntimeStatus, CriError>) -> (Option<String>, Option<String>) {
    let status = match status {
        Ok(status) => status,
        Err(error) => return (Some(error.to_string()), None),
    };
    let problem = |kind: &str| {
        let it = status.conditions.iter().find(|it| it.r#type == kind && !it.status)?;
        Some(it.message.clone()).filter(|it| !it.is_empty()).or_else(|| Some(it.reason.clone()))
    };
    (problem("RuntimeReady"), problem("NetworkReady"))
}

fn images(images: Vec<cri::Image>) -> Vec<NodeImage> {
    let mut images: Vec<_> = images
        .into_iter()
        .map(|it| NodeImage {
            names: it.repo_digests.into_iter().chain(it.repo_tags).take(5).collect(),
            size_bytes: i64::try_from(it.size).unwrap_or(i64::MAX),
        })
        .filter(|it| !it.names.is_empty())
        .collect();
    images.sort_by(|a, b| b.size_bytes.cmp(&a.size_bytes).then_with(|| a.names.cmp(&b.names)));
    images
}

const POD_UID: &str = "io.kubernetes.pod.uid";

fn pod_of(labels: &BTreeMap<String, String>) -> PodRef {
    let text = |name: &str| labels.get(name).cloned().unwrap_or_default();
    PodRef::new(&text("io.kubernetes.pod.namespace"), &text("io.kubernetes.pod.name"), &text(POD_UID))
}

/// Nanoseconds since 1970; zero and less are no time.
fn time(nanos: i64) -> Option<Time> {
    Some(nanos).filter(|it| *it > 0).and_then(|it| Timestamp::from_nanosecond(i128::from(it)).ok()).map(Time)
}

pub(super) fn sandbox_of(status: &cri::PodSandboxStatus) -> ObservedSandbox {
    let network = status.network.clone().unwrap_or_default();
    let ips = std::iter::once(network.ip).chain(network.additional_ips.into_iter().map(|it| it.ip));
    ObservedSandbox {
        id: status.id.clone(),
        pod: pod_of(&status.labels),
        attempt: status.metadata.as_ref().map_or(0, |it| it.attempt),
        ready: status.state == i32::from(cri::PodSandboxState::Ready),
        created_at: time(status.created_at),
        ips: ips.filter(|it| !it.is_empty()).collect(),
    }
}

pub(super) fn container_of(status: &cri::ContainerStatus, sandbox_id: &str, message: String) -> ObservedContainer {
    let state = match cri::ContainerState::try_from(status.state) {
        Ok(cri::ContainerState::Created) => Observed::Created,
        Ok(cri::ContainerState::Running) => Observed::Running { started_at: time(status.started_at) },
        Ok(cri::ContainerState::Exited) => Observed::Exited(Exit {
            code: status.exit_code,
            reason: status.reason.clone(),
            message,
            started_at: time(status.started_at),
            finished_at: time(status.finished_at),
        }),
        _ => Observed::Unknown,
    };
    let annotation = |name: &str| status.annotations.get(name).cloned();
    // A name that is only an id says nothing to a reader; then what the user wrote does.
    let image = status.image.as_ref().map(|it| it.image.clone()).filter(|it| !it.starts_with("sha256:"));
    ObservedContainer {
        id: status.id.clone(),
        sandbox_id: sandbox_id.into(),
        pod: pod_of(&status.labels),
        name: status.labels.get("io.kubernetes.container.name").cloned().unwrap_or_default(),
        attempt: status.metadata.as_ref().map_or(0, |it| it.attempt),
        image: image.or_else(|| annotation("io.kubernetes.container.image")).unwrap_or_default(),
        image_id: status.image_ref.clone(),
        hash: annotation("io.kubernetes.container.hash").unwrap_or_default(),
        created_at: time(status.created_at),
        state,
    }
}

/// What is known of a container that was started, where the runtime cannot be asked about it just now.
pub(super) fn just_started(id: &str, spec: &ContainerSpec) -> ObservedContainer {
    let now = Some(Time(Timestamp::now()));
    ObservedContainer {
        id: id.into(),
        sandbox_id: spec.sandbox_id.clone(),
        pod: spec.pod.clone(),
        name: spec.name.clone(),
        attempt: spec.attempt,
        image: spec.image.clone(),
        image_id: spec.image_ref.clone(),
        hash: spec.annotations.get("io.kubernetes.container.hash").cloned().unwrap_or_default(),
        created_at: now,
        state: Observed::Running { started_at: now },
    }
}

impl Inner {
    /// The termination message of a container that has ended: its file, else its log where it asks for that, else the
    /// runtime's own word.
    pub(super) async fn last_words(&self, status: &cri::ContainerStatus) -> String {
        if status.state != i32::from(cri::ContainerState::Exited) {
            return String::new();
        }
        let annotation = |name: &str| status.annotations.get(name).map_or("", String::as_str);
        let path = annotation("io.kubernetes.container.terminationMessagePath");
        let file = status.mounts.iter().find(|it| !path.is_empty() && it.container_path == path);
        if let Some(file) = file {
            let text = self.volumes.read_termination_log(file.host_path.as_ref()).await;
            if !text.is_empty() {
                return text;
            }
        }
        let falls_back = annotation("io.kubernetes.container.terminationMessagePolicy") == "FallbackToLogsOnError";
        if falls_back && status.exit_code != 0 && !status.log_path.is_empty() {
            let text = logs::tail_of(status.log_path.clone().into(), FALLBACK_LINES, FALLBACK_BYTES).await;
            if !text.is_empty() {
                return text;
            }
        }
        status.message.clone()
    }
}
