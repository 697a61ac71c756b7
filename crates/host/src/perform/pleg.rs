//! What the machine shows: the runtime's sandboxes and containers, and the node's facts.
//!
//! containerd tells at once that something happened; what it is, is read afresh. Now and then all is read in any case.

mod departures;
mod pod_cache;

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::PoisonError,
    time::Duration,
};

use corten_kubelet::{
    ContainerSpec, Event, Exit, NodeFacts, NodeImage, Observed, ObservedContainer, ObservedSandbox, PodRef,
    RuntimeHandler, Snapshot, User,
};
use corten_machine::Layout;
use corten_meta::Time;
use corten_network::peers::WireGuard;
use futures_util::{Stream, StreamExt};
use jiff::Timestamp;
use tokio::time::Instant;

use super::Inner;
use crate::{CriError, RuntimeEvent, cri, events, gather, lacks, logs, node_paths, pod_files};
use departures::{Departures, FIRST_LOOK};
pub(super) use pod_cache::PodCache;

/// Without any event the runtime is read this often.
const RELIST: Duration = Duration::from_secs(2);
/// A snapshot is told this often even where it shows nothing new.
const RESYNC: Duration = Duration::from_secs(60);
const FACTS: Duration = Duration::from_secs(10);
/// While the node cannot run Pods, whether that is over is asked this often.
const FACTS_IN_TROUBLE: Duration = Duration::from_secs(1);
/// `maxWaitForContainerRuntime`: a runtime that does not answer is down once it has been silent for so long; one that is
/// started again meanwhile never was.
const RUNTIME_GRACE: Duration = Duration::from_secs(30);
/// A runtime that began together with this process may answer a little later. What was known of the node holds until then.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// What a runtime may take to say how it is, and to say what it has. One that hangs shall not keep the node from telling.
const STATUS_DEADLINE: Duration = Duration::from_secs(5);
const SNAPSHOT_DEADLINE: Duration = Duration::from_secs(20);
/// CRI's reason, and the exit code of SIGKILL.
const OOM_KILLED: &str = "OOMKilled";
const KILLED: i32 = 137;
/// `FallbackToLogsOnError`: of an unread log, this much is a message.
const FALLBACK_LINES: u64 = 80;
const FALLBACK_BYTES: usize = 2048;

/// What the runtime is, has and offers.
#[derive(Default)]
struct Runtime {
    version: String,
    images: Vec<NodeImage>,
    handlers: Vec<RuntimeHandler>,
    keeps_groups_policy: bool,
}

fn handler(it: cri::RuntimeHandler) -> RuntimeHandler {
    let features = it.features.unwrap_or_default();
    RuntimeHandler {
        name: it.name,
        recursive_read_only_mounts: features.recursive_read_only_mounts,
        user_namespaces: features.user_namespaces,
    }
}

/// Keeps what was last told.
pub(super) struct Observer {
    events: Pin<Box<dyn Stream<Item = RuntimeEvent> + Send>>,
    told: Option<(Snapshot, Instant)>,
    facts: Option<NodeFacts>,
    facts_at: Option<Instant>,
    /// Do mounts of the machine come into the node's namespace? That is settled when it is made, and its table is long later.
    shared_mounts: Option<bool>,
    began: Instant,
    /// When the runtime last answered, and whether it is silent since.
    heard_at: Option<Instant>,
    is_silent: bool,
    departures: Departures,
}

