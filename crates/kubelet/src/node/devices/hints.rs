//! On which NUMA nodes a container can have its devices, as the device manager tells upstream's topology manager (KEP-693).
//!
//! Which ones it gets is decided when its plugin is asked: until then the nodes are kept that were chosen.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::core::v1::{Container, Pod};

use super::{Devices, healthy, in_order};
use crate::{
    DeviceResource, NumaNodes,
    node::{
        admission::Rejection,
        topology::{HintProvider, Hints, Numa, TopologyHint},
    },
    spec::pod::uid_of,
};

/// The devices of the node, for whoever decides what lies together.
pub(crate) struct DeviceHints<'a> {
    pub(crate) devices: &'a mut Devices,
    pub(crate) numa: &'a Numa,
}

impl DeviceHints<'_> {
    /// What init containers of the pod have that run before the container.
    fn reusable(&self, pod: &Pod, container: &Container, resource: &str) -> BTreeSet<String> {
        let mut reusable = BTreeSet::new();
        for (before, is_reused) in in_order(pod).take_while(|(it, _)| it.name != container.name) {
            let given = self.devices.of_container(uid_of(pod), &before.name).filter(|it| it.resource == resource);
            for id in given.flat_map(|it| &it.ids) {
                if is_reused {
                    reusable.insert(id.clone());
                } else {
                    reusable.remove(id);
                }
            }
        }
        reusable
    }

    /// `generateDeviceTopologyHints`: every set of nodes with as many devices, all that is used again among them.
    fn sets(
        &self,
        known: &DeviceResource,
        free: &BTreeSet<String>,
        again: &BTreeSet<String>,
        count: usize,
    ) -> Vec<TopologyHint> {
        let sets = self.numa.sets();
        let is_enough = |it: &&NumaNodes| n_within(known, known.devices.keys(), **it) >= count;
        let fewest = sets.iter().filter(is_enough).map(|it| it.len()).min();
        let misses = |id: &String, set: NumaNodes| {
            let nodes = nodes_of(known, id);
            !nodes.is_empty() && nodes.and(set).is_empty()
        };
        let fits = |set: &NumaNodes| {
            !again.iter().any(|it| misses(it, *set)) && n_within(known, free.union(again), *set) >= count
        };
        let hint = |it: NumaNodes| TopologyHint { nodes: Some(it), is_preferred: Some(it.len()) == fewest };
        sets.into_iter().filter(fits).map(hint).collect()
    }

    /// `None`: it does not matter where.
    fn of_resource(
        &self,
        resource: &str,
        given: Option<&[String]>,
        again: &BTreeSet<String>,
        count: usize,
    ) -> Option<Vec<TopologyHint>> {
        let known = self.devices.resources.get(resource)?;
        if known.devices.values().all(|it| it.numa_nodes.is_empty()) {
            return None;
        }
        if let Some(given) = given {
            let given: BTreeSet<String> = given.iter().cloned().collect();
            let is_all = given.len() == count;
            return Some(if is_all { self.sets(known, &given, &BTreeSet::new(), count) } else { Vec::new() });
        }
        let used = self.devices.used(resource);
        let free: BTreeSet<String> = healthy(known).filter(|it| !used.contains(it)).map(str::to_owned).collect();
        let is_enough = free.union(again).count() >= count;
        Some(if is_enough { self.sets(known, &free, again, count) } else { Vec::new() })
    }
}

impl HintProvider for DeviceHints<'_> {
    fn hints(&self, pod: &Pod, container: &Container) -> Hints {
        let of_one = |(resource, count): (&str, usize)| {
            let given = self.devices.of_container(uid_of(pod), &container.name).find(|it| it.resource == resource);
            let again = self.reusable(pod, container, resource);
            (resource.to_owned(), self.of_resource(resource, given.map(|it| &*it.ids), &again, count))
        };
        self.devices.wanted(container).map(of_one).collect()
    }

    fn pod_hints(&self, pod: &Pod) -> Hints {
        // What stands at a time, and the most there ever is.
        let mut wanted: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (container, is_reused) in in_order(pod) {
            for (resource, count) in self.devices.wanted(container) {
                let (standing, most) = wanted.entry(resource).or_default();
                let with = standing.saturating_add(count);
                *most = with.max(*most);
                if !is_reused {
                    *standing = with;
                }
            }
        }
        let of_one = |(resource, (_, count)): (&str, (usize, usize))| {
            let own = self.devices.allocated.get(uid_of(pod)).into_iter().flatten();
            let own: BTreeSet<String> =
                own.filter(|it| it.resource == resource).flat_map(|it| it.ids.clone()).collect();
            (resource.to_owned(), self.of_resource(resource, None, &own, count))
        };
        wanted.into_iter().map(of_one).collect()
    }

    fn allocate(&mut self, pod: &Pod, container: &Container, affinity: TopologyHint) -> Result<(), Rejection> {
        if let Some(nodes) = affinity.nodes.filter(|_| self.devices.wanted(container).next().is_some()) {
            let of_pod = self.devices.affinities.entry(uid_of(pod).to_owned()).or_default();
            of_pod.entry(container.name.clone()).or_insert(nodes);
        }
        Ok(())
    }

    fn release(&mut self, uid: &str) {
        self.devices.affinities.remove(uid);
    }
}

fn nodes_of(known: &DeviceResource, id: &str) -> NumaNodes {
    let numbers = known.devices.get(id).into_iter().flat_map(|it| &it.numa_nodes);
    numbers.filter_map(|it| u32::try_from(*it).ok()).collect()
}

fn n_within<'a>(known: &DeviceResource, ids: impl Iterator<Item = &'a String>, set: NumaNodes) -> usize {
    ids.filter(|it| !nodes_of(known, it).and(set).is_empty()).count()
}

/// `filterByAffinity`: those on the nodes; how many those are, then those on others, then those of nowhere.
pub(super) fn by_affinity<'a>(free: &[&'a str], known: &DeviceResource, chosen: NumaNodes) -> (usize, Vec<&'a str>) {
    let rank = |id: &&str| {
        let nodes = nodes_of(known, id);
        (nodes.and(chosen).is_empty(), nodes.is_empty())
    };
    let mut all = free.to_vec();
    all.sort_by_key(rank);
    (all.iter().filter(|it| !rank(it).0).count(), all)
}
