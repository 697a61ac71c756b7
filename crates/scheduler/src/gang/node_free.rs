//! What the nodes would have for a gang if all pods of lower priority left them: where even that is too little, no search of the
//! nodes is needed to know it.

use std::collections::BTreeSet;

use corten_meta::Key;

use super::Gang;
use crate::{PLUGINS, PodInfo, Profile, Scheduler, requests::Amounts, snapshot::Row};

/// The resources that are looked at. Of others, a claim for devices may stand for some.
const N_RESOURCES: usize = 3;

/// Of cpu, of memory and of ephemeral storage.
type ResourceAmounts = [i64; N_RESOURCES];

/// What one node would have free.
struct NodeFree {
    amounts: ResourceAmounts,
    n_pods: usize,
}

impl Scheduler {
    /// Is it certain that too few of the gang would fit if all pods of lower priority left? Nothing but what they ask for is looked at,
    /// and each node once.
    pub(super) fn is_gang_too_large(&self, gang: &Gang, priority: i32, profile: &Profile) -> bool {
        if !profile.filters.iter().any(|it| PLUGINS[*it].name == "NodeResourcesFit") {
            return false;
        }
        let n_wanted = gang.min_count.saturating_sub(gang.n_before);
        let nodes: Vec<NodeFree> =
            self.snapshot.nodes().map(|it| self.free_without(&it, priority, &gang.group)).collect();
        let requests: Vec<ResourceAmounts> = gang.waiting.iter().map(|it| of(&self.pods[it].info.requested)).collect();
        let kinds: BTreeSet<&ResourceAmounts> = requests.iter().collect();
        let fitting: BTreeSet<&ResourceAmounts> =
            kinds.into_iter().filter(|it| nodes.iter().any(|node| node.takes(it))).collect();
        let requests: Vec<ResourceAmounts> = requests.iter().filter(|it| fitting.contains(it)).copied().collect();
        requests.len() < n_wanted || n_places(&nodes, &requests) < n_wanted || is_short(&nodes, &requests, n_wanted)
    }

    fn free_without(&self, row: &Row<'_>, priority: i32, group: &Key) -> NodeFree {
        let groups = &self.snapshot.pod_groups;
        let leaves = |it: &PodInfo| groups.priority_of(it) < priority && it.group.as_ref() != Some(group);
        let (mut amounts, mut n_pods) = (of(row.allocatable), row.pods_max);
        for pod in row.pods.values().filter(|it| !leaves(it)) {
            let taken = of(&pod.requested);
            amounts.iter_mut().zip(taken).for_each(|(left, taken)| *left = left.saturating_sub(taken));
            n_pods = n_pods.saturating_sub(1);
        }
        NodeFree { amounts, n_pods }
    }
}

impl NodeFree {
    /// A pod that asks for nothing fits where all is taken.
    fn takes(&self, request: &ResourceAmounts) -> bool {
        self.n_pods > 0 && request.iter().zip(self.amounts).all(|(request, left)| *request <= 0 || *request <= left)
    }
}

/// How many that ask for as little as the smallest of these fit on all nodes: as many as each node has room for by itself.
fn n_places(nodes: &[NodeFree], requests: &[ResourceAmounts]) -> usize {
    let smallest = |at: usize| requests.iter().map(|it| it[at]).min().unwrap_or(0);
    let smallest: ResourceAmounts = std::array::from_fn(smallest);
    let places = nodes.iter().map(|node| {
        let requested = smallest.iter().zip(node.amounts).filter(|it| *it.0 > 0);
        let fitting = requested.map(|(request, left)| usize::try_from(left.max(0) / request).unwrap_or(usize::MAX));
        fitting.min().unwrap_or(usize::MAX).min(node.n_pods)
    });
    places.fold(0, usize::saturating_add)
}

/// Is there less of some resource on all nodes together than as many of these ask for as are wanted, be it those that ask for the least?
fn is_short(nodes: &[NodeFree], requests: &[ResourceAmounts], n_wanted: usize) -> bool {
    (0..N_RESOURCES).any(|at| {
        let left: i128 = nodes.iter().map(|it| i128::from(it.amounts[at].max(0))).sum();
        let mut asked: Vec<i64> = requests.iter().map(|it| it[at].max(0)).collect();
        asked.sort_unstable();
        asked.iter().take(n_wanted).map(|it| i128::from(*it)).sum::<i128>() > left
    })
}

fn of(amounts: &Amounts) -> ResourceAmounts {
    [amounts.cpu_millis, amounts.memory_bytes, amounts.ephemeral_storage_bytes]
}
