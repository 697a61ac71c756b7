//! What the node and its Pods use, measured when somebody asks: cgroups and network namespaces are read at once, disks in the
//! background.
//!
//! Nothing is kept but the last reading of each CPU counter, for the rate, and the last measurement of the disks.

pub(crate) mod cadvisor;
pub(crate) mod claim_volumes;
pub(crate) mod counters;
pub(crate) mod disk;
pub(crate) mod exposition;
mod network;
pub(crate) mod pod_volumes;
mod readings;
pub(crate) mod resource;
pub(crate) mod summary;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use corten_machine::{Cgroups, Layout, NodeMounts, cgroups::Usage};
use jiff::Timestamp;
use tokio::{sync::watch, time::Instant};

use crate::{Cri, CriError, cri};
use disk::{FileSystem, FsUsage, Owner, PodFsUsage};
use network::Interface;

/// Rates are reckoned over at least this.
const RATE_SPAN: Duration = Duration::from_secs(1);

/// What is kept between questions.
pub(crate) struct Stats {
    rates: Mutex<BTreeMap<String, Rate>>,
    pub(crate) disks: Mutex<Disks>,
}

/// The use of CPU between two readings of a counter.
#[derive(Clone, Copy)]
struct Rate {
    at: Instant,
    cpu_nanos: u64,
    nanocores: Option<u64>,
}

pub(crate) struct Disks {
    /// The last measurement; `None` until the first has ended.
    pub(crate) found: watch::Sender<Option<Arc<DiskUse>>>,
    pub(crate) is_under_way: bool,
}

/// What Pods have on the disks.
pub(crate) struct DiskUse {
    pub(crate) at: Instant,
    pub(crate) time: Timestamp,
    /// By uid.
    pub(crate) pods: BTreeMap<String, PodFsUsage>,
    /// What containers wrote into their own layers, by id.
    pub(crate) layers: BTreeMap<String, FsUsage>,
    /// What images and layers take together.
    pub(crate) images: FsUsage,
}

/// One moment of the node.
pub(crate) struct Measured {
    pub(crate) time: Timestamp,
    pub(crate) node: Usage,
    pub(crate) nanocores: Option<u64>,
    pub(crate) network: Vec<Interface>,
    pub(crate) default_interface: Option<String>,
    pub(crate) pods_cgroup: String,
    /// Of the cgroup above all Pods, and of the one of the runtime.
    pub(crate) pods_usage: Option<(Usage, Option<u64>)>,
    pub(crate) runtime_usage: Option<(Usage, Option<u64>)>,
    pub(crate) pods: Vec<MeasuredPod>,
}

pub(crate) struct MeasuredPod {
    pub(crate) owner: Owner,
    pub(crate) sandbox: String,
    pub(crate) sandbox_image: String,
    pub(crate) started: Timestamp,
    pub(crate) cgroup: String,
    pub(crate) usage: Usage,
    pub(crate) nanocores: Option<u64>,
    pub(crate) processes: u64,
    pub(crate) sandbox_cgroup: String,
    pub(crate) sandbox_usage: Option<Usage>,
    /// Empty for a Pod in the host's network.
    pub(crate) network: Vec<Interface>,
    pub(crate) containers: Vec<MeasuredContainer>,
}

pub(crate) struct MeasuredContainer {
    pub(crate) cgroup: String,
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) image: String,
    pub(crate) started: Timestamp,
    pub(crate) usage: Usage,
    pub(crate) nanocores: Option<u64>,
    pub(crate) processes: u64,
}

impl Default for Stats {
    fn default() -> Self {
        let disks = Disks { found: watch::Sender::new(None), is_under_way: false };
        Self { rates: Mutex::default(), disks: Mutex::new(disks) }
    }
}

