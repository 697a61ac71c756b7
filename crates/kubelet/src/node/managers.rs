//! Who hands out what belongs to certain CPUs and NUMA nodes, asked together: a pod has all of it, or is not taken.
//!
//! What is given is written down before the pod begins, so that the next run of the kubelet gives it to nobody else.

mod cpu;
mod memory;
mod shares;

use std::collections::BTreeSet;

use corten_api::core::v1::Pod;
use cpu::CpuManager;
use memory::MemoryManager;
pub use shares::shares;

use crate::{
    Config, ManagerCounts, ManagerStates, Pins, Qos, RequestCounts, Signal, TopologyPolicy,
    node::{
        admission::Rejection,
        devices::{DeviceHints, Devices},
        topology::{self, HintProvider, Numa},
    },
    spec::{pod::uid_of, sandbox::qos},
};

/// Those who hand out by CPUs and NUMA nodes, as far as they are switched on.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    numa: Numa,
    cpu: Option<CpuManager>,
    memory: Option<MemoryManager>,
    /// What was last given to be written down.
    noted: ManagerStates,
    /// That is under way.
    is_noting: bool,
    /// The pods whose share is not written down yet.
    unwritten: BTreeSet<String>,
    admissions: RequestCounts,
    /// What was last given to the metrics.
    counted: ManagerCounts,
}

/// Can the managers begin with these settings, this machine, and what an earlier run has written? Why not, in upstream's words.
pub fn check_managers(config: &Config) -> Result<(), String> {
    Managers::new(config).map(drop)
}

impl Managers {
    pub(crate) fn new(config: &Config) -> Result<Self, String> {
        let (managers, states) = (&config.managers, &config.manager_states);
        let n_nodes = managers.machine.numa_nodes.len();
        let n_nodes_max = managers.topology.numa_nodes_max as usize;
        let looks_at_nodes =
            managers.topology.policy != TopologyPolicy::None || managers.cpu.is_static || managers.memory.is_static;
        if looks_at_nodes && n_nodes > n_nodes_max {
            return Err(format!("unsupported on machines with more than {n_nodes_max} NUMA Nodes"));
        }
        let (mut cpu, mut memory) = (None, None);
        if managers.cpu.is_static {
            cpu = Some(CpuManager::new(managers.cpu.clone(), managers.machine.clone(), config.reserved_cpu_millis)?);
        }
        if managers.memory.is_static {
            memory =
                Some(MemoryManager::new(managers.memory.clone(), managers.machine.clone(), reserved_memory(config))?);
        }
        let advice = |it: String, whose: &str| {
            format!(
                "{it}, please drain this node and delete the {whose} manager checkpoint file before restarting Corten"
            )
        };
        let other = |policy: &str| {
            Err(format!(
                "could not restore state from checkpoint: configured policy {policy:?} differs from state checkpoint policy"
            ))
        };
        let restored = match (&mut cpu, &states.cpu) {
            (Some(cpu), Some(text)) => cpu.restore(text),
            (None, Some(_)) => other("none"),
            _ => Ok(()),
        };
        restored.map_err(|it| advice(it, "CPU"))?;
        let restored = match (&mut memory, &states.memory) {
            (Some(memory), Some(text)) => memory.restore(text),
            (None, Some(_)) => other("None"),
            _ => Ok(()),
        };
        restored.map_err(|it| advice(it, "memory"))?;
        let numa = Numa::of(&managers.machine);
        Ok(Self { numa, cpu, memory, noted: states.clone(), ..Self::default() })
    }

    pub(crate) fn are_on(&self) -> bool {
        self.cpu.is_some() || self.memory.is_some()
    }

    /// Gives the pod what it asks for; where not all of it can be given, nothing is.
    pub(crate) fn admit(&mut self, config: &Config, pod: &Pod, devices: &mut Devices) -> Result<(), Rejection> {
        let before = self.states();
        let mut devices = DeviceHints { devices, numa: &self.numa };
        let mut providers: Vec<&mut dyn HintProvider> = vec![&mut devices];
        providers.extend(self.cpu.as_mut().map(|it| it as &mut dyn HintProvider));
        providers.extend(self.memory.as_mut().map(|it| it as &mut dyn HintProvider));
        let admitted = topology::admit(&config.managers.topology, &self.numa, pod, &mut providers);
        self.admissions.note(&admitted);
        admitted?;
        if self.states() != before {
            self.unwritten.insert(uid_of(pod).to_owned());
        }
        Ok(())
    }

