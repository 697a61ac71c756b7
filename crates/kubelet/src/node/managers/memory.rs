//! Memory and huge pages that a container has of certain NUMA nodes: the policy `Static` of upstream's memory manager, for
//! containers of Guaranteed pods.
//!
//! A node gives either to those that need it alone, or to those that need the same group of nodes: else one of them could use
//! up what was promised to the other.

mod shares;
mod state;

use std::collections::BTreeMap;

use corten_api::core::v1::{Container, Pod};
use serde::{Deserialize, Serialize};

use crate::{
    MachineTopology, MemoryConfig, NumaNodes, Qos, RequestCounts,
    node::{
        admission::Rejection,
        topology::{HintProvider, Hints, Numa, TopologyHint},
    },
    spec::{
        downward::quantity,
        pod::{all_containers, is_init, is_sidecar, spec_of, uid_of},
        requests::amount,
        sandbox::qos,
    },
};

/// So many bytes of one kind of memory, from these nodes together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    numa_affinity: Vec<u32>,
    /// `memory`, `hugepages-1Gi`.
    #[serde(rename = "type")]
    kind: String,
    size: u64,
}

impl Block {
    fn nodes(&self) -> NumaNodes {
        self.numa_affinity.iter().copied().collect()
    }
}

/// Of each pod, by its uid, and each of its containers what it has.
type Assignments = BTreeMap<String, BTreeMap<String, Vec<Block>>>;

#[derive(Debug)]
pub(crate) struct MemoryManager {
    config: MemoryConfig,
    machine: MachineTopology,
    numa: Numa,
    assigned: Assignments,
    pub(super) asked: RequestCounts,
}

/// One kind of memory of a node, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    total: u64,
    system_reserved: u64,
    allocatable: u64,
    reserved: u64,
    free: u64,
}

/// What of a node is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeState {
    number_of_assignments: u64,
    memory_map: BTreeMap<String, Table>,
    /// The nodes it gives together with.
    cells: Vec<u32>,
}

impl NodeState {
    fn group(&self) -> NumaNodes {
        self.cells.iter().copied().collect()
    }
}

type MachineState = BTreeMap<u32, NodeState>;
type Needed = BTreeMap<String, u64>;