pub(crate) async fn measure_disks(cri: &Cri, layout: &Layout, mounts: &NodeMounts) -> DiskUse {
    let sandboxes = cri.list_pod_sandboxes(None).await.unwrap_or_default();
    let owners: Vec<Owner> = sandboxes.iter().filter_map(|it| owner(&it.labels)).collect();
    let work = {
        let layout = layout.clone();
        move || disk::measure(&layout, &owners)
    };
    let pods = mounts.run(work).await.unwrap_or_default();
    let number = |it: &Option<cri::UInt64Value>| it.as_ref().map_or(0, |it| it.value);
    let taken = |it: &cri::FilesystemUsage| FsUsage { bytes: number(&it.used_bytes), inodes: number(&it.inodes_used) };
    let stats = cri.list_container_stats().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "the runtime does not say what containers wrote");
        Vec::new()
    });
    let layer = |it: cri::ContainerStats| Some((it.attributes?.id, taken(&it.writable_layer?)));
    let images = cri.image_fs_info().await.unwrap_or_default();
    DiskUse {
        at: Instant::now(),
        time: Timestamp::now(),
        pods,
        layers: stats.into_iter().filter_map(layer).collect(),
        images: images.iter().map(taken).fold(FsUsage::default(), FsUsage::plus),
    }
}

impl Stats {
    pub(crate) fn rate(&self, measured: &mut Measured) {
        let mut rates = self.rates.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut seen = BTreeMap::new();
        let mut of = |key: String, cpu_nanos: u64| {
            let now = Instant::now();
            let rate = match rates.get(&key) {
                // Too soon for another: the last one still holds.
                Some(last) if now.duration_since(last.at) < RATE_SPAN => *last,
                Some(last) if last.cpu_nanos <= cpu_nanos => {
                    let span = now.duration_since(last.at).as_nanos().max(1);
                    let used = u128::from(cpu_nanos - last.cpu_nanos) * 1_000_000_000 / span;
                    Rate { at: now, cpu_nanos, nanocores: u64::try_from(used).ok() }
                }
                _ => Rate { at: now, cpu_nanos, nanocores: None },
            };
            seen.insert(key, rate);
            rate.nanocores
        };
        measured.nanocores = of(String::new(), measured.node.cpu_nanos);
        for (key, usage) in [("pods", &mut measured.pods_usage), ("runtime", &mut measured.runtime_usage)] {
            if let Some((usage, nanocores)) = usage {
                *nanocores = of(key.to_owned(), usage.cpu_nanos);
            }
        }
        for pod in &mut measured.pods {
            pod.nanocores = of(pod.owner.uid.clone(), pod.usage.cpu_nanos);
            for container in &mut pod.containers {
                container.nanocores = of(container.id.clone(), container.usage.cpu_nanos);
            }
        }
        // Who is gone is forgotten.
        *rates = seen;
    }
}

/// What runs, as the runtime lists it.
pub(crate) struct RuntimeList {
    sandboxes: Vec<cri::PodSandbox>,
    containers: Vec<cri::Container>,
}

impl RuntimeList {
    pub(crate) async fn read(cri: &Cri) -> Result<Self, CriError> {
        let ready = cri::PodSandboxStateValue { state: cri::PodSandboxState::Ready.into() };
        let filter = cri::PodSandboxFilter { state: Some(ready), ..cri::PodSandboxFilter::default() };
        let running = cri::ContainerStateValue { state: cri::ContainerState::Running.into() };
        let of_containers = cri::ContainerFilter { state: Some(running), ..cri::ContainerFilter::default() };
        Ok(Self {
            sandboxes: cri.list_pod_sandboxes(Some(filter)).await?,
            containers: cri.list_containers(Some(of_containers)).await?,
        })
    }