impl Observer {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            events: Box::pin(events(&layout.containerd_socket())),
            told: None,
            facts: None,
            facts_at: None,
            shared_mounts: None,
            began: Instant::now(),
            heard_at: None,
            is_silent: false,
            departures: Departures::default(),
        }
    }

    pub(super) async fn next(&mut self, inner: &Inner) -> Vec<Event> {
        loop {
            let mut news = Vec::new();
            if self.are_facts_due() {
                self.facts_at = Some(Instant::now());
                let facts = self.facts(inner).await;
                if self.is_first_answer_due() {
                    self.wait_for_news(inner).await;
                    continue;
                }
                if self.facts.as_ref() != Some(&facts) {
                    self.facts = Some(facts.clone());
                    news.push(Event::Facts(Box::new(facts)));
                }
            }
            // One that does not even say how it is would only keep that from being told.
            if self.is_silent {
                if !news.is_empty() {
                    return news;
                }
                self.wait_for_news(inner).await;
                continue;
            }
            match tokio::time::timeout(SNAPSHOT_DEADLINE, self.snapshot(inner)).await {
                Ok(Ok(snapshot)) if self.is_news(&snapshot) => {
                    self.told = Some((snapshot.clone(), Instant::now()));
                    news.push(Event::Snapshot(snapshot));
                }
                Ok(Ok(_)) => {}
                // The next facts say that the runtime is away; until it is back nothing is known.
                Ok(Err(error)) => tracing::debug!(%error, "cannot read the runtime"),
                Err(_) => tracing::warn!("the runtime does not say what it has within {SNAPSHOT_DEADLINE:?}"),
            }
            if !news.is_empty() {
                return news;
            }
            self.wait_for_news(inner).await;
        }
    }

    /// Until something may have changed that nobody has told the kubelet.
    async fn wait_for_news(&mut self, inner: &Inner) {
        let pause = if self.is_in_trouble() { FACTS_IN_TROUBLE } else { RELIST };
        let pause = tokio::time::sleep(self.departures.pause(Instant::now(), pause));
        tokio::pin!(pause);
        loop {
            tokio::select! {
                biased;
                () = inner.nudge.notified() => return,
                event = self.events.next() => match event {
                    // Whoever started it is told by the answer: with many starts at once, reading all for each is most
                    // of the work.
                    Some(RuntimeEvent::Started { .. }) => {}
                    Some(RuntimeEvent::Exited { container } | RuntimeEvent::Deleted { container }) => {
                        let now = Instant::now();
                        self.departures.add(container, now);
                        if now + FIRST_LOOK < pause.deadline() {
                            pause.as_mut().reset(now + FIRST_LOOK);
                        }
                    }
                    // A runtime that has come back has something to say of itself, too.
                    Some(RuntimeEvent::Connected) => {
                        self.facts_at = None;
                        return;
                    }
                    _ => return,
                },
                () = &mut pause => return,
            }
        }
    }

    fn is_first_answer_due(&self) -> bool {
        self.is_silent && self.facts.is_none() && self.began.elapsed() < FIRST_ANSWER
    }

    fn is_in_trouble(&self) -> bool {
        self.is_silent
            || self.facts.as_ref().is_some_and(|it| it.runtime_problem.is_some() || it.network_problem.is_some())
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
            let sandbox = sandbox(inner, it).await?;
            snapshot.sandboxes.extend(sandbox.filter(|it| !inner.making.has(&it.pod.uid, it.attempt)));
        }
        for it in containers.iter().filter(|it| it.labels.contains_key(POD_UID)) {
            let container = container(inner, it).await?;
            snapshot.containers.extend(container);
        }
        let ids: BTreeSet<&String> =
            sandboxes.iter().map(|it| &it.id).chain(containers.iter().map(|it| &it.id)).collect();
        let alive = alive(&sandboxes, &containers);
        self.departures.retain(|id| alive.contains(id));
        inner.known.retain(&ids);
        snapshot.sandboxes.sort_by(|a, b| a.id.cmp(&b.id));
        snapshot.containers.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(snapshot)
    }

    /// What the runtime says of itself, or that it has said nothing for too long.
    async fn problems(&mut self, inner: &Inner) -> (Option<String>, Option<String>) {
        let error = match tokio::time::timeout(STATUS_DEADLINE, inner.cri.status()).await {
            Ok(Ok(status)) => {
                (self.heard_at, self.is_silent) = (Some(Instant::now()), false);
                return problems(&status);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("Status: no answer within {} s", STATUS_DEADLINE.as_secs()),
        };
        self.is_silent = true;
        match (self.heard_at, &self.facts) {
            (Some(at), Some(facts)) if at.elapsed() < RUNTIME_GRACE => {
                (facts.runtime_problem.clone(), facts.network_problem.clone())
            }
            _ => (Some(error), None),
        }
    }

    /// What it is, has and offers; what was last known while it is silent.
    async fn runtime(&mut self, inner: &Inner) -> Runtime {
        let known = self.facts.as_ref().map(|it| Runtime {
            version: it.container_runtime_version.clone(),
            images: it.images.clone(),
            handlers: it.runtime_handlers.clone(),
            keeps_groups_policy: it.keeps_groups_policy,
        });
        let known = known.unwrap_or_default();
        if self.is_silent {
            return known;
        }
        let asked = async {
            let version = inner.cri.version().await.ok()?;
            Some((version, inner.cri.list_images().await.ok()?, inner.cri.offers().await.ok()?))
        };
        match tokio::time::timeout(STATUS_DEADLINE, asked).await {
            Ok(Some((it, all, offers))) => Runtime {
                version: format!("{}://{}", it.runtime_name, it.runtime_version),
                images: images(all),
                handlers: offers.runtime_handlers.into_iter().map(handler).collect(),
                keeps_groups_policy: offers.features.is_some_and(|it| it.supplemental_groups_policy),
            },
            Ok(None) | Err(_) => known,
        }
    }

    async fn facts(&mut self, inner: &Inner) -> NodeFacts {
        let (layout, mounts, known) = (inner.layout.clone(), inner.mounts.clone(), self.shared_mounts);
        let machine = tokio::task::spawn_blocking(move || {
            // Where volumes by hand are, and where drivers mount theirs.
            let places = ["/".into(), layout.data.clone()];
            (gather(&layout), swap_bytes(), known.or_else(|| mounts.follows(&places).ok()))
        });
        let (machine, swap_bytes, shared_mounts) = machine.await.unwrap_or_default();
        self.shared_mounts = shared_mounts;
        let (runtime_problem, network_problem) = self.problems(inner).await;
        let wireguard = inner.wireguard.get();
        let network_problem = network_problem.or_else(|| wireguard?.problem());
        let Runtime { version, images, handlers, keeps_groups_policy } = self.runtime(inner).await;
        let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        let lacks = lacks::lacks(lacks::MachineFeatures {
            app_armor: machine.app_armor,
            is_unified: inner.cgroups.is_unified(),
            recursive_read_only: handlers.iter().any(|it| it.recursive_read_only_mounts),
            keeps_groups_policy,
            user_namespaces: handlers.iter().any(|it| it.user_namespaces),
            shared_mounts: shared_mounts.unwrap_or_default(),
            wireguard: !wireguard.is_some_and(WireGuard::is_lacking),
        });
        NodeFacts {
            cpus: i64::from(machine.cpus),
            memory_bytes: whole(machine.memory_bytes),
            swap_bytes: whole(swap_bytes),
            ephemeral_storage_bytes: whole(machine.storage_bytes),
            hugepages: machine.hugepages,
            app_armor: machine.app_armor,
            se_linux: machine.se_linux,
            architecture: machine.architecture,
            operating_system: machine.operating_system,
            os_image: machine.os_image,
            kernel_version: machine.kernel_version,
            machine_id: machine.machine_id,
            system_uuid: machine.system_uuid,
            boot_id: machine.boot_id,
            container_runtime_version: version,
            runtime_problem,
            network_problem,
            wireguard_public_key: wireguard.and_then(WireGuard::public_key).map(|it| it.to_string()),
            runtime_handlers: handlers,
            keeps_groups_policy,
            lacks,
            resolv: pod_files::resolv_conf(),
            images,
        }
    }
}

