//! The node as a whole: what is left of it, what its pods use, its images, and the end of the machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::MetadataExt,
    path::Path,
    time::Duration,
};

use corten_kubelet::{
    Amount, ContainerUse, DiskUse, Event, Failure, LocalImage, NodeEffect, NodeNews, NodeProblem, PodRef, PodUse,
    Signal, Signals, VolumeUse,
};
use corten_machine::{Cgroups, EndOfMachine, Layout, folders::folder_modes, mounts};
use tokio::{sync::watch, time::Instant};

use super::{NodeHands, config::VOLUME_IMAGES};
use crate::{
    cri, disks, lost, manager_states, node_facts,
    stats::{self, Measured, MeasuredPod, disk::FsUsage, summary},
    stops, terminations,
};

/// The kubelet's `evictionMonitoringPeriod`.
const SIGNALS: Duration = Duration::from_secs(10);
/// How often folders of nobody are looked for; not at once, when much else is to be done.
const REMAINS: Duration = Duration::from_secs(120);
const FIRST_REMAINS: Duration = Duration::from_secs(20);
/// What is measured for a decision may be this old.
const DISK_AGE: Duration = Duration::from_secs(5);
/// Walking the disks ends by its own bounds before that.
const DISK_PATIENCE: Duration = Duration::from_secs(45);

/// When the kubelet is told the node's signals and what is left of pods.
pub(super) struct HousekeepingSchedule {
    signals_at: Instant,
    remains_at: Instant,
    /// Images that were there at the last look, and are not known to be whole.
    loaded: BTreeSet<String>,
    shutdown: watch::Receiver<bool>,
    volumes_left: watch::Receiver<BTreeSet<String>>,
}

impl HousekeepingSchedule {
    pub(super) fn new(shutdown: watch::Receiver<bool>, volumes_left: watch::Receiver<BTreeSet<String>>) -> Self {
        let now = Instant::now();
        Self { signals_at: now, remains_at: now + FIRST_REMAINS, loaded: BTreeSet::new(), shutdown, volumes_left }
    }

    /// Waits for what is due next. Nothing is lost where this is dropped: what was not told is still due.
    pub(super) async fn next(&mut self, hands: &NodeHands) -> Vec<Event> {
        tokio::select! {
            biased;
            Ok(()) = self.shutdown.changed() => {
                let is_imminent = *self.shutdown.borrow_and_update();
                vec![Event::OfNode(NodeNews::Shutdown { is_imminent })]
            }
            Ok(()) = self.volumes_left.changed() => {
                let left = self.volumes_left.borrow_and_update().clone();
                vec![Event::OfNode(NodeNews::VolumesLeft(left))]
            }
            news = hands.inner.devices.next_news() => vec![Event::OfNode(NodeNews::Devices(Box::new(news)))],
            () = tokio::time::sleep_until(self.signals_at) => {
                let signals = hands.signals().await;
                self.signals_at = Instant::now() + SIGNALS;
                vec![Event::OfNode(NodeNews::Signals(signals))]
            }
            () = tokio::time::sleep_until(self.remains_at) => {
                let remains = hands.remains().await;
                match hands.inner.keep_loaded(&self.loaded).await {
                    Ok(loaded) => self.loaded = loaded,
                    Err(error) => tracing::debug!(%error, "images that somebody loaded are not looked at"),
                }
                self.remains_at = Instant::now() + REMAINS;
                vec![Event::OfNode(NodeNews::Remains(remains))]
            }
        }
    }
}