    pub(crate) fn measure(self, cgroups: &Cgroups) -> Measured {
        let own = PathBuf::from("/proc/self");
        let usage = |cgroup: &str| cgroups.usage(cgroup).map(|it| (it, None));
        let mut pods: Vec<MeasuredPod> = self.sandboxes.iter().filter_map(|it| self.pod(it, cgroups)).collect();
        pods.sort_by(|a, b| (&a.owner.namespace, &a.owner.name).cmp(&(&b.owner.namespace, &b.owner.name)));
        Measured {
            time: Timestamp::now(),
            node: cgroups.usage("").unwrap_or_default(),
            nanocores: None,
            network: network::of_process(&own),
            default_interface: network::default_interface(&own),
            pods_cgroup: cgroups.root(),
            pods_usage: usage(&cgroups.root()),
            runtime_usage: usage(&cgroups.runtime()),
            pods,
        }
    }

    fn pod(&self, sandbox: &cri::PodSandbox, cgroups: &Cgroups) -> Option<MeasuredPod> {
        let owner = owner(&sandbox.labels)?;
        let cgroup = cgroups.pod_cgroup(&owner.uid)?;
        let usage = cgroups.usage(&cgroup)?;
        let of_sandbox = cgroups.container_cgroup(&cgroup, &sandbox.id);
        let pause = cgroups.processes(&of_sandbox);
        let mut containers: Vec<MeasuredContainer> = self
            .containers
            .iter()
            .filter(|it| it.pod_sandbox_id == sandbox.id)
            .filter_map(|it| container(it, &cgroup, cgroups))
            .collect();
        containers.sort_by(|a, b| a.name.cmp(&b.name));
        let processes = containers.iter().map(|it| it.processes).sum::<u64>() + count(&pause);
        let own = PathBuf::from("/proc/self");
        let proc = pause.first().map(|pid| PathBuf::from(format!("/proc/{pid}")));
        let network = proc.filter(|it| !network::is_same(it, &own)).map(|it| network::of_process(&it));
        Some(MeasuredPod {
            owner,
            sandbox: sandbox.id.clone(),
            sandbox_image: crate::PAUSE_IMAGE.to_owned(),
            started: timestamp(sandbox.created_at),
            usage,
            nanocores: None,
            processes,
            sandbox_usage: cgroups.usage(&of_sandbox),
            sandbox_cgroup: of_sandbox,
            network: network.unwrap_or_default(),
            containers,
            cgroup,
        })
    }
}

fn container(it: &cri::Container, pod_cgroup: &str, cgroups: &Cgroups) -> Option<MeasuredContainer> {
    let cgroup = cgroups.container_cgroup(pod_cgroup, &it.id);
    let usage = cgroups.usage(&cgroup)?;
    Some(MeasuredContainer {
        name: it.labels.get("io.kubernetes.container.name")?.clone(),
        id: it.id.clone(),
        image: image_of(it),
        started: timestamp(it.created_at),
        usage,
        nanocores: None,
        processes: count(&cgroups.processes(&cgroup)),
        cgroup,
    })
}

/// A name that is only an id says nothing to a reader; then what the user wrote does.
fn image_of(it: &cri::Container) -> String {
    let named = it.image.as_ref().map(|it| &it.image).filter(|it| !it.is_empty() && !it.starts_with("sha256:"));
    named.or_else(|| it.annotations.get("io.kubernetes.container.image")).cloned().unwrap_or_default()
}

fn count(pids: &[u32]) -> u64 {
    u64::try_from(pids.len()).unwrap_or(0)
}

fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default()
}

fn owner(labels: &BTreeMap<String, String>) -> Option<Owner> {
    let label = |name: &str| labels.get(name).cloned();
    Some(Owner {
        namespace: label("io.kubernetes.pod.namespace")?,
        name: label("io.kubernetes.pod.name")?,
        uid: label("io.kubernetes.pod.uid")?,
    })
}

/// The file systems of Pods' folders and of images; one where both are the same.
pub(crate) fn file_systems(layout: &Layout) -> (FileSystem, FileSystem) {
    let of = |it: &std::path::Path| FileSystem::of(it).unwrap_or_default();
    (of(&layout.data), of(&layout.containerd_root()))
}