async fn sandbox(inner: &Inner, it: &cri::PodSandbox) -> Result<Option<ObservedSandbox>, CriError> {
    let ready = it.state == i32::from(cri::PodSandboxState::Ready);
    let mut ips = inner.known.addresses(&it.id);
    if ready && ips.is_none() {
        match inner.cri.pod_sandbox_status(&it.id).await {
            Ok(status) => {
                let read = sandbox_of(&status);
                inner.known.note_sandbox(&read);
                ips = Some(read.ips);
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
        ips: ips.unwrap_or_default(),
    }))
}

async fn container(inner: &Inner, it: &cri::Container) -> Result<Option<ObservedContainer>, CriError> {
    let known = cri::ContainerState::try_from(it.state).ok().and_then(|state| inner.known.container(&it.id, state));
    if known.is_some() {
        return Ok(known);
    }
    let mut status = match inner.cri.container_status(&it.id).await {
        Ok(status) => status,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    correct_reason(inner, &mut status).await;
    let message = inner.last_words(&status).await;
    let container = container_of(&status, &it.pod_sandbox_id, message);
    inner.known.note_container(&container);
    Ok(Some(container))
}

/// The ids of what is shown running.
fn alive<'a>(sandboxes: &'a [cri::PodSandbox], containers: &'a [cri::Container]) -> BTreeSet<&'a str> {
    let (ready, running) = (i32::from(cri::PodSandboxState::Ready), i32::from(cri::ContainerState::Running));
    let sandboxes = sandboxes.iter().filter(|it| it.state == ready).map(|it| it.id.as_str());
    sandboxes.chain(containers.iter().filter(|it| it.state == running).map(|it| it.id.as_str())).collect()
}

/// The runtime may not have heard why the kernel killed it.
pub(super) async fn correct_reason(inner: &Inner, status: &mut cri::ContainerStatus) {
    let is_ended = status.state == i32::from(cri::ContainerState::Exited);
    if is_ended && status.exit_code == KILLED && status.reason != OOM_KILLED {
        let (id, kills) = (status.id.clone(), inner.kills.clone());
        let asked = move || kills.lock().unwrap_or_else(PoisonError::into_inner).has(&id);
        if tokio::task::spawn_blocking(asked).await.unwrap_or(false) {
            OOM_KILLED.clone_into(&mut status.reason);
        }
    }
}

fn swap_bytes() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|it| it.strip_prefix("SwapTotal:"));
    line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}

