//! What is known of the nodes, in columns: a field each, a row per node. Deltas update it; it is never rebuilt.
//!
//! A pod may be known on a node before the node is. Its row then exists, but is not `known` and no pod is placed there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_allocator::ResourceClasses;
use corten_meta::Key;

use crate::{
    Node,
    devices::{DeviceNode, Devices},
    groupings::Groupings,
    images::ImageStates,
    namespaces::NamespaceLabels,
    observer::Change,
    pod_groups::PodGroups,
    pod_info::{HostPort, PodInfo},
    projections::Taint,
    requests::Amounts,
    storage::{PodVolumes, Storage},
    topology_pod_counts::TopologyPodCounts,
};

/// See the module's documentation.
#[derive(Default)]
pub struct Snapshot {
    idx_of: BTreeMap<String, usize>,
    names: Vec<String>,
    /// What a row is as long as it does not change. No two are alike.
    versions: Vec<u64>,
    n_changes: u64,
    known: Vec<bool>,
    labels: Vec<BTreeMap<String, String>>,
    unschedulable: Vec<bool>,
    taints: Vec<Vec<Taint>>,
    /// What the nodes declare that they can do.
    features: Vec<Vec<String>>,
    allocatable: Vec<Amounts>,
    pods_max: Vec<usize>,
    requested: Vec<Amounts>,
    guessed: Vec<Amounts>,
    pods: Vec<BTreeMap<Key, Arc<PodInfo>>>,
    ports: Vec<BTreeMap<HostPort, usize>>,
    /// How many pods of each priority there are.
    priorities: Vec<BTreeMap<i32, usize>>,
    /// The pods that are nominated to the node: they wait for room there, which is theirs.
    nominated: Vec<BTreeMap<Key, Arc<PodInfo>>>,
    n_nominations: usize,
    /// The number of pods that keep others away from themselves: on each node, and on all.
    repelling: Vec<usize>,
    /// The number of pods that draw others to themselves or prefer to keep them away: on each node, and on all.
    with_affinity: Vec<usize>,
    n_with_affinity: usize,
    /// The names of the images that a node has.
    image_names: Vec<BTreeSet<String>>,
    n_known: usize,
    n_repelling: usize,
    /// The terms of all pods that repel.
    n_repelling_terms: usize,
    n_pods: usize,
    pub(crate) storage: Storage,
    pub(crate) devices: Devices,
    pub(crate) namespaces: NamespaceLabels,
    pub(crate) images: ImageStates,
    pub(crate) groupings: Groupings,
    pub(crate) pod_groups: PodGroups,
    pub(crate) topology_pod_counts: TopologyPodCounts,
    /// How many placed pods use a claim.
    claim_users: BTreeMap<Key, usize>,
}

/// One node as the plugins see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) known: bool,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) unschedulable: bool,
    pub(crate) taints: &'a [Taint],
    pub(crate) features: &'a [String],
    pub(crate) allocatable: &'a Amounts,
    pub(crate) pods_max: usize,
    pub(crate) requested: &'a Amounts,
    pub(crate) guessed: &'a Amounts,
    pub(crate) n_pods: usize,
    pub(crate) pods: &'a BTreeMap<Key, Arc<PodInfo>>,
    pub(crate) ports: &'a BTreeMap<HostPort, usize>,
    pub(crate) nominated: &'a BTreeMap<Key, Arc<PodInfo>>,
    pub(crate) has_repelling_pods: bool,
    pub(crate) has_pods_with_affinity: bool,
    /// Of all nodes.
    pub(crate) classes: &'a ResourceClasses,
}

/// How much a node has of one resource, and how much of that its pods use without and with one more.
pub(crate) struct ResourceUse {
    pub(crate) total: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl<'a> Row<'a> {
    /// How a pod would change the node's use of a resource (`calculateResourceAllocatableRequest`). Nothing where the node has
    /// none; nor of an extended resource that the pod does not ask for.
    pub(crate) fn use_of(&self, resource: &str, pod: &PodInfo, own: &Amounts, used: &Amounts) -> Option<ResourceUse> {
        let (total, wanted, used) = match resource {
            "cpu" => (self.allocatable.cpu_millis, own.cpu_millis, used.cpu_millis),
            "memory" => (self.allocatable.memory_bytes, own.memory_bytes, used.memory_bytes),
            // Only for cpu and memory is there a guess.
            _ => {
                let of = |it: &Amounts| it.of_resource(resource);
                (of(self.allocatable), of(&pod.requested), of(self.requested))
            }
        };
        let is_named = || !matches!(resource, "cpu" | "memory" | "ephemeral-storage");
        if total <= 0 || (wanted == 0 && is_named()) {
            return None;
        }
        Some(ResourceUse { total, before: used, after: used.saturating_add(wanted) })
    }

    pub(crate) fn for_devices(&self) -> DeviceNode<'a> {
        DeviceNode { name: self.name, labels: self.labels, allocatable: self.allocatable }
    }
}

