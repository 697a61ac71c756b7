//! What the managers of CPUs, memory and topology are set to, and the machine they hand out: upstream's settings.

use std::collections::BTreeMap;

use super::cpu_set::{CpuSet, NumaNodes};

/// What is handed out by CPUs and NUMA nodes, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagersConfig {
    pub topology: TopologyConfig,
    pub cpu: CpuConfig,
    pub memory: MemoryConfig,
    pub machine: MachineTopology,
}

/// Which NUMA nodes are good enough for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyConfig {
    pub policy: TopologyPolicy,
    pub scope: TopologyScope,
    /// `prefer-closest-numa-nodes`: of as many nodes those that are nearer to each other.
    pub prefers_closest_numa_nodes: bool,
    /// `max-allowable-numa-nodes`: on a machine with more nothing but the policy `none` is taken.
    pub numa_nodes_max: u32,
}

impl Default for TopologyConfig {
    fn default() -> Self {
        let (policy, scope) = (TopologyPolicy::None, TopologyScope::Container);
        Self { policy, scope, prefers_closest_numa_nodes: false, numa_nodes_max: 8 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopologyPolicy {
    #[default]
    None,
    /// The best that can be, whatever it is.
    BestEffort,
    /// Nothing but what is preferred.
    Restricted,
    /// All of one node.
    SingleNumaNode,
}

/// What is to lie together: each container for itself, or all of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopologyScope {
    #[default]
    Container,
    Pod,
}

/// Whether containers are given CPUs of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuConfig {
    /// The policy `static`: those of Guaranteed pods that ask for whole CPUs.
    pub is_static: bool,
    /// `full-pcpus-only`: cores are never shared between containers.
    pub full_cores_only: bool,
    /// `strict-cpu-reservation`: no container runs on what is reserved.
    pub strict_reservation: bool,
    /// `prefer-align-cpus-by-uncorecache`: CPUs that share a last-level cache first.
    pub prefers_uncore_cache: bool,
    /// `distribute-cpus-across-numa`: what one NUMA node cannot give is spread evenly over as few as can.
    pub spreads: bool,
    /// `reservedSystemCPUs`: these are reserved, rather than as many as are kept for the system.
    pub reserved: CpuSet,
}

/// Whether containers are given memory of certain NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryConfig {
    /// The policy `Static`: those of Guaranteed pods.
    pub is_static: bool,
    /// Of each node and kind of memory (`memory`, `hugepages-1Gi`) what is kept for the system, in bytes.
    pub reserved: BTreeMap<u32, BTreeMap<String, u64>>,
}

/// What the managers have been asked and have refused since the kubelet began, and what they have given: for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerCounts {
    /// Pods that asked to be taken, and such as were not because of where things lie.
    pub topology: RequestCounts,
    /// Containers that asked for CPUs of their own.
    pub cpu: RequestCounts,
    /// Containers that asked for memory of certain NUMA nodes.
    pub memory: RequestCounts,
    /// CPUs that are one container's alone.
    pub own_cpus: usize,
    /// CPUs that all the others share.
    pub shared_cpus: usize,
}

/// What a manager counts: requests, and those that ended with an error (`*_requests_total`, `*_errors_total`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    pub n: u64,
    pub errors: u64,
}

impl RequestCounts {
    pub(crate) fn note<T, E>(&mut self, result: &Result<T, E>) {
        self.n += 1;
        self.errors += u64::from(result.is_err());
    }
}

/// The state files of the managers; `None`: there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagerStates {
    pub cpu: Option<String>,
    pub memory: Option<String>,
}

/// Where a container runs. Nothing of either: wherever there is room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    pub cpus: CpuSet,
    /// The NUMA nodes its memory is of.
    pub memory_nodes: NumaNodes,
}

/// What can be handed out, and what is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Those that containers can have for themselves, whether one has them or not.
    pub cpus: CpuSet,
    /// Likewise.
    pub memory: Vec<MemoryBlock>,
    /// By the pods' uids and the containers' names.
    pub pods: BTreeMap<String, BTreeMap<String, Share>>,
}

/// What a container has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub cpus: CpuSet,
    pub memory: Vec<MemoryBlock>,
}

/// So much memory of these nodes together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBlock {
    /// `memory`, `hugepages-1Gi`.
    pub kind: String,
    /// In bytes.
    pub size: u64,
    pub nodes: NumaNodes,
}

/// The machine's CPUs and memory, and where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineTopology {
    /// Those that are online, by their numbers.
    pub cpus: BTreeMap<u32, Cpu>,
    /// By their numbers.
    pub numa_nodes: BTreeMap<u32, NumaNode>,
}

/// Where a CPU is. Cores and caches have numbers of their own across all sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    pub core: u32,
    pub socket: u32,
    pub numa_node: u32,
    /// The last-level cache.
    pub uncore_cache: u32,
}

/// The memory of a NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNode {
    pub memory_bytes: u64,
    /// Of each size of huge pages (`2Mi`) how many bytes are set aside.
    pub hugepages: BTreeMap<String, u64>,
    /// To each node, in the kernel's numbers.
    pub distances: BTreeMap<u32, u32>,
}

impl MachineTopology {
    pub fn cpu_set(&self) -> CpuSet {
        self.cpus.keys().copied().collect()
    }

    pub fn nodes(&self) -> NumaNodes {
        self.numa_nodes.keys().copied().collect()
    }
}
