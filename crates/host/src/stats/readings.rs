//! One reading of the Pods that run: their sockets, the counters of their CPU limits, and whom they ask for names.

use std::{fs, net::IpAddr, path::PathBuf};

use corten_kubelet::{CpuReading, PodReading};
use corten_machine::{Cgroups, Layout};
use corten_meta::Key;
use corten_network::listening_in;

use super::{RuntimeList, network, owner};
use crate::cri;

pub(crate) struct PodRead {
    pub(crate) reading: PodReading,
    pub(crate) name_servers: Vec<IpAddr>,
}

impl RuntimeList {
    pub(crate) fn readings(&self, cgroups: &Cgroups, layout: &Layout) -> Vec<PodRead> {
        self.sandboxes.iter().filter_map(|it| self.reading(it, cgroups, layout)).collect()
    }

    fn reading(&self, sandbox: &cri::PodSandbox, cgroups: &Cgroups, layout: &Layout) -> Option<PodRead> {
        let owner = owner(&sandbox.labels)?;
        let cgroup = cgroups.pod_cgroup(&owner.uid)?;
        let pause = cgroups.processes(&cgroups.container_cgroup(&cgroup, &sandbox.id));
        let proc = pause.first().map(|pid| PathBuf::from(format!("/proc/{pid}")));
        let is_nodes = |it: &PathBuf| network::is_same(it, &PathBuf::from("/proc/self"));
        let listening = proc.filter(|it| !is_nodes(it)).and_then(|it| listening_in(&it));
        let containers = self.containers.iter().filter(|it| it.pod_sandbox_id == sandbox.id);
        let reading = PodReading {
            key: Key::new(owner.namespace, owner.name),
            listening: listening.map(|it| it.into_iter().collect()),
            containers: containers.filter_map(|it| cpu(it, &cgroup, cgroups)).collect(),
            silent_name_servers: Vec::new(),
        };
        // Containers see a copy of this file; what they make of theirs is not read.
        let resolv_conf = layout.containerd_root().join("io.containerd.grpc.v1.cri/sandboxes").join(&sandbox.id);
        let resolv_conf = fs::read_to_string(resolv_conf.join("resolv.conf")).unwrap_or_default();
        Some(PodRead { reading, name_servers: name_servers(&resolv_conf) })
    }
}

fn name_servers(resolv_conf: &str) -> Vec<IpAddr> {
    let servers = resolv_conf.lines().filter_map(|it| it.trim().strip_prefix("nameserver"));
    servers.filter_map(|it| it.trim().parse().ok()).collect()
}

fn cpu(container: &cri::Container, pod_cgroup: &str, cgroups: &Cgroups) -> Option<CpuReading> {
    let usage = cgroups.usage(&cgroups.container_cgroup(pod_cgroup, &container.id))?;
    let limit = |quota: u64| (quota * 1000).checked_div(usage.cpu_period_micros);
    Some(CpuReading {
        container: container.labels.get("io.kubernetes.container.name")?.clone(),
        id: container.id.clone(),
        periods: usage.cpu_periods,
        throttled: usage.cpu_throttled_periods,
        limit_millis: usage.cpu_quota_micros.and_then(limit),
    })
}
