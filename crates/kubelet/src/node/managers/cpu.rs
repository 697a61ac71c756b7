//! CPUs that a container has for itself: the policy `static` of upstream's CPU manager. Containers of Guaranteed pods that ask
//! for whole CPUs have them alone, all others share the rest.

mod assignment;
mod distribution;
pub(super) mod state;

use std::collections::{BTreeMap, BTreeSet};

use assignment::take_packed;
use corten_api::core::v1::{Container, Pod};
use distribution::take_spread;

use crate::{
    CpuConfig, CpuSet, MachineTopology, NumaNodes, Qos, RequestCounts,
    node::{
        admission::Rejection,
        topology::{HintProvider, Hints, Numa, TopologyHint},
    },
    spec::{
        downward::quantity,
        pod::{all_containers, is_init, is_sidecar, spec_of, uid_of},
        sandbox::qos,
    },
};

/// Of each pod, by its uid, and each of its containers the CPUs it has for itself.
pub(crate) type Assignments = BTreeMap<String, BTreeMap<String, CpuSet>>;

#[derive(Debug)]
pub(crate) struct CpuManager {
    config: CpuConfig,
    machine: MachineTopology,
    numa: Numa,
    /// No container has these for itself.
    reserved: CpuSet,
    assigned: Assignments,
    pub(super) asked: RequestCounts,
}

impl CpuManager {
    /// `reserved_millis`: what is kept for the system, in thousandths of a CPU. What is wrong is said in upstream's words.
    pub(crate) fn new(config: CpuConfig, machine: MachineTopology, reserved_millis: i64) -> Result<Self, String> {
        let all = machine.cpu_set();
        let reserved = match config.reserved.is_empty() {
            false => config.reserved.clone(),
            true => {
                if reserved_millis <= 0 {
                    return Err(
                        "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
                            .into(),
                    );
                }
                let n_cpus = usize::try_from(reserved_millis.saturating_add(999) / 1000).unwrap_or(usize::MAX);
                take(&machine, &config, &all, n_cpus)
                    .map_err(|it| format!("unable to reserve the required amount of CPUs: {it}"))?
            }
        };
        if !reserved.is_subset(&all) {
            return Err(format!("reserved CPUs \"{reserved}\" are not among the machine's \"{all}\""));
        }
        let numa = Numa::of(&machine);
        Ok(Self { config, machine, numa, reserved, assigned: Assignments::new(), asked: RequestCounts::default() })
    }

    /// What any container may have: all but what is strictly reserved.
    fn usable(&self) -> CpuSet {
        let all = self.machine.cpu_set();
        if self.config.strict_reservation { all.difference(&self.reserved) } else { all }
    }

    /// What containers without CPUs of their own run on.
    pub(crate) fn shared(&self) -> CpuSet {
        let own = self.assigned.values().flat_map(BTreeMap::values);
        own.fold(self.usable(), |shared, own| shared.difference(own))
    }

    /// What a container has for itself.
    pub(crate) fn own(&self, uid: &str, container: &str) -> Option<&CpuSet> {
        self.assigned.get(uid)?.get(container)
    }

    /// How many CPUs are one container's alone.
    pub(crate) fn n_own(&self) -> usize {
        let own = self.assigned.values().flat_map(BTreeMap::values);
        own.fold(CpuSet::default(), |sum, it| sum.union(it)).len()
    }

    pub(crate) fn has_own(&self, uid: &str) -> bool {
        self.assigned.get(uid).is_some_and(|it| !it.is_empty())
    }

    /// The uids of pods that have CPUs for themselves.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &String> {
        self.assigned.keys()
    }

    /// `GetAllocatableCPUs`: what containers can have for themselves.
    pub(crate) fn allocatable(&self) -> CpuSet {
        self.machine.cpu_set().difference(&self.reserved)
    }

    /// What containers have for themselves, by the pods' uids and their names.
    pub(crate) fn given(&self) -> &Assignments {
        &self.assigned
    }

    fn available(&self) -> CpuSet {
        self.shared().difference(&self.reserved)
    }

    /// What init containers of the pod have had and no other container of it has: these run one after the other.
    fn reusable(&self, pod: &Pod) -> CpuSet {
        let (mut once, mut on) = (CpuSet::default(), CpuSet::default());
        for container in all_containers(pod) {
            let Some(own) = self.own(uid_of(pod), &container.name) else { continue };
            let passes = is_init(pod, &container.name) && !is_sidecar(container);
            let sum = if passes { &mut once } else { &mut on };
            *sum = sum.union(own);
        }
        once.difference(&on)
    }

    /// As `generateCPUTopologyHints`.
    fn hints_for(&self, wanted: usize, available: &CpuSet, reusable: &CpuSet) -> Hints {
        let node = |cpu: u32| self.machine.cpus.get(&cpu).map(|it| it.numa_node);
        let within = |cpus: &CpuSet, nodes: NumaNodes| {
            cpus.iter().filter(|it| node(*it).is_some_and(|it| nodes.contains(it))).count()
        };
        let all = self.machine.cpu_set();
        let sets = self.numa.sets();
        let fewest = sets.iter().find(|it| within(&all, **it) >= wanted).map_or(self.numa.nodes.len(), |it| it.len());
        let fits = |nodes: &NumaNodes| {
            let reused = within(reusable, *nodes);
            reused == reusable.len() && reused + within(&available.difference(reusable), *nodes) >= wanted
        };
        let hint = |nodes: NumaNodes| TopologyHint { nodes: Some(nodes), is_preferred: nodes.len() == fewest };
        Hints::from([("cpu".to_owned(), Some(sets.into_iter().filter(fits).map(hint).collect()))])
    }

    fn find(&self, pod: &Pod, wanted: usize, affinity: TopologyHint) -> Result<CpuSet, String> {
        let free = self.available().union(&self.reusable(pod));
        let near: CpuSet = match affinity.nodes {
            Some(nodes) => free
                .iter()
                .filter(|it| self.machine.cpus.get(it).is_some_and(|it| nodes.contains(it.numa_node)))
                .collect(),
            None => CpuSet::default(),
        };
        let first = take(&self.machine, &self.config, &near, wanted.min(near.len()))?;
        let rest = take(&self.machine, &self.config, &free.difference(&first), wanted - first.len())?;
        Ok(first.union(&rest))
    }

    fn found(&self, pod: &Pod, wanted: usize, affinity: TopologyHint) -> Result<CpuSet, Rejection> {
        if self.config.full_cores_only {
            self.check_alignment(pod, wanted)?;
        }
        self.find(pod, wanted, affinity).map_err(|it| Rejection::unexpected(&it))
    }

    /// Threads of one core are not to be two containers' (`FullPCPUsOnlyOption` of the CPU manager's static policy).
    fn check_alignment(&self, pod: &Pod, wanted: usize) -> Result<(), Rejection> {
        let per_core = cpus_per_core(&self.machine);
        let reject = |message| Err(Rejection { reason: "SMTAlignmentError", message });
        if !wanted.is_multiple_of(per_core) {
            return reject(format!(
                "SMT Alignment Error: requested {wanted} cpus not multiple cpus per core = {per_core}"
            ));
        }
        let core = |cpu: u32| self.machine.cpus.get(&cpu).map(|it| it.core);
        let reserved: BTreeSet<u32> = self.reserved.iter().filter_map(core).collect();
        let free = self.available().union(&self.reusable(pod));
        let whole = free.iter().filter(|it| core(*it).is_some_and(|it| !reserved.contains(&it))).count();
        if wanted > whole {
            return reject(format!(
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = {whole}, requested CPUs = {wanted}, CPUs per core = {per_core}"
            ));
        }
        Ok(())
    }
}