impl MemoryManager {
    /// `reserved_bytes`: what of the memory is kept for the system and as the hard limit of eviction.
    pub(crate) fn new(config: MemoryConfig, machine: MachineTopology, reserved_bytes: u64) -> Result<Self, String> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::from([("memory", 0)]);
        for (node, kinds) in &config.reserved {
            let Some(of_node) = machine.numa_nodes.get(node) else {
                return Err(format!("the reserved memory names NUMA node {node}, which the machine does not have"));
            };
            for (kind, bytes) in kinds {
                let has = match kind.strip_prefix("hugepages-") {
                    None => of_node.memory_bytes,
                    Some(size) => of_node.hugepages.get(size).copied().unwrap_or(0),
                };
                if *bytes > has {
                    return Err(format!("NUMA node {node} has {has} bytes of {kind}, and {bytes} are to be reserved"));
                }
                let sum = sums.entry(kind).or_default();
                *sum = sum.saturating_add(*bytes);
            }
        }
        if sums["memory"] != reserved_bytes {
            let sum = sums["memory"];
            return Err(format!(
                "the total amount \"{sum}\" of type \"memory\" is not equal to the value \"{reserved_bytes}\" determined by Node Allocatable feature"
            ));
        }
        let numa = Numa::of(&machine);
        Ok(Self { config, machine, numa, assigned: Assignments::new(), asked: RequestCounts::default() })
    }

    /// The nodes that a container's memory is of; `None`: any.
    pub(crate) fn nodes_of(&self, uid: &str, container: &str) -> Option<NumaNodes> {
        let blocks = self.assigned.get(uid)?.get(container)?;
        let nodes: NumaNodes = blocks.iter().flat_map(|it| &it.numa_affinity).copied().collect();
        (!nodes.is_empty()).then_some(nodes)
    }

    /// The uids of pods that have memory of certain nodes.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &String> {
        self.assigned.keys()
    }

    /// The machine, of which nothing is given.
    fn untouched(&self) -> MachineState {
        let node = |(id, node): (&u32, &crate::NumaNode)| {
            let kept = |kind: &str| self.config.reserved.get(id).and_then(|it| it.get(kind)).copied().unwrap_or(0);
            let pages: u64 = node.hugepages.values().copied().fold(0, u64::saturating_add);
            let table = |kind: &str, total: u64, has: u64| {
                let allocatable = has.saturating_sub(kept(kind));
                (
                    kind.to_owned(),
                    Table { total, system_reserved: kept(kind), allocatable, reserved: 0, free: allocatable },
                )
            };
            let sizes = node.hugepages.iter().map(|(size, bytes)| table(&format!("hugepages-{size}"), *bytes, *bytes));
            let memory = table("memory", node.memory_bytes, node.memory_bytes.saturating_sub(pages));
            let memory_map = sizes.chain([memory]).collect();
            (*id, NodeState { number_of_assignments: 0, memory_map, cells: vec![*id] })
        };
        self.machine.numa_nodes.iter().map(node).collect()
    }

    /// The machine with all that is given: nodes of a group give in the order of their numbers.
    fn state_of(&self, assigned: &Assignments) -> Result<MachineState, String> {
        let mut state = self.untouched();
        for (uid, containers) in assigned {
            for (name, blocks) in containers {
                for block in blocks {
                    place(&mut state, block)
                        .map_err(|it| format!("[memorymanager] (pod: {uid}, container: {name}) the memory assignment uses {it} that does not exist"))?;
                }
            }
        }
        Ok(state)
    }

    fn machine_state(&self) -> MachineState {
        self.state_of(&self.assigned).unwrap_or_default()
    }

    /// What the init containers of the pod have had of these nodes: they end before what comes after them begins.
    fn reusable(&self, pod: &Pod, nodes: NumaNodes, kind: &str) -> u64 {
        let Some(assigned) = self.assigned.get(uid_of(pod)) else { return 0 };
        let passed = all_containers(pod).filter(|it| is_init(pod, &it.name) && !is_sidecar(it));
        let blocks = passed.filter_map(|it| assigned.get(&it.name)).flatten();
        blocks.filter(|it| it.kind == kind && it.nodes() == nodes).map(|it| it.size).fold(0, u64::saturating_add)
    }

    /// Takes from the pod's init containers what another container of it is given: the sum stays what the pod has.
    fn reuse(&mut self, pod: &Pod, block: &Block) {
        let Some(assigned) = self.assigned.get_mut(uid_of(pod)) else { return };
        let mut left = block.size;
        for container in all_containers(pod).filter(|it| is_init(pod, &it.name) && !is_sidecar(it)) {
            for had in assigned.get_mut(&container.name).into_iter().flatten() {
                if had.kind == block.kind && had.numa_affinity == block.numa_affinity {
                    let taken = left.min(had.size);
                    had.size -= taken;
                    left -= taken;
                }
            }
        }
    }

    /// As `calculateHints`: the sets of nodes that have all of it, of each kind the same ones.
    fn sets_for(&self, pod: &Pod, state: &MachineState, wanted: &Needed) -> Vec<TopologyHint> {
        let sum = |nodes: NumaNodes, kind: &str, of: fn(&Table) -> u64| {
            let tables = nodes.iter().filter_map(|it| state.get(&it)?.memory_map.get(kind));
            tables.map(of).fold(0, u64::saturating_add)
        };
        let could =
            |nodes: &NumaNodes| wanted.iter().all(|(kind, size)| sum(*nodes, kind, |it| it.allocatable) >= *size);
        let can = |nodes: NumaNodes| {
            wanted.iter().all(|(kind, size)| {
                sum(nodes, kind, |it| it.free).saturating_add(self.reusable(pod, nodes, kind)) >= *size
            })
        };
        let large: Vec<NumaNodes> = self.numa.sets().into_iter().filter(could).collect();
        let fewest = large.iter().map(|it| it.len()).min().unwrap_or(self.numa.nodes.len());
        let fits = |nodes: &NumaNodes| !violates(state, *nodes) && can(*nodes);
        let hint = |nodes: NumaNodes| TopologyHint { nodes: Some(nodes), is_preferred: nodes.len() == fewest };
        large.into_iter().filter(fits).map(hint).collect()
    }

    fn hints_for(&self, pod: &Pod, wanted: &Needed) -> Hints {
        let sets = self.sets_for(pod, &self.machine_state(), wanted);
        wanted.keys().map(|it| (it.clone(), Some(sets.clone()))).collect()
    }

    /// The nodes that give what is wanted: those of the hint, or more where they do not have it.
    fn find(&self, pod: &Pod, wanted: &Needed, hint: TopologyHint) -> Result<NumaNodes, &'static str> {
        let state = self.machine_state();
        let sets = self.sets_for(pod, &state, wanted);
        let best = |within: NumaNodes| {
            let holds = |it: &&TopologyHint| it.nodes.is_some_and(|it| it.and(within) == within);
            sets.iter()
                .filter(holds)
                .min_by_key(|it| (!it.is_preferred, it.nodes.map(NumaNodes::len), it.nodes))
                .copied()
        };
        let mut chosen = hint;
        if chosen.nodes.is_none() {
            chosen = best(NumaNodes::default()).ok_or(
                "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
            )?;
            if !chosen.is_preferred && hint.is_preferred {
                return Err("[memorymanager] failed to find the default preferred hint");
            }
        }
        let nodes = chosen.nodes.unwrap_or_default();
        if !sets.iter().any(|it| it.nodes == Some(nodes)) {
            let wider =
                best(nodes).ok_or("[memorymanager] failed to find NUMA nodes to extend the current topology hint")?;
            if !wider.is_preferred && chosen.is_preferred {
                return Err("[memorymanager] failed to find the extended preferred hint");
            }
            chosen = wider;
        }
        let nodes = chosen.nodes.unwrap_or_default();
        if violates(&state, nodes) {
            return Err("[memorymanager] preferred hint violates NUMA node allocation");
        }
        Ok(nodes)
    }
}

