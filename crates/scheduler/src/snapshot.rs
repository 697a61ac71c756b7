//! What is known of the nodes, in columns: a field each, a row per node. Deltas update it; it is never rebuilt.
//!
//! A pod may be known on a node before the node is. Its row then exists, but is not `known` and no pod is placed there.

use std::{collections::BTreeMap, sync::Arc};

use corten_allocator::ResourceClasses;
use corten_meta::Key;

use crate::{
    Node,
    devices::{DeviceNode, Devices},
    pod_info::{HostPort, PodInfo},
    projections::Taint,
    requests::Amounts,
    storage::{PodVolumes, Storage},
};

/// See the module's documentation.
#[derive(Default)]
pub struct Snapshot {
    idx_of: BTreeMap<String, usize>,
    names: Vec<String>,
    known: Vec<bool>,
    labels: Vec<BTreeMap<String, String>>,
    unschedulable: Vec<bool>,
    taints: Vec<Vec<Taint>>,
    allocatable: Vec<Amounts>,
    pods_max: Vec<usize>,
    requested: Vec<Amounts>,
    guessed: Vec<Amounts>,
    pods: Vec<BTreeMap<Key, Arc<PodInfo>>>,
    ports: Vec<BTreeMap<HostPort, usize>>,
    /// The number of pods that keep others away from themselves: on each node, and on all.
    repelling: Vec<usize>,
    n_known: usize,
    n_repelling: usize,
    /// The terms of all pods that repel.
    n_repelling_terms: usize,
    n_pods: usize,
    pub(crate) storage: Storage,
    pub(crate) devices: Devices,
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
    pub(crate) allocatable: &'a Amounts,
    pub(crate) pods_max: usize,
    pub(crate) requested: &'a Amounts,
    pub(crate) guessed: &'a Amounts,
    pub(crate) n_pods: usize,
    pub(crate) pods: &'a BTreeMap<Key, Arc<PodInfo>>,
    pub(crate) ports: &'a BTreeMap<HostPort, usize>,
    pub(crate) has_repelling_pods: bool,
    /// Of all nodes.
    pub(crate) classes: &'a ResourceClasses,
}