impl Snapshot {
    /// The number of nodes that are known.
    pub fn n_nodes(&self) -> usize {
        self.n_known
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn row_at(&self, idx: usize) -> Row<'_> {
        Row {
            name: &self.names[idx],
            known: self.known[idx],
            labels: &self.labels[idx],
            unschedulable: self.unschedulable[idx],
            taints: &self.taints[idx],
            features: &self.features[idx],
            allocatable: &self.allocatable[idx],
            pods_max: self.pods_max[idx],
            requested: &self.requested[idx],
            guessed: &self.guessed[idx],
            n_pods: self.pods[idx].len(),
            pods: &self.pods[idx],
            ports: &self.ports[idx],
            nominated: &self.nominated[idx],
            has_repelling_pods: self.repelling[idx] > 0,
            has_pods_with_affinity: self.with_affinity[idx] > 0,
            classes: &self.devices.classes,
        }
    }

    /// Which state of which row this is.
    pub(crate) fn version(&self, idx: usize) -> u64 {
        self.versions[idx]
    }

    /// Of all rows.
    pub(crate) fn versions(&self) -> &[u64] {
        &self.versions
    }

    /// Do any pods wait for room that is theirs?
    pub(crate) fn has_nominations(&self) -> bool {
        self.n_nominations > 0
    }

    /// Do pods wait for room on the node that is theirs?
    pub(crate) fn has_nominated_pods(&self, idx: usize) -> bool {
        !self.nominated[idx].is_empty()
    }