/// What the runtime says of itself and of the network.
fn problems(status: &cri::RuntimeStatus) -> (Option<String>, Option<String>) {
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

pub(super) fn pod_of(labels: &BTreeMap<String, String>) -> PodRef {
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
    let (started_at, finished_at) = (time(status.started_at), time(status.finished_at));
    // The runtime notes the start once it has started the process, which may have ended by then.
    let began = finished_at.map_or(started_at, |end| started_at.map(|it| it.min(end)));
    let state = match cri::ContainerState::try_from(status.state) {
        Ok(cri::ContainerState::Created) => Observed::Created,
        Ok(cri::ContainerState::Running) => Observed::Running { started_at },
        Ok(cri::ContainerState::Exited) => Observed::Exited(Exit {
            code: status.exit_code,
            reason: status.reason.clone(),
            message,
            started_at: began,
            finished_at,
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
        user: status.user.as_ref().and_then(|it| it.linux.as_ref()).map(user),
        state,
    }
}

fn user(user: &cri::LinuxContainerUser) -> User {
    User { uid: user.uid, gid: user.gid, groups: user.supplemental_groups.clone() }
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
        user: None,
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
        node_paths::without(&self.layout, &status.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_ended_before_its_start_was_noted_began_when_it_ended() {
        const SECOND: i64 = 1_000_000_000;
        let status = cri::ContainerStatus {
            state: i32::from(cri::ContainerState::Exited),
            started_at: 8 * SECOND,
            finished_at: 7 * SECOND,
            ..cri::ContainerStatus::default()
        };
        let Observed::Exited(exit) = container_of(&status, "s", String::new()).state else { panic!("it has ended") };
        assert_eq!((exit.started_at, exit.finished_at), (time(7 * SECOND), time(7 * SECOND)));
    }
}