impl<'a> Row<'a> {
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
            allocatable: &self.allocatable[idx],
            pods_max: self.pods_max[idx],
            requested: &self.requested[idx],
            guessed: &self.guessed[idx],
            n_pods: self.pods[idx].len(),
            pods: &self.pods[idx],
            ports: &self.ports[idx],
            has_repelling_pods: self.repelling[idx] > 0,
            classes: &self.devices.classes,
        }
    }

    pub(crate) fn row(&self, name: &str) -> Option<Row<'_>> {
        self.idx_of.get(name).map(|it| self.row_at(*it))
    }

    /// The rows of all known nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.n_rows()).map(|it| self.row_at(it)).filter(|it| it.known)
    }

    /// Does any placed pod keep others away by a required anti-affinity?
    pub(crate) fn has_repelling_pods(&self) -> bool {
        self.n_repelling > 0
    }

    /// Does a placed pod use a claim of this one's that only one pod may use?
    pub(crate) fn is_claim_taken(&self, pod: &PodInfo) -> bool {
        pod.claim_keys().filter(|it| self.claim_users.contains_key(it)).any(|it| {
            let claim = self.storage.claim(&it);
            claim.is_some_and(|it| it.spec.access_modes.iter().any(|it| it == "ReadWriteOncePod"))
        })
    }

    pub(crate) fn volumes_of(&self, pod: &PodInfo) -> PodVolumes<'_> {
        PodVolumes::of(pod, &self.storage, |it| self.row(it).is_some_and(|it| it.known))
    }

    /// About how many times it is asked whether a term matches a pod, to find what bears on `pod`.
    pub(crate) fn n_matches_for(&self, pod: &PodInfo) -> usize {
        let own = pod.pod_affinity.len() + pod.pod_anti_affinity.len() + pod.spread.len();
        own.saturating_mul(self.n_pods).saturating_add(self.n_repelling_terms)
    }

    /// Takes a node in. Says whether anything that a plugin reads has changed: heartbeats change nothing.
    pub(crate) fn set_node(&mut self, node: &Node) -> bool {
        let idx = self.row_for(&node.metadata.name);
        let allocatable = Amounts::of(&node.status.allocatable);
        let pods_max = node.status.allocatable.get("pods").map_or(0, |it| usize::try_from(it.value()).unwrap_or(0));
        let is_same = self.known[idx]
            && self.labels[idx] == node.metadata.labels
            && self.unschedulable[idx] == node.spec.unschedulable
            && self.taints[idx] == node.spec.taints
            && self.allocatable[idx] == allocatable
            && self.pods_max[idx] == pods_max;
        if is_same {
            return false;
        }
        if !self.known[idx] {
            self.known[idx] = true;
            self.n_known += 1;
        }
        self.labels[idx].clone_from(&node.metadata.labels);
        self.unschedulable[idx] = node.spec.unschedulable;
        self.taints[idx].clone_from(&node.spec.taints);
        self.allocatable[idx] = allocatable;
        self.pods_max[idx] = pods_max;
        true
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        let Some(idx) = self.idx_of.get(name).copied().filter(|it| self.known[*it]) else { return };
        self.known[idx] = false;
        self.n_known -= 1;
        self.labels[idx].clear();
        self.unschedulable[idx] = false;
        self.taints[idx].clear();
        self.allocatable[idx] = Amounts::default();
        self.pods_max[idx] = 0;
        self.drop_row_if_unused(idx);
    }

    pub(crate) fn add_pod(&mut self, node: &str, key: &Key, pod: &Arc<PodInfo>) {
        let idx = self.row_for(node);
        if self.pods[idx].contains_key(key) {
            return;
        }
        self.pods[idx].insert(key.clone(), Arc::clone(pod));
        let is_repelling = usize::from(!pod.pod_anti_affinity.is_empty());
        self.repelling[idx] += is_repelling;
        self.n_repelling += is_repelling;
        self.n_repelling_terms += pod.pod_anti_affinity.len();
        self.n_pods += 1;
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
        let is_repelling = usize::from(!known.pod_anti_affinity.is_empty());
        self.repelling[idx] -= is_repelling;
        self.n_repelling -= is_repelling;
        self.n_repelling_terms -= known.pod_anti_affinity.len();
        self.n_pods -= 1;
        for claim in known.claim_keys() {
            if let Some(count) = self.claim_users.get_mut(&claim) {
                *count -= 1;
                if *count == 0 {
                    self.claim_users.remove(&claim);
                }
            }
        }
        subtract(&mut self.requested[idx], &known.requested, self.pods[idx].values().map(|it| &it.requested));
        subtract(&mut self.guessed[idx], &known.guessed, self.pods[idx].values().map(|it| &it.guessed));
        for port in &pod.ports {
            if let Some(count) = self.ports[idx].get_mut(port) {
                *count -= 1;
                if *count == 0 {
                    self.ports[idx].remove(port);
                }
            }
        }
        self.drop_row_if_unused(idx);
    }

    fn row_for(&mut self, name: &str) -> usize {
        if let Some(idx) = self.idx_of.get(name) {
            return *idx;
        }
        let idx = self.names.len();
        self.idx_of.insert(name.to_owned(), idx);
        self.names.push(name.to_owned());
        self.known.push(false);
        self.labels.push(BTreeMap::new());
        self.unschedulable.push(false);
        self.taints.push(Vec::new());
        self.allocatable.push(Amounts::default());
        self.pods_max.push(0);
        self.requested.push(Amounts::default());
        self.guessed.push(Amounts::default());
        self.pods.push(BTreeMap::new());
        self.ports.push(BTreeMap::new());
        self.repelling.push(0);
        idx
    }

    /// The last row takes the place of the one that goes.
    fn drop_row_if_unused(&mut self, idx: usize) {
        if self.known[idx] || !self.pods[idx].is_empty() {
            return;
        }
        self.idx_of.remove(&self.names[idx]);
        self.names.swap_remove(idx);
        self.known.swap_remove(idx);
        self.labels.swap_remove(idx);
        self.unschedulable.swap_remove(idx);
        self.taints.swap_remove(idx);
        self.allocatable.swap_remove(idx);
        self.pods_max.swap_remove(idx);
        self.requested.swap_remove(idx);
        self.guessed.swap_remove(idx);
        self.pods.swap_remove(idx);
        self.ports.swap_remove(idx);
        self.repelling.swap_remove(idx);
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

/// Takes one pod's amounts from the sum, of which `rest` stay.
fn subtract<'a>(sum: &mut Amounts, gone: &Amounts, rest: impl Iterator<Item = &'a Amounts>) {
    if sum.is_full() {
        *sum = Amounts::default();
        rest.for_each(|it| sum.add(it));
    } else {
        sum.subtract(gone);
    }
}