impl NodeHands {
    /// Carries out one effect about the node as a whole.
    pub async fn perform_node(&self, effect: NodeEffect) -> Vec<Event> {
        let news = match effect {
            NodeEffect::ReadSignals => NodeNews::Signals(self.signals().await),
            NodeEffect::MeasurePods { disks } => NodeNews::PodsMeasured(self.pod_uses(disks).await),
            NodeEffect::ListImages => NodeNews::Images(self.local_images().await),
            NodeEffect::RemoveImages { ids } => self.remove_images(ids).await,
            NodeEffect::CountEviction { signal } => {
                self.counters().note_eviction(signal);
                return Vec::new();
            }
            NodeEffect::CountPreemption { resource } => {
                self.counters().note_preemption(resource);
                return Vec::new();
            }
            NodeEffect::CountPodStart { took } => {
                self.counters().note_pod_start(took);
                return Vec::new();
            }
            NodeEffect::CountManagers(counts) => {
                self.counters().note_managers(counts);
                return Vec::new();
            }
            NodeEffect::NoteStops { containers } => self.note_stops(containers).await,
            NodeEffect::NoteManagerStates(states) => {
                let layout = self.layout().clone();
                let work = tokio::task::spawn_blocking(move || manager_states::write(&layout, &states)).await;
                if let Err(error) = work.map_err(std::io::Error::other).and_then(|it| it) {
                    tracing::error!(%error, "which CPUs and memory containers have is not written down");
                }
                NodeNews::ManagerStatesNoted
            }
            NodeEffect::NoteTermination { uid, note } => {
                let layout = self.layout().clone();
                let work = tokio::task::spawn_blocking(move || terminations::write(&layout, &uid, &note)).await;
                if let Err(error) = work.map_err(std::io::Error::other).and_then(|it| it) {
                    tracing::warn!(%error, "a pod's grace period begins again where Corten is started again before it is over");
                }
                return Vec::new();
            }
            NodeEffect::EndByForce { pod, sandboxes } => {
                self.inner.end_by_force(&pod, sandboxes).await;
                return Vec::new();
            }
            NodeEffect::ReleaseDevices { uid } => {
                self.inner.devices.release(&uid).await;
                return Vec::new();
            }
            NodeEffect::AskVolumeLimit { driver } => {
                self.mounter().drivers().ask_limit(&driver).await;
                return Vec::new();
            }
            NodeEffect::ReadyToShutDown => {
                self.inner.end.pods_have_ended();
                return Vec::new();
            }
        };
        vec![Event::OfNode(news)]
    }

    async fn note_stops(&self, containers: Vec<String>) -> NodeNews {
        let layout = self.layout().clone();
        let work = tokio::task::spawn_blocking(move || stops::write(&layout, containers)).await;
        if let Err(error) = work.map_err(std::io::Error::other).and_then(|it| it) {
            tracing::warn!(%error, "a container that exits with 0 when the machine ends may not run again after it");
        }
        NodeNews::StopsNoted
    }

    /// What becomes of the machine.
    pub fn end_of_machine(&self) -> EndOfMachine {
        self.inner.end.clone()
    }

    /// Waits for what the node as a whole has to tell.
    pub async fn node_news(&self) -> Vec<Event> {
        let mut schedule = self.inner.schedule.lock().await;
        schedule.next(self).await
    }

    /// What should keep Pods and the machine's users apart, and does not.
    pub async fn node_problems(&self) -> Vec<NodeProblem> {
        let layout = self.layout().clone();
        let look = move || [folder_modes::exposed(&layout), lost::lost(&layout), disks::unwritable(&layout)].concat();
        let folders = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        let pods = self.layout().pods();
        let restricted = self.mounts().run(move || mounts::restrict(&pods)).await.and_then(|it| it);
        let mut found = folders;
        found.extend(restricted.err().map(|it| NodeProblem::SetUserId { why: it.to_string() }));
        found.extend(self.inner.source_guards.look().await.map(|why| NodeProblem::Spoofing { why }));
        found
    }

    async fn signals(&self) -> Signals {
        let (cgroups, layout) = (self.cgroups().clone(), self.layout().clone());
        let work = tokio::task::spawn_blocking(move || read_signals(&cgroups, &layout));
        work.await.unwrap_or_default()
    }

    async fn pod_uses(&self, disks: bool) -> Result<Vec<PodUse>, Failure> {
        let measured = self.measure().await.map_err(|it| Failure::new(it.to_string()))?;
        let disk_use = if disks { self.disk_use(DISK_AGE, DISK_PATIENCE).await } else { None };
        Ok(pod_uses(&measured, disk_use.as_deref()))
    }

