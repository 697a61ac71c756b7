//! Which CPUs are taken: whole NUMA nodes and sockets where that many are wanted, then whole cores, then threads; always out of
//! what is already broken into, so that the rest stays whole (`takeByTopologyNUMAPacked`).

use std::collections::BTreeMap;

use crate::{Cpu, CpuConfig, CpuSet, MachineTopology};

/// What CPUs are together in.
type Level = fn(&Cpu) -> u32;

const SOCKET: Level = |it| it.socket;
const NUMA_NODE: Level = |it| it.numa_node;
const UNCORE_CACHE: Level = |it| it.uncore_cache;
const CORE: Level = |it| it.core;

/// So many of the free CPUs, near to each other.
pub(super) fn take_packed(
    machine: &MachineTopology,
    config: &CpuConfig,
    free: &CpuSet,
    wanted: usize,
) -> Result<CpuSet, String> {
    if wanted > free.len() {
        let available = free.len();
        return Err(format!("not enough cpus available to satisfy request: requested={wanted}, available={available}"));
    }
    let mut taking = Taking { machine, free: free.clone(), taken: CpuSet::default(), wanted };
    let count = |level: Level| groups(machine, &machine.cpu_set(), level).len();
    // What is the greater one comes first: there are machines with several NUMA nodes in a socket, and the other way round.
    let levels = if count(SOCKET) >= count(NUMA_NODE) { [NUMA_NODE, SOCKET] } else { [SOCKET, NUMA_NODE] };
    for level in levels {
        taking.take_whole(&[level]);
    }
    if config.prefers_uncore_cache {
        taking.take_whole(&[UNCORE_CACHE]);
        taking.take_within_one_cache();
    }
    taking.take_whole(&[levels[0], levels[1], CORE]);
    taking.take_threads(&[levels[0], levels[1], CORE])?;
    Ok(taking.taken)
}

/// Of each NUMA node what is free there: what has the least first.
pub(super) fn by_numa_node(machine: &MachineTopology, free: &CpuSet) -> Vec<(u32, CpuSet)> {
    ordered(machine, free, &[NUMA_NODE])
}

struct Taking<'a> {
    machine: &'a MachineTopology,
    free: CpuSet,
    taken: CpuSet,
    wanted: usize,
}

impl Taking<'_> {
    fn missing(&self) -> usize {
        self.wanted - self.taken.len()
    }

    fn take(&mut self, cpus: &CpuSet) {
        self.free = self.free.difference(cpus);
        self.taken = self.taken.union(cpus);
    }

    /// Everything of the last level that is free as a whole, while so much is wanted.
    fn take_whole(&mut self, levels: &[Level]) {
        let Some(level) = levels.last() else { return };
        let all = groups(self.machine, &self.machine.cpu_set(), *level);
        for (id, cpus) in ordered(self.machine, &self.free, levels) {
            if all.get(&id) == Some(&cpus) && cpus.len() <= self.missing() {
                self.take(&cpus);
            }
        }
    }

    /// All that is missing out of one cache, where one has as many whole cores.
    fn take_within_one_cache(&mut self) {
        let cores = groups(self.machine, &self.machine.cpu_set(), CORE);
        for (_, cpus) in ordered(self.machine, &self.free, &[UNCORE_CACHE]) {
            let missing = self.missing();
            let free = groups(self.machine, &cpus, CORE).into_iter().filter(|(id, it)| cores.get(id) == Some(it));
            let found: Vec<u32> = free.flat_map(|(_, it)| it.iter().collect::<Vec<_>>()).take(missing).collect();
            if missing > 0 && found.len() == missing {
                self.take(&found.into_iter().collect());
            }
        }
    }

    fn take_threads(&mut self, levels: &[Level]) -> Result<(), String> {
        let cores = ordered(self.machine, &self.free, levels);
        let threads: Vec<u32> = cores.iter().flat_map(|(_, it)| it.iter()).take(self.missing()).collect();
        self.take(&threads.into_iter().collect());
        if self.missing() > 0 { Err("failed to allocate cpus".into()) } else { Ok(()) }
    }
}

fn groups(machine: &MachineTopology, cpus: &CpuSet, level: Level) -> BTreeMap<u32, CpuSet> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (number, cpu) in cpus.iter().filter_map(|it| Some((it, machine.cpus.get(&it)?))) {
        groups.entry(level(cpu)).or_default().push(number);
    }
    groups.into_iter().map(|(id, cpus)| (id, cpus.into_iter().collect())).collect()
}

/// The groups of the last level, within those of the levels before: what has the least free first, then by number.
fn ordered(machine: &MachineTopology, free: &CpuSet, levels: &[Level]) -> Vec<(u32, CpuSet)> {
    let Some((first, rest)) = levels.split_first() else { return Vec::new() };
    let mut found: Vec<_> = groups(machine, free, *first).into_iter().collect();
    found.sort_by_key(|(id, cpus)| (cpus.len(), *id));
    if rest.is_empty() {
        return found;
    }
    found.into_iter().flat_map(|(_, cpus)| ordered(machine, &cpus, rest)).collect()
}
