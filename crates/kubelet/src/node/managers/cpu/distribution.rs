//! Which CPUs are taken where what one NUMA node cannot give is to be spread evenly over as few as can
//! (`takeByTopologyNUMADistributed`).

use std::{cmp::Reverse, collections::BTreeMap};

use super::assignment::{by_numa_node, take_packed};
use crate::{CpuConfig, CpuSet, MachineTopology};

/// The number of ways to choose among nodes doubles with each: with more than these nothing is spread.
const NODES_MAX: usize = 8;

/// How many CPUs are left on each NUMA node.
type Left = BTreeMap<u32, usize>;

/// A way to spread.
struct Distribution {
    nodes: Vec<u32>,
    /// Those that give what an even share leaves over, a group each in turn.
    rest_of: Vec<u32>,
    /// The less the more evenly what is left lies on all nodes.
    unevenness: usize,
}

/// `group`: so many CPUs go together, as those of one core.
pub(super) fn take_spread(
    machine: &MachineTopology,
    config: &CpuConfig,
    free: &CpuSet,
    wanted: usize,
    group: usize,
) -> Result<CpuSet, String> {
    let nodes = by_numa_node(machine, free);
    let is_spread = wanted > 0 && wanted <= free.len() && wanted.is_multiple_of(group) && nodes.len() <= NODES_MAX;
    let counts: Vec<(u32, usize)> = nodes.iter().map(|(node, cpus)| (*node, cpus.len())).collect();
    let way = is_spread.then(|| best_way(machine, &counts, wanted, group)).flatten();
    let Some(way) = way else { return take_packed(machine, config, free, wanted) };
    let mut taken = CpuSet::default();
    let mut take = |node: u32, wanted: usize| -> Result<usize, String> {
        let there = nodes.iter().find(|it| it.0 == node).map(|it| it.1.difference(&taken)).unwrap_or_default();
        if there.len() < wanted {
            return Ok(0);
        }
        taken = taken.union(&take_packed(machine, config, &there, wanted)?);
        Ok(wanted)
    };
    let share = share(wanted, way.nodes.len(), group);
    for node in &way.nodes {
        take(*node, share)?;
    }
    let mut rest = wanted - share * way.nodes.len();
    while rest > 0 {
        let before = rest;
        for node in &way.rest_of {
            if rest > 0 {
                rest -= take(*node, group)?;
            }
        }
        if rest == before {
            return Err(format!("accounting error, not enough CPUs allocated, remaining: {rest}"));
        }
    }
    Ok(taken)
}

/// What each of so many nodes gives, in whole groups.
fn share(wanted: usize, n_nodes: usize, group: usize) -> usize {
    wanted / n_nodes / group * group
}

/// Of the fewest nodes that can the ones after which what is left lies most evenly.
fn best_way(machine: &MachineTopology, free: &[(u32, usize)], wanted: usize, group: usize) -> Option<Distribution> {
    let groups = machine.cpus.len().div_ceil(group);
    let groups_per_node = groups.div_ceil(machine.numa_nodes.len().max(1)).max(1);
    let groups_wanted = wanted.div_ceil(group);
    let (least, most) = (groups_wanted.div_ceil(groups_per_node), groups_wanted.min(free.len()));
    (least..=most).find_map(|n_nodes| {
        let ways = subsets(free, n_nodes).filter_map(|nodes| way_over(&nodes, free, wanted, group));
        // Of equals the first.
        ways.min_by_key(|it| it.unevenness)
    })
}

fn way_over(nodes: &[(u32, usize)], free: &[(u32, usize)], wanted: usize, group: usize) -> Option<Distribution> {
    let share = share(wanted, nodes.len(), group);
    let in_groups: usize = nodes.iter().map(|it| it.1 / group * group).sum();
    if in_groups < wanted || nodes.iter().any(|it| it.1 < share) {
        return None;
    }
    let numbers: Vec<u32> = nodes.iter().map(|it| it.0).collect();
    let mut left: Left = free.iter().copied().collect();
    for (node, there) in nodes {
        left.insert(*node, there - share);
    }
    let rest = wanted - share * nodes.len();
    if rest == 0 {
        return Some(Distribution { nodes: numbers, rest_of: Vec::new(), unevenness: unevenness(&left) });
    }
    let givers: Vec<(u32, usize)> = nodes.iter().map(|it| (it.0, left[&it.0])).filter(|it| it.1 >= group).collect();
    let after = |of: Vec<(u32, usize)>| {
        let of: Vec<u32> = of.into_iter().map(|it| it.0).collect();
        let left = without_rest(left.clone(), &of, rest, group)?;
        Some(Distribution { nodes: numbers.clone(), rest_of: of, unevenness: unevenness(&left) })
    };
    // Over as many as can: of equals the first.
    let mut sizes: Vec<usize> = (1..=givers.len()).collect();
    sizes.sort_by_key(|it| Reverse(*it));
    sizes
        .into_iter()
        .flat_map(|n| subsets(&givers, n).filter_map(after).collect::<Vec<_>>())
        .min_by_key(|it| it.unevenness)
}

/// What is left where these give a group each in turn; `None`: they cannot.
fn without_rest(mut left: Left, of: &[u32], mut rest: usize, group: usize) -> Option<Left> {
    while rest > 0 {
        let before = rest;
        for node in of {
            let there = left.get_mut(node)?;
            if rest > 0 && *there >= group {
                *there -= group;
                rest -= group;
            }
        }
        if rest == before {
            return None;
        }
    }
    Some(left)
}

/// Upstream's is the standard deviation. The sum is the same whichever way is gone: squares say which is less.
fn unevenness(left: &Left) -> usize {
    left.values().map(|it| it.saturating_mul(*it)).sum()
}

/// All ways to choose so many, in the order in which they stand.
fn subsets<T: Copy>(all: &[T], n: usize) -> impl Iterator<Item = Vec<T>> {
    let mut found: Vec<Vec<T>> = (0_u32..1 << all.len())
        .filter(|it| it.count_ones() as usize == n)
        // The highest bit is the first of them: greater numbers choose earlier ones.
        .rev()
        .map(|chosen| {
            let is_chosen = |at: usize| chosen >> (all.len() - 1 - at) & 1 == 1;
            all.iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|it| *it.1).collect()
        })
        .collect();
    found.retain(|it| !it.is_empty());
    found.into_iter()
}