/// So many of the free CPUs, as the manager is set to.
fn take(machine: &MachineTopology, config: &CpuConfig, free: &CpuSet, wanted: usize) -> Result<CpuSet, String> {
    if !config.spreads {
        return take_packed(machine, config, free, wanted);
    }
    let group = if config.full_cores_only { cpus_per_core(machine) } else { 1 };
    take_spread(machine, config, free, wanted, group)
}

fn cpus_per_core(machine: &MachineTopology) -> usize {
    let cores: BTreeSet<u32> = machine.cpus.values().map(|it| it.core).collect();
    (machine.cpus.len() / cores.len().max(1)).max(1)
}

/// How many CPUs the container has for itself: those of a Guaranteed pod that asks for whole ones (`guaranteedCPUs` of the static
/// policy). Pods that ask for resources as a whole have none.
fn whole_cpus(pod: &Pod, container: &Container) -> usize {
    if qos(pod) != Qos::Guaranteed || spec_of(pod).resources.is_some() {
        return 0;
    }
    let millis = quantity(container, false, "cpu").map_or(0, |it| it.milli_value());
    if millis % 1000 == 0 { usize::try_from(millis / 1000).unwrap_or(0) } else { 0 }
}

/// How many all containers of the pod have at one time: sidecars run beside what comes after them.
fn whole_cpus_of_pod(pod: &Pod) -> usize {
    let spec = spec_of(pod);
    let (mut sidecars, mut most) = (0_usize, 0_usize);
    for container in spec.init_containers.iter().flatten() {
        let wanted = sidecars.saturating_add(whole_cpus(pod, container));
        most = most.max(wanted);
        if is_sidecar(container) {
            sidecars = wanted;
        }
    }
    spec.containers.iter().map(|it| whole_cpus(pod, it)).fold(sidecars, usize::saturating_add).max(most)
}

impl HintProvider for CpuManager {
    fn hints(&self, pod: &Pod, container: &Container) -> Hints {
        match (whole_cpus(pod, container), self.own(uid_of(pod), &container.name)) {
            (0, _) => Hints::new(),
            (wanted, Some(own)) if own.len() != wanted => Hints::from([("cpu".to_owned(), Some(Vec::new()))]),
            (wanted, Some(own)) => self.hints_for(wanted, own, &CpuSet::default()),
            (wanted, None) => self.hints_for(wanted, &self.available(), &self.reusable(pod)),
        }
    }

    fn pod_hints(&self, pod: &Pod) -> Hints {
        match whole_cpus_of_pod(pod) {
            0 => Hints::new(),
            wanted => {
                let own = self.assigned.get(uid_of(pod)).into_iter().flat_map(BTreeMap::values);
                let own = own.fold(CpuSet::default(), |sum, it| sum.union(it));
                if own.len() == wanted {
                    return self.hints_for(wanted, &own, &CpuSet::default());
                }
                self.hints_for(wanted, &self.available(), &own)
            }
        }
    }

    fn allocate(&mut self, pod: &Pod, container: &Container, affinity: TopologyHint) -> Result<(), Rejection> {
        let wanted = whole_cpus(pod, container);
        if wanted == 0 || self.own(uid_of(pod), &container.name).is_some() {
            return Ok(());
        }
        let own = self.found(pod, wanted, affinity);
        self.asked.note(&own);
        let own = own?;
        self.assigned.entry(uid_of(pod).to_owned()).or_default().insert(container.name.clone(), own);
        Ok(())
    }

    fn release(&mut self, uid: &str) {
        self.assigned.remove(uid);
    }
}

#[cfg(test)]
mod tests;