/// A node gives alone or in one group, never both.
fn violates(state: &MachineState, nodes: NumaNodes) -> bool {
    let is_single = nodes.len() == 1;
    let mut of_nodes = nodes.iter().filter_map(|it| state.get(&it));
    of_nodes.any(|it| if is_single { it.cells.len() > 1 } else { it.number_of_assignments > 0 && it.group() != nodes })
}

fn place(state: &mut MachineState, block: &Block) -> Result<(), &'static str> {
    let mut left = block.size;
    for id in &block.numa_affinity {
        let node = state.get_mut(id).ok_or("the NUMA")?;
        node.number_of_assignments += 1;
        node.cells.clone_from(&block.numa_affinity);
        let table = node.memory_map.get_mut(&block.kind).ok_or("memory resource")?;
        let taken = left.min(table.free);
        table.reserved += taken;
        table.free -= taken;
        left -= taken;
    }
    Ok(())
}

/// Pods that are not Guaranteed, or ask for resources as a whole, are given nothing (`Allocate` of the memory manager's static policy).
fn is_given(pod: &Pod) -> bool {
    qos(pod) == Qos::Guaranteed && spec_of(pod).resources.is_none()
}

fn wanted_by(pod: &Pod, container: &Container) -> Needed {
    if !is_given(pod) {
        return Needed::new();
    }
    let lists = container.resources.iter().flat_map(|it| [&it.requests, &it.limits]).flatten();
    let names = lists.flat_map(BTreeMap::keys).filter(|it| *it == "memory" || it.starts_with("hugepages-"));
    let size = |name: &String| {
        let size = quantity(container, false, name).map_or(0, |it| amount(name, it));
        (name.clone(), u64::try_from(size).unwrap_or(0))
    };
    names.map(size).collect()
}

fn wanted_by_pod(pod: &Pod) -> Needed {
    let spec = spec_of(pod);
    let plus = |sum: &Needed, more: Needed| {
        let mut sum = sum.clone();
        for (kind, size) in more {
            let it = sum.entry(kind).or_default();
            *it = it.saturating_add(size);
        }
        sum
    };
    let (mut sidecars, mut most) = (Needed::new(), Needed::new());
    let note = |most: &mut Needed, now: &Needed| {
        for (kind, size) in now {
            let it = most.entry(kind.clone()).or_default();
            *it = (*it).max(*size);
        }
    };
    for container in spec.init_containers.iter().flatten() {
        let now = plus(&sidecars, wanted_by(pod, container));
        note(&mut most, &now);
        if is_sidecar(container) {
            sidecars = now;
        }
    }
    let all = spec.containers.iter().fold(sidecars, |sum, it| plus(&sum, wanted_by(pod, it)));
    note(&mut most, &all);
    most
}

impl HintProvider for MemoryManager {
    fn hints(&self, pod: &Pod, container: &Container) -> Hints {
        let wanted = wanted_by(pod, container);
        match self.assigned.get(uid_of(pod)).and_then(|it| it.get(&container.name)) {
            None if wanted.is_empty() => Hints::new(),
            None => self.hints_for(pod, &wanted),
            Some(blocks) => had(blocks, &wanted),
        }
    }

    fn pod_hints(&self, pod: &Pod) -> Hints {
        let wanted = wanted_by_pod(pod);
        match self.assigned.get(uid_of(pod)).and_then(|it| it.values().next()) {
            None if wanted.is_empty() => Hints::new(),
            None => self.hints_for(pod, &wanted),
            Some(blocks) => had(blocks, &wanted),
        }
    }

    fn allocate(&mut self, pod: &Pod, container: &Container, affinity: TopologyHint) -> Result<(), Rejection> {
        let wanted = wanted_by(pod, container);
        let is_there = self.assigned.get(uid_of(pod)).is_some_and(|it| it.contains_key(&container.name));
        if wanted.is_empty() || is_there {
            return Ok(());
        }
        let nodes = self.find(pod, &wanted, affinity).map_err(Rejection::unexpected);
        self.asked.note(&nodes);
        let nodes = nodes?;
        let numa_affinity: Vec<u32> = nodes.iter().collect();
        let block = |(kind, size)| Block { numa_affinity: numa_affinity.clone(), kind, size };
        let blocks: Vec<Block> = wanted.into_iter().map(block).collect();
        blocks.iter().for_each(|it| self.reuse(pod, it));
        self.assigned.entry(uid_of(pod).to_owned()).or_default().insert(container.name.clone(), blocks);
        Ok(())
    }

    fn release(&mut self, uid: &str) {
        self.assigned.remove(uid);
    }
}

/// As `regenerateHints`: what was given is where it is.
fn had(blocks: &[Block], wanted: &Needed) -> Hints {
    if blocks.len() != wanted.len() || blocks.iter().any(|it| wanted.get(&it.kind) != Some(&it.size)) {
        return Hints::new();
    }
    let hint = |it: &Block| vec![TopologyHint { nodes: Some(it.nodes()), is_preferred: true }];
    blocks.iter().map(|it| (it.kind.clone(), Some(hint(it)))).collect()
}

#[cfg(test)]
mod tests;