    /// The pods that have something.
    pub(crate) fn holders(&self) -> BTreeSet<String> {
        let cpu = self.cpu.iter().flat_map(CpuManager::holders);
        cpu.chain(self.memory.iter().flat_map(MemoryManager::holders)).cloned().collect()
    }

    pub(crate) fn release(&mut self, uid: &str) {
        self.unwritten.remove(uid);
        if let Some(it) = &mut self.cpu {
            it.release(uid);
        }
        if let Some(it) = &mut self.memory {
            it.release(uid);
        }
    }

    /// The pod must not begin yet: what it has is not written down.
    pub(crate) fn is_unwritten(&self, uid: &str) -> bool {
        self.unwritten.contains(uid)
    }

    /// What is to be written down, if anything is.
    pub(crate) fn take_unnoted(&mut self) -> Option<ManagerStates> {
        if !self.are_on() || self.is_noting {
            return None;
        }
        let states = self.states();
        if states == self.noted {
            return None;
        }
        self.noted.clone_from(&states);
        self.is_noting = true;
        Some(states)
    }

    /// It is written down, as far as it can be: the pods that may begin now.
    pub(crate) fn noted(&mut self) -> Vec<String> {
        self.is_noting = false;
        if self.states() == self.noted { std::mem::take(&mut self.unwritten).into_iter().collect() } else { Vec::new() }
    }

    /// What is to be counted, if it is not yet.
    pub(crate) fn take_uncounted(&mut self) -> Option<ManagerCounts> {
        let cpu = self.cpu.as_ref();
        let counts = ManagerCounts {
            topology: self.admissions,
            cpu: cpu.map(|it| it.asked).unwrap_or_default(),
            memory: self.memory.as_ref().map(|it| it.asked).unwrap_or_default(),
            own_cpus: cpu.map_or(0, CpuManager::n_own),
            shared_cpus: cpu.map_or(0, |it| it.shared().len()),
        };
        if counts == self.counted {
            return None;
        }
        self.counted = counts;
        Some(counts)
    }

    fn states(&self) -> ManagerStates {
        ManagerStates {
            cpu: self.cpu.as_ref().map(CpuManager::state),
            memory: self.memory.as_ref().map(MemoryManager::state),
        }
    }

    /// Where a container is to run, and of which nodes its memory is.
    pub(crate) fn pins(&self, uid: &str, container: &str) -> Pins {
        let cpus = self.cpu.as_ref().map(|it| it.own(uid, container).cloned().unwrap_or_else(|| it.shared()));
        let nodes = self.memory.as_ref().and_then(|it| it.nodes_of(uid, container));
        Pins { cpus: cpus.unwrap_or_default(), memory_nodes: nodes.unwrap_or_default() }
    }

    /// The container has CPUs for itself: no quota is to keep it from them (`DisableCPUQuotaWithExclusiveCPUs`).
    pub(crate) fn has_own_cpus(&self, uid: &str, container: &str) -> bool {
        self.cpu.as_ref().is_some_and(|it| it.own(uid, container).is_some())
    }

    /// Some container of the pod has.
    pub(crate) fn pod_has_own_cpus(&self, uid: &str) -> bool {
        self.cpu.as_ref().is_some_and(|it| it.has_own(uid))
    }

    /// Why a pod cannot be resized at all, what the kubelet says while `InPlacePodVerticalScalingExclusiveCPUs` is off.
    pub(crate) fn resize_problem(&self, pod: &Pod) -> Option<&'static str> {
        if qos(pod) != Qos::Guaranteed {
            return None;
        }
        let cpu = "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy";
        let memory = "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy";
        self.cpu.as_ref().map(|_| cpu).or(self.memory.as_ref().map(|_| memory))
    }
}

/// What of the memory no pod has: what is kept, and what eviction keeps free at once.
fn reserved_memory(config: &Config) -> u64 {
    let capacity = config.managers.machine.numa_nodes.values().map(|it| it.memory_bytes).fold(0, u64::saturating_add);
    let capacity = i64::try_from(capacity).unwrap_or(i64::MAX);
    let thresholds = config.eviction.thresholds.iter();
    let hard = thresholds.filter(|it| it.signal == Signal::MemoryAvailable && it.is_hard());
    let hard = hard.map(|it| it.limit.of(capacity).value()).max().unwrap_or(0);
    u64::try_from(config.reserved_memory_bytes.saturating_add(hard)).unwrap_or(0)
}
