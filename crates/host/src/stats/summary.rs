//! `/stats/summary`: the shape of upstream's `stats/v1alpha1`.

use std::fs;

use corten_machine::{
    Layout,
    cgroups::{Pressure, Stall, Usage},
};
use corten_volumes::VolumeFigures;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DiskUse, Measured, MeasuredContainer, MeasuredPod, claim_volumes,
    disk::{FileSystem, FsUsage, PodFsUsage},
    network::Interface,
};
use crate::node_facts;

/// What the whole is made of.
pub(crate) struct Source<'a> {
    pub(crate) node_name: &'a str,
    pub(crate) measured: &'a Measured,
    /// `None`: CPU and memory alone are asked for.
    pub(crate) rest: Option<Rest<'a>>,
}

/// All beside CPU and memory.
pub(crate) struct Rest<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) disks: Option<&'a DiskUse>,
    /// Those of which their drivers say how full they are.
    pub(crate) volumes: &'a [VolumeFigures],
}

impl Source<'_> {
    pub(crate) fn json(&self) -> Value {
        let pods: Vec<Value> = self.measured.pods.iter().map(|it| self.pod(it)).collect();
        json!({ "node": self.node(), "pods": pods })
    }

    fn node(&self) -> Value {
        let it = self.measured;
        let total = node_facts::memory_total();
        let mut node = json!({
            "nodeName": self.node_name,
            "systemContainers": self.system_containers(total),
            "startTime": time(node_facts::boot_time()),
            "cpu": cpu(it.time, &it.node, it.nanocores),
            "memory": memory(it.time, &it.node, Some(total)),
            "swap": swap(it.time, &it.node),
        });
        add_io(&mut node, it.time, &it.node);
        let Some(rest) = &self.rest else { return node };
        let (node_fs, image_fs) = super::file_systems(rest.layout);
        node["network"] = network(it.time, &it.network, it.default_interface.as_deref());
        node["fs"] = file_system(it.time, &node_fs, None);
        let images = rest.disks.map(|it| it.images);
        let containers = rest.disks.map(|it| it.layers.values().copied().fold(FsUsage::default(), FsUsage::plus));
        node["runtime"] = json!({
            "imageFs": file_system(it.time, &image_fs, images),
            "containerFs": file_system(it.time, &image_fs, containers),
        });
        let (most, now) = processes();
        node["rlimit"] = json!({ "time": time(it.time), "maxpid": most, "curproc": now });
        node
    }

    fn system_containers(&self, total: u64) -> Vec<Value> {
        let it = self.measured;
        let one = |name: &str, usage: &Option<(Usage, Option<u64>)>, limit: Option<u64>| {
            let (usage, nanocores) = (*usage)?;
            Some(json!({
                "name": name,
                "startTime": time(node_facts::boot_time()),
                "cpu": cpu(it.time, &usage, nanocores),
                "memory": memory(it.time, &usage, limit),
                "swap": swap(it.time, &usage),
            }))
        };
        let pods = one("pods", &it.pods_usage, Some(total));
        [pods, one("runtime", &it.runtime_usage, None)].into_iter().flatten().collect()
    }

    fn pod(&self, it: &MeasuredPod) -> Value {
        let at = self.measured.time;
        let owner = &it.owner;
        let disks = self.rest.as_ref().and_then(|it| it.disks);
        let taken = disks.and_then(|it| it.pods.get(&owner.uid));
        let containers: Vec<Value> = it.containers.iter().map(|it| self.container(it, taken)).collect();
        let mut pod = json!({
            "podRef": { "name": owner.name, "namespace": owner.namespace, "uid": owner.uid },
            "startTime": time(it.started),
            "containers": containers,
            "cpu": cpu(at, &it.usage, it.nanocores),
            "memory": memory(at, &it.usage, it.usage.memory_limit_bytes),
            "swap": swap(at, &it.usage),
        });
        add_io(&mut pod, at, &it.usage);
        let Some(rest) = &self.rest else { return pod };
        pod["process_stats"] = json!({ "process_count": it.processes });
        if !it.network.is_empty() {
            pod["network"] = network(at, &it.network, Some("eth0"));
        }
        let (Some(disks), Some(taken)) = (disks, taken) else { return pod };
        let own = taken.volumes.iter().map(|it| {
            let mut volume = file_system(disks.time, &it.file_system, Some(it.taken));
            volume["name"] = json!(it.name);
            volume
        });
        let others = rest.volumes.iter().filter(|it| it.uid == owner.uid).map(claim_volumes::summary);
        let volumes: Vec<Value> = own.chain(others).collect();
        if !volumes.is_empty() {
            pod["volume"] = json!(volumes);
        }
        let (node_fs, _) = super::file_systems(rest.layout);
        let ids = it.containers.iter().map(|it| it.id.as_str());
        pod["ephemeral-storage"] = file_system(disks.time, &node_fs, Some(ephemeral(disks, taken, ids)));
        pod
    }

    fn container(&self, it: &MeasuredContainer, taken: Option<&PodFsUsage>) -> Value {
        let at = self.measured.time;
        let mut container = json!({
            "name": it.name,
            "startTime": time(it.started),
            "cpu": cpu(at, &it.usage, it.nanocores),
            "memory": memory(at, &it.usage, it.usage.memory_limit_bytes),
            "swap": swap(at, &it.usage),
        });
        add_io(&mut container, at, &it.usage);
        let Some(Rest { layout, disks: Some(disks), .. }) = &self.rest else { return container };
        let (node_fs, image_fs) = super::file_systems(layout);
        if let Some(layer) = disks.layers.get(&it.id) {
            container["rootfs"] = file_system(disks.time, &image_fs, Some(*layer));
        }
        let logs = taken.and_then(|taken| taken.logs.get(&it.name)).copied();
        container["logs"] = file_system(disks.time, &node_fs, Some(logs.unwrap_or_default()));
        container
    }
}