    async fn local_images(&self) -> Result<Vec<LocalImage>, Failure> {
        let failed = |it: crate::CriError| Failure::new(it.to_string());
        // The containers last: one that is made meanwhile uses an image that is listed.
        let images = self.cri().list_images().await.map_err(failed)?;
        let containers = self.cri().list_containers(None).await.map_err(failed)?;
        let used: BTreeSet<&str> = containers
            .iter()
            .flat_map(|it| [Some(&*it.image_ref), it.image.as_ref().map(|it| &*it.image)])
            .flatten()
            .chain(containers.iter().flat_map(mounted_images))
            .collect();
        let names = |it: &cri::Image| {
            std::iter::once(&it.id).chain(&it.repo_tags).chain(&it.repo_digests).cloned().collect::<Vec<_>>()
        };
        let one = |it: &cri::Image| {
            let names = names(it);
            LocalImage {
                id: it.id.clone(),
                size_bytes: i64::try_from(it.size).unwrap_or(i64::MAX),
                is_pinned: it.pinned || names.iter().any(|it| crate::containerd::is_pause(it)),
                is_used: names.iter().any(|it| used.contains(&**it)),
            }
        };
        Ok(images.iter().map(one).collect())
    }

    async fn remove_images(&self, ids: Vec<String>) -> NodeNews {
        let (mut removed, mut failures) = (Vec::new(), Vec::new());
        for id in ids {
            match self.cri().remove_image(&id).await {
                Ok(()) => {
                    tracing::info!(image = id, "an unused image is removed");
                    self.counters().note_image_removed();
                    removed.push(id);
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        NodeNews::ImagesRemoved { removed, failures }
    }

    /// Pods of which there is a folder, logs, or a cgroup.
    async fn remains(&self) -> Vec<PodRef> {
        let (cgroups, layout) = (self.cgroups().clone(), self.layout().clone());
        let work = tokio::task::spawn_blocking(move || read_remains(&cgroups, &layout));
        let mut found = work.await.unwrap_or_default();
        // Of a Pod that went while nobody looked drivers must still be told.
        for pod in self.inner.claims.pods().await {
            if !found.iter().any(|it| it.uid == pod.uid) {
                found.push(pod);
            }
        }
        found
    }
}

/// Images that a container mounts.
fn mounted_images(container: &cri::Container) -> impl Iterator<Item = &str> {
    container.annotations.get(VOLUME_IMAGES).into_iter().flat_map(|it| it.split(','))
}

/// A working set holds all that was read of files lately, and that may be half of a small machine. Upstream counts it as gone
/// (kubernetes/kubernetes#43916), and evicts Pods for what the kernel gives back at once.
fn memory_left(total: u64, working_set: u64, available: u64) -> u64 {
    total.saturating_sub(working_set).max(available.min(total))
}

fn read_signals(cgroups: &Cgroups, layout: &Layout) -> Signals {
    let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    let amount = |available: u64, capacity: u64| Amount { available: whole(available), capacity: whole(capacity) };
    let mut amounts = BTreeMap::new();
    let memory = node_facts::memory_total();
    if let Some(usage) = cgroups.usage("").filter(|_| memory > 0) {
        let left = memory_left(memory, usage.working_set_bytes, node_facts::memory_available());
        amounts.insert(Signal::MemoryAvailable, amount(left, memory));
    }
    let (node_fs, image_fs) = stats::file_systems(layout);
    for (it, bytes, inodes) in [
        (node_fs, Signal::NodeFsAvailable, Signal::NodeFsInodesFree),
        (image_fs, Signal::ImageFsAvailable, Signal::ImageFsInodesFree),
    ] {
        // A share is reckoned of what there is for everybody: what the file system keeps for root alone is neither used nor
        // to be had. Upstream counts it as used, and finds no room on a disk that keeps much.
        let for_everybody = it.used_bytes.saturating_add(it.available_bytes);
        if for_everybody > 0 {
            amounts.insert(bytes, amount(it.available_bytes, for_everybody));
        }
        // Some file systems make inodes as they are needed, and say that there are none.
        if it.inodes > 0 {
            amounts.insert(inodes, amount(it.inodes_free, it.inodes));
        }
    }
    let (most, now) = summary::processes();
    if most > 0 {
        amounts.insert(Signal::PidAvailable, Amount { available: most - now, capacity: most });
    }
    let device = |it: &Path| std::fs::metadata(it).ok().map(|it| it.dev());
    let has_image_fs = device(&layout.data) != device(&layout.containerd_root());
    Signals { amounts, has_image_fs }
}

fn disk(it: FsUsage) -> DiskUse {
    let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    DiskUse { bytes: whole(it.bytes), inodes: whole(it.inodes) }
}

fn pod_uses(measured: &Measured, disks: Option<&stats::DiskUse>) -> Vec<PodUse> {
    let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    let one = |pod: &MeasuredPod| {
        let taken = disks.and_then(|it| it.pods.get(&pod.owner.uid));
        let containers = pod.containers.iter().map(|it| ContainerUse {
            name: it.name.clone(),
            memory_bytes: whole(it.usage.working_set_bytes),
            rootfs: disks.and_then(|disks| disks.layers.get(&it.id)).copied().map(disk),
            logs: taken.and_then(|taken| taken.logs.get(&it.name)).copied().map(disk).unwrap_or_default(),
        });
        let volumes = taken.into_iter().flat_map(|it| &it.volumes).map(|it| VolumeUse {
            name: it.name.clone(),
            taken: disk(it.taken),
            is_ephemeral: it.is_ephemeral,
        });
        PodUse {
            uid: pod.owner.uid.clone(),
            memory_bytes: whole(pod.usage.working_set_bytes),
            processes: whole(pod.processes),
            containers: containers.collect(),
            volumes: volumes.collect(),
            other: taken.map(|it| disk(it.other)).unwrap_or_default(),
        }
    };
    measured.pods.iter().map(one).collect()
}

fn read_remains(cgroups: &Cgroups, layout: &Layout) -> Vec<PodRef> {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|it| it.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let mut found = BTreeMap::new();
    for uid in names(&layout.pods()).into_iter().chain(cgroups.pods()) {
        found.insert(uid.clone(), PodRef::new("", "", &uid));
    }
    for folder in names(&layout.data.join("log/pods")) {
        let mut parts = folder.splitn(3, '_');
        if let (Some(namespace), Some(name), Some(uid)) = (parts.next(), parts.next(), parts.next()) {
            found.insert(uid.to_owned(), PodRef::new(namespace, name, uid));
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_kernel_gives_back_is_left() {
        // A machine of 464 MiB with three small Pods, after its boot: 85 MiB without what was read of files, 344 with it.
        let (total, working_set, available) = (487_133_184, 397_627_392, 361_127_936);
        assert_eq!(memory_left(total, working_set, available), available);
        // One without `MemAvailable`, and one that says more than there is.
        assert_eq!(memory_left(total, working_set, 0), total - working_set);
        assert_eq!(memory_left(total, working_set, 2 * total), total);
    }

    #[test]
    fn says_what_is_left_of_this_machine() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path(), dir.path().join("run"));
        std::fs::create_dir_all(layout.containerd_root()).expect("made");
        let signals = read_signals(&Cgroups::detect(&layout), &layout);
        for signal in [Signal::MemoryAvailable, Signal::NodeFsAvailable, Signal::ImageFsAvailable, Signal::PidAvailable]
        {
            let Some(amount) = signals.amounts.get(&signal) else {
                eprintln!("skipped: {} cannot be read here", signal.as_str());
                continue;
            };
            assert!(amount.available > 0 && amount.available <= amount.capacity, "{signal:?} {amount:?}");
        }
        assert!(!signals.has_image_fs);
    }

    #[test]
    fn finds_what_pods_left_behind() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path(), dir.path().join("run"));
        for folder in ["pods/u1/volumes", "pods/u2", "log/pods/default_web_u2", "log/pods/odd"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
        let found = read_remains(&Cgroups::detect(&layout), &layout);
        assert_eq!(found, [PodRef::new("", "", "u1"), PodRef::new("default", "web", "u2")]);
    }
}