    pub(crate) fn row(&self, name: &str) -> Option<Row<'_>> {
        self.idx_of.get(name).map(|it| self.row_at(*it))
    }

    /// The rows of all known nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.n_rows()).map(|it| self.row_at(it)).filter(|it| it.known)
    }

    /// Is there a pod of lower priority on the node?
    pub(crate) fn has_pods_below(&self, idx: usize, priority: i32) -> bool {
        self.priorities[idx].first_key_value().is_some_and(|(lowest, _)| *lowest < priority)
    }

    pub(crate) fn idx_of(&self, name: &str) -> Option<usize> {
        self.idx_of.get(name).copied()
    }

    /// Keeps room on a node for a pod that waits for it.
    pub(crate) fn nominate(&mut self, node: &str, key: &Key, pod: &Arc<PodInfo>) {
        let idx = self.row_for(node);
        if self.nominated[idx].insert(key.clone(), Arc::clone(pod)).is_none() {
            self.n_nominations += 1;
        }
    }

    pub(crate) fn end_nomination(&mut self, node: &str, key: &Key) {
        let Some(idx) = self.idx_of(node) else { return };
        if self.nominated[idx].remove(key).is_some() {
            self.n_nominations -= 1;
        }
        self.drop_row_if_unused(idx);
    }

    /// Does any placed pod keep others away by a required anti-affinity?
    pub(crate) fn has_repelling_pods(&self) -> bool {
        self.n_repelling > 0
    }

    pub(crate) fn has_pods_with_affinity(&self) -> bool {
        self.n_with_affinity > 0
    }

    pub(crate) fn images_of(&self, idx: usize) -> &BTreeSet<String> {
        &self.image_names[idx]
    }

    /// May only one pod use the claim?
    pub(crate) fn is_exclusive(&self, claim: &Key) -> bool {
        let claim = self.storage.claim(claim);
        claim.is_some_and(|it| it.spec.access_modes.iter().any(|it| it == "ReadWriteOncePod"))
    }

    /// How many placed pods use the claim.
    pub(crate) fn n_users(&self, claim: &Key) -> usize {
        self.claim_users.get(claim).copied().unwrap_or(0)
    }

    pub(crate) fn volumes_of(&self, pod: &PodInfo) -> PodVolumes<'_> {
        PodVolumes::of(pod, &self.storage, |it| self.row(it).is_some_and(|it| it.known))
    }

    /// About how many times it is asked whether a term matches a pod, to find what bears on `pod`.
    pub(crate) fn n_matches_for(&self, pod: &PodInfo) -> usize {
        let own = pod.pod_affinity.len() + pod.pod_anti_affinity.len() + pod.spread.len();
        own.saturating_mul(self.n_pods).saturating_add(self.n_repelling_terms)
    }

    /// Takes a node in. Says what has changed of what a plugin reads, the first where it is much: heartbeats change nothing.
    pub(crate) fn set_node(&mut self, node: &Node) -> Option<Change> {
        let idx = self.row_for(&node.metadata.name);
        self.image_names[idx] = self.images.replace(&self.image_names[idx], &node.status.images);
        let allocatable = Amounts::of(&node.status.allocatable);
        let pods_max = node.status.allocatable.get("pods").map_or(0, |it| usize::try_from(it.value()).unwrap_or(0));
        let change = if !self.known[idx] {
            Change::Add
        } else if self.unschedulable[idx] != node.spec.unschedulable {
            Change::NodeTaint
        } else if self.allocatable[idx] != allocatable || self.pods_max[idx] != pods_max {
            Change::NodeAllocatable
        } else if self.labels[idx] != node.metadata.labels {
            Change::NodeLabel
        } else if self.taints[idx] != node.spec.taints {
            Change::NodeTaint
        } else if self.features[idx] != node.status.declared_features {
            Change::NodeDeclaredFeature
        } else {
            return None;
        };
        if !self.known[idx] {
            self.known[idx] = true;
            self.n_known += 1;
        }
        self.has_changed(idx);
        self.label(idx, &node.metadata.labels);
        self.unschedulable[idx] = node.spec.unschedulable;
        self.taints[idx].clone_from(&node.spec.taints);
        self.features[idx].clone_from(&node.status.declared_features);
        self.allocatable[idx] = allocatable;
        self.pods_max[idx] = pods_max;
        Some(change)
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        let Some(idx) = self.idx_of.get(name).copied().filter(|it| self.known[*it]) else { return };
        self.has_changed(idx);
        self.known[idx] = false;
        self.n_known -= 1;
        self.label(idx, &BTreeMap::new());
        self.unschedulable[idx] = false;
        self.taints[idx].clear();
        self.features[idx].clear();
        self.allocatable[idx] = Amounts::default();
        self.pods_max[idx] = 0;
        self.images.remove(&std::mem::take(&mut self.image_names[idx]));
        self.drop_row_if_unused(idx);
    }

    pub(crate) fn add_pod(&mut self, node: &str, key: &Key, pod: &Arc<PodInfo>) {
        let idx = self.row_for(node);
        if self.pods[idx].contains_key(key) {
            return;
        }
        self.has_changed(idx);
        self.count_by(pod.keys_of_terms(), true);
        self.topology_pod_counts.add(pod, &self.labels[idx]);
        self.pods[idx].insert(key.clone(), Arc::clone(pod));
        let is_repelling = usize::from(!pod.pod_anti_affinity.is_empty());
        self.repelling[idx] += is_repelling;
        self.n_repelling += is_repelling;
        self.n_repelling_terms += pod.pod_anti_affinity.len();
        let has_affinity = usize::from(pod.has_affinity());
        self.with_affinity[idx] += has_affinity;
        self.n_with_affinity += has_affinity;
        self.n_pods += 1;
        *self.priorities[idx].entry(pod.priority).or_default() += 1;
        for claim in pod.claim_keys() {
            *self.claim_users.entry(claim).or_default() += 1;
        }
        self.requested[idx].add(&pod.requested);
        self.guessed[idx].add(&pod.guessed);
        for port in &pod.ports {
            *self.ports[idx].entry(port.clone()).or_default() += 1;
        }
    }

    pub(crate) fn remove_pod(&mut self, node: &str, key: &Key, pod: &PodInfo) {
        let Some(idx) = self.idx_of.get(node).copied() else { return };
        let Some(known) = self.pods[idx].remove(key) else { return };
        self.has_changed(idx);
        self.topology_pod_counts.remove(&known, &self.labels[idx]);
        let is_repelling = usize::from(!known.pod_anti_affinity.is_empty());
        self.repelling[idx] -= is_repelling;
        self.n_repelling -= is_repelling;
        self.n_repelling_terms -= known.pod_anti_affinity.len();
        let has_affinity = usize::from(known.has_affinity());
        self.with_affinity[idx] -= has_affinity;
        self.n_with_affinity -= has_affinity;
        self.n_pods -= 1;
        take_one(&mut self.priorities[idx], &known.priority);
        known.claim_keys().for_each(|it| take_one(&mut self.claim_users, &it));
        subtract(&mut self.requested[idx], &known.requested, self.pods[idx].values().map(|it| &it.requested));
        subtract(&mut self.guessed[idx], &known.guessed, self.pods[idx].values().map(|it| &it.guessed));
        pod.ports.iter().for_each(|it| take_one(&mut self.ports[idx], it));
        self.drop_row_if_unused(idx);
    }

    /// The labels of a node are these from now on: its pods are in other domains.
    fn label(&mut self, idx: usize, labels: &BTreeMap<String, String>) {
        let before = std::mem::take(&mut self.labels[idx]);
        if before != *labels {
            self.topology_pod_counts.remove_node(&before);
            self.topology_pod_counts.add_node(labels);
            for pod in self.pods[idx].values() {
                self.topology_pod_counts.remove(pod, &before);
                self.topology_pod_counts.add(pod, labels);
            }
        }
        self.labels[idx].clone_from(labels);
    }

    /// Pods are counted by these labels of nodes from now on, too.
    pub(crate) fn count_by<'k>(&mut self, keys: impl Iterator<Item = &'k str>, is_placed: bool) {
        if self.topology_pod_counts.take_keys(keys, is_placed) {
            for (labels, pods) in self.labels.iter().zip(&self.pods) {
                self.topology_pod_counts.add_node(labels);
                pods.values().for_each(|it| self.topology_pod_counts.add(it, labels));
            }
        }
    }

    fn has_changed(&mut self, idx: usize) {
        self.n_changes += 1;
        self.versions[idx] = self.n_changes;
    }

    fn row_for(&mut self, name: &str) -> usize {
        if let Some(idx) = self.idx_of.get(name) {
            return *idx;
        }
        let idx = self.names.len();
        self.idx_of.insert(name.to_owned(), idx);
        self.names.push(name.to_owned());
        self.versions.push(0);
        self.known.push(false);
        self.labels.push(BTreeMap::new());
        self.unschedulable.push(false);
        self.taints.push(Vec::new());
        self.features.push(Vec::new());
        self.allocatable.push(Amounts::default());
        self.pods_max.push(0);
        self.requested.push(Amounts::default());
        self.guessed.push(Amounts::default());
        self.pods.push(BTreeMap::new());
        self.ports.push(BTreeMap::new());
        self.priorities.push(BTreeMap::new());
        self.nominated.push(BTreeMap::new());
        self.repelling.push(0);
        self.with_affinity.push(0);
        self.image_names.push(BTreeSet::new());
        self.has_changed(idx);
        idx
    }

    /// The last row takes the place of the one that goes.
    fn drop_row_if_unused(&mut self, idx: usize) {
        if self.known[idx] || !self.pods[idx].is_empty() || !self.nominated[idx].is_empty() {
            return;
        }
        self.idx_of.remove(&self.names[idx]);
        self.names.swap_remove(idx);
        self.versions.swap_remove(idx);
        self.known.swap_remove(idx);
        self.labels.swap_remove(idx);
        self.unschedulable.swap_remove(idx);
        self.taints.swap_remove(idx);
        self.features.swap_remove(idx);
        self.allocatable.swap_remove(idx);
        self.pods_max.swap_remove(idx);
        self.requested.swap_remove(idx);
        self.guessed.swap_remove(idx);
        self.pods.swap_remove(idx);
        self.ports.swap_remove(idx);
        self.priorities.swap_remove(idx);
        self.nominated.swap_remove(idx);
        self.repelling.swap_remove(idx);
        self.with_affinity.swap_remove(idx);
        self.image_names.swap_remove(idx);
        if let Some(moved) = self.names.get(idx) {
            *self.idx_of.get_mut(moved).expect("every row is in the index") = idx;
        }
    }

    /// Every row in name order, as text: two snapshots that hold the same are written the same.
    #[cfg(test)]
    pub(crate) fn dump(&self) -> Vec<String> {
        // Of a pod, what others see of it: the rest of it may be older here.
        let seen = |it: &PodInfo| format!("{} {:?} {} {:?}", it.key, it.labels, it.deleting, it.pod_anti_affinity);
        let rows = self.idx_of.values().map(|it| {
            let row = self.row_at(*it);
            let pods: Vec<_> = row.pods.values().map(|it| seen(it)).collect();
            format!("{:?} {pods:?}", Row { pods: &BTreeMap::new(), ..row })
        });
        rows.chain([format!("{} repel", self.n_repelling)]).collect()
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

/// Takes one pod's amounts from the sum, of which `rest` stay.
pub(crate) fn subtract<'a>(sum: &mut Amounts, gone: &Amounts, rest: impl Iterator<Item = &'a Amounts>) {
    if sum.is_full() {
        *sum = Amounts::default();
        rest.for_each(|it| sum.add(it));
    } else {
        sum.subtract(gone);
    }
}
