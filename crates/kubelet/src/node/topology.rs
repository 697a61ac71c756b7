//! On which NUMA nodes a container has its CPUs, memory and devices: whoever hands something out gives hints, and what goes
//! best together is chosen, as upstream's topology manager has it (KEP-693).
//!
//! To hand something out by NUMA nodes, implement [`HintProvider`].

mod merge;

use std::collections::{BTreeMap, BTreeSet};

use corten_api::core::v1::{Container, Pod};

use crate::{
    MachineTopology, NumaNodes, TopologyConfig, TopologyPolicy, TopologyScope,
    node::admission::Rejection,
    spec::pod::{all_containers, uid_of},
};

/// NUMA nodes that something can be had from. `None`: wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopologyHint {
    pub(crate) nodes: Option<NumaNodes>,
    /// On no fewer nodes can there be as much.
    pub(crate) is_preferred: bool,
}

/// What one provider can do, by resource. `None`: it does not matter where; an empty list: it cannot at all.
pub(crate) type Hints = BTreeMap<String, Option<Vec<TopologyHint>>>;

/// Somebody who hands out what belongs to NUMA nodes.
pub(crate) trait HintProvider {
    /// Where the container can have what it asks for. Nothing where it asks for nothing.
    fn hints(&self, pod: &Pod, container: &Container) -> Hints;

    /// Where all containers of the pod together can.
    fn pod_hints(&self, pod: &Pod) -> Hints;

    /// Gives the container what it asks for, where `affinity` says if that can be. Given twice is given once.
    fn allocate(&mut self, pod: &Pod, container: &Container, affinity: TopologyHint) -> Result<(), Rejection>;

    /// Takes back all that the pod has, as if it had never been given.
    fn release(&mut self, uid: &str);
}

/// Decides where the containers of a pod have what they ask for, and has it given. Where one cannot have it, none has.
pub(crate) fn admit(
    config: &TopologyConfig,
    numa: &Numa,
    pod: &Pod,
    providers: &mut [&mut dyn HintProvider],
) -> Result<(), Rejection> {
    let given = allocate_all(config, numa, pod, providers);
    if given.is_err() {
        providers.iter_mut().for_each(|it| it.release(uid_of(pod)));
    }
    given
}

fn allocate_all(
    config: &TopologyConfig,
    numa: &Numa,
    pod: &Pod,
    providers: &mut [&mut dyn HintProvider],
) -> Result<(), Rejection> {
    let of_pod = match config.scope {
        TopologyScope::Pod if config.policy != TopologyPolicy::None => {
            Some(best(config, numa, providers.iter().map(|it| it.pod_hints(pod)))?)
        }
        _ => None,
    };
    for container in all_containers(pod) {
        let affinity = match of_pod {
            Some(it) => it,
            None if config.policy == TopologyPolicy::None => TopologyHint { nodes: None, is_preferred: false },
            None => best(config, numa, providers.iter().map(|it| it.hints(pod, container)))?,
        };
        for provider in providers.iter_mut() {
            provider.allocate(pod, container, affinity)?;
        }
    }
    Ok(())
}

/// The best of what all providers say, if the policy takes it.
fn best(config: &TopologyConfig, numa: &Numa, hints: impl Iterator<Item = Hints>) -> Result<TopologyHint, Rejection> {
    let (hint, is_taken) = merge::merge(config, numa, hints.collect());
    if is_taken {
        return Ok(hint);
    }
    let message = "Resources cannot be allocated with Topology locality".into();
    Err(Rejection { reason: "TopologyAffinityError", message })
}

/// The NUMA nodes of the machine, and how far they are from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numa {
    pub(crate) nodes: NumaNodes,
    /// From each node to each, in the kernel's numbers, where it tells them.
    pub(crate) distances: BTreeMap<u32, BTreeMap<u32, u32>>,
}

impl Numa {
    pub(crate) fn of(machine: &MachineTopology) -> Self {
        let distances = machine.numa_nodes.iter().map(|(node, it)| (*node, it.distances.clone())).collect();
        Self { nodes: machine.nodes(), distances }
    }

    /// Of each pair of these nodes, sum and number of what the kernel says: averages are compared without rounding.
    fn distance(&self, nodes: NumaNodes) -> (u64, u64) {
        let to = |from: u32| nodes.iter().map(move |it| (from, it));
        let known = nodes.iter().flat_map(to).filter_map(|(from, to)| self.distances.get(&from)?.get(&to));
        known.fold((0, 0), |(sum, n), it| (sum + u64::from(*it), n + 1))
    }

    /// All sets of nodes there are, the smallest first: 2ⁿ of them, so only so many nodes are allowed.
    pub(crate) fn sets(&self) -> Vec<NumaNodes> {
        let mut sets: BTreeSet<NumaNodes> = BTreeSet::from([NumaNodes::default()]);
        for node in self.nodes.iter() {
            let with: Vec<_> = sets.iter().map(|it| it.with(node)).collect();
            sets.extend(with);
        }
        let mut sets: Vec<_> = sets.into_iter().filter(|it| !it.is_empty()).collect();
        sets.sort_by_key(|it| (it.len(), *it));
        sets
    }
}