/// All that goes from the disk with the Pod.
pub(crate) fn ephemeral<'a>(disks: &DiskUse, taken: &PodFsUsage, ids: impl Iterator<Item = &'a str>) -> FsUsage {
    let layers = ids.filter_map(|it| disks.layers.get(it)).copied();
    let volumes = taken.volumes.iter().filter(|it| it.is_ephemeral).map(|it| it.taken);
    layers.chain(volumes).chain(taken.logs.values().copied()).fold(taken.other, FsUsage::plus)
}

/// As `metav1.Time` is written: whole seconds.
pub(super) fn time(at: Timestamp) -> Value {
    json!(Timestamp::from_second(at.as_second()).unwrap_or(at).to_string())
}

/// `io` has nothing but the pressure.
fn add_io(it: &mut Value, at: Timestamp, usage: &Usage) {
    if let Some(pressure) = &usage.io_pressure {
        it["io"] = json!({ "time": time(at), "psi": psi(pressure) });
    }
}

fn psi(pressure: &Pressure) -> Value {
    let percent = |hundredths: u32| f64::from(hundredths) / 100.0;
    let stall = |it: &Stall| {
        json!({
            "total": it.total_micros.saturating_mul(1000),
            "avg10": percent(it.avg10),
            "avg60": percent(it.avg60),
            "avg300": percent(it.avg300),
        })
    };
    json!({ "full": stall(&pressure.full), "some": stall(&pressure.some) })
}

fn cpu(at: Timestamp, usage: &Usage, nanocores: Option<u64>) -> Value {
    let mut cpu = json!({ "time": time(at), "usageCoreNanoSeconds": usage.cpu_nanos });
    if let Some(pressure) = &usage.cpu_pressure {
        cpu["psi"] = psi(pressure);
    }
    if let Some(nanocores) = nanocores {
        cpu["usageNanoCores"] = json!(nanocores);
    }
    cpu
}

fn memory(at: Timestamp, usage: &Usage, limit: Option<u64>) -> Value {
    let mut memory = json!({
        "time": time(at),
        "usageBytes": usage.memory_bytes,
        "workingSetBytes": usage.working_set_bytes,
        "rssBytes": usage.rss_bytes,
        "pageFaults": usage.page_faults,
        "majorPageFaults": usage.major_page_faults,
    });
    if let Some(pressure) = &usage.memory_pressure {
        memory["psi"] = psi(pressure);
    }
    if let Some(limit) = limit {
        memory["availableBytes"] = json!(limit.saturating_sub(usage.working_set_bytes));
    }
    memory
}

fn swap(at: Timestamp, usage: &Usage) -> Value {
    json!({ "time": time(at), "swapUsageBytes": usage.swap_bytes })
}

fn network(at: Timestamp, interfaces: &[Interface], default: Option<&str>) -> Value {
    let one = |it: &Interface| {
        json!({
            "name": it.name,
            "rxBytes": it.received.bytes,
            "rxErrors": it.received.errors,
            "txBytes": it.sent.bytes,
            "txErrors": it.sent.errors,
        })
    };
    let first = interfaces.iter().find(|it| Some(&*it.name) == default);
    let mut network = first.map_or_else(|| json!({ "name": "" }), one);
    network["time"] = time(at);
    network["interfaces"] = interfaces.iter().map(one).collect();
    network
}

/// `taken`: what a part of the file system has of it; else it is about the whole.
fn file_system(at: Timestamp, it: &FileSystem, taken: Option<FsUsage>) -> Value {
    let used = taken.map_or(it.used_bytes, |it| it.bytes);
    let inodes_used = taken.map_or(it.inodes.saturating_sub(it.inodes_free), |it| it.inodes);
    json!({
        "time": time(at),
        "availableBytes": it.available_bytes,
        "capacityBytes": it.capacity_bytes,
        "usedBytes": used,
        "inodesFree": it.inodes_free,
        "inodes": it.inodes,
        "inodesUsed": inodes_used,
    })
}

/// How many processes there may be and are; threads count.
pub(crate) fn processes() -> (i64, i64) {
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|it| it.trim().parse::<i64>().ok());
    let most = [number("/proc/sys/kernel/pid_max"), number("/proc/sys/kernel/threads-max")];
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let now = load.split_whitespace().nth(3).and_then(|it| it.split_once('/')?.1.parse().ok());
    (most.into_iter().flatten().min().unwrap_or(0), now.unwrap_or(0))
}
