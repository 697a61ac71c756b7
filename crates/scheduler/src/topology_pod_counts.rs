//! Counts placed pods per topology domain, grouped by pods with equal labels and affinity. A pod's affinity and its spread constraints ask
//! each group once, not each pod.
//!
//! A domain is a value of a label of nodes. It is counted by those labels that pods have named; the first pod to name one has all pods
//! counted anew.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    PodInfo,
    ordered_pod::{OrderedPod, PodOrder},
};

/// It is counted by so many labels; what is asked by others is found by looking at each pod.
const KEYS_MAX: usize = 16;

type Labels = BTreeMap<String, String>;

#[derive(Default)]
pub(crate) struct TopologyPodCounts {
    /// The labels that it is counted by.
    keys: BTreeSet<String>,
    /// A label that placed pods have named is not among them.
    is_partial: bool,
    signatures: BTreeMap<OrderedPod<BySignature>, Vec<PodSignature>>,
    nodes: BTreeMap<String, DomainCounts>,
}

/// Placed pods with equal labels and affinity: inter-pod affinity and spread constraints cannot tell them apart.
pub(crate) struct PodSignature {
    /// One of them, perhaps of before.
    pub(crate) info: Arc<PodInfo>,
    n_pods: usize,
    domains: BTreeMap<String, DomainCounts>,
}

/// How many there are in each domain.
#[derive(Debug, Default)]
pub(crate) struct DomainCounts {
    counts: BTreeMap<String, usize>,
    sum: usize,
}

impl DomainCounts {
    pub(crate) fn count(&self, value: &str) -> usize {
        self.counts.get(value).copied().unwrap_or(0)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, usize)> {
        self.counts.iter().map(|(value, count)| (&**value, *count))
    }

    pub(crate) fn sum(&self) -> usize {
        self.sum
    }

    fn add(&mut self, value: &str) {
        self.sum += 1;
        match self.counts.get_mut(value) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(value.to_owned(), 1)),
        }
    }

    fn remove(&mut self, value: &str) {
        let Some(count) = self.counts.get_mut(value) else { return };
        self.sum -= 1;
        *count -= 1;
        if *count == 0 {
            self.counts.remove(value);
        }
    }
}

impl PodSignature {
    /// Nothing where none of them is on a node with the label.
    pub(crate) fn domains(&self, key: &str) -> Option<&DomainCounts> {
        self.domains.get(key).filter(|it| it.sum > 0)
    }
}

impl TopologyPodCounts {
    pub(crate) fn signatures(&self) -> impl Iterator<Item = &PodSignature> {
        self.signatures.values().flatten()
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|it| &**it)
    }

    /// All that is counted, as text: two that hold the same are written the same.
    #[cfg(test)]
    pub(crate) fn dump(&self) -> Vec<String> {
        let counts = |it: &BTreeMap<String, DomainCounts>| {
            it.iter().filter(|it| it.1.sum > 0).map(|it| format!("{it:?}")).collect::<Vec<_>>()
        };
        let signature = |it: &PodSignature| {
            let PodInfo { key, labels, deleting, pod_affinity, pod_anti_affinity, .. } = &*it.info;
            let terms = (pod_affinity, pod_anti_affinity);
            let name = format!("{} {labels:?} {deleting} {terms:?}", key.namespace);
            format!("{name} {} {:?}", it.n_pods, counts(&it.domains))
        };
        let mut signatures: Vec<String> = self.signatures().map(signature).collect();
        signatures.sort();
        signatures.extend(counts(&self.nodes));
        signatures
    }

    /// How many nodes there are in each domain.
    pub(crate) fn nodes(&self, key: &str) -> Option<&DomainCounts> {
        self.nodes.get(key)
    }

    /// Is it counted by all these labels, and by those that placed pods name?
    pub(crate) fn counts_by<'k>(&self, mut keys: impl Iterator<Item = &'k str>) -> bool {
        !self.is_partial && !self.keys.is_empty() && keys.all(|it| self.keys.contains(it))
    }

    /// Says whether all is to be counted anew, because labels are among these that it was not counted by.
    pub(crate) fn take_keys<'k>(&mut self, keys: impl Iterator<Item = &'k str>, is_placed: bool) -> bool {
        let mut is_new = false;
        for key in keys {
            if self.keys.contains(key) {
                continue;
            }
            if self.keys.len() < KEYS_MAX {
                self.keys.insert(key.to_owned());
                is_new = true;
            } else {
                self.is_partial |= is_placed;
            }
        }
        if is_new {
            self.signatures.clear();
            self.nodes.clear();
        }
        is_new
    }

    pub(crate) fn add_node(&mut self, labels: &Labels) {
        for key in &self.keys {
            if let Some(value) = labels.get(key) {
                self.nodes.entry(key.clone()).or_default().add(value);
            }
        }
    }

    pub(crate) fn remove_node(&mut self, labels: &Labels) {
        for key in &self.keys {
            if let Some((domains, value)) = self.nodes.get_mut(key).zip(labels.get(key)) {
                domains.remove(value);
            }
        }
    }

    /// A pod is on a node with these labels.
    pub(crate) fn add(&mut self, pod: &Arc<PodInfo>, labels: &Labels) {
        if self.keys.is_empty() {
            return;
        }
        let signatures = self.signatures.entry(OrderedPod::new(pod)).or_default();
        let idx = signatures.iter().position(|it| it.info.has_same_signature(pod)).unwrap_or_else(|| {
            signatures.push(PodSignature { info: Arc::clone(pod), n_pods: 0, domains: BTreeMap::new() });
            signatures.len() - 1
        });
        let signature = &mut signatures[idx];
        signature.n_pods += 1;
        for (key, value) in self.keys.iter().filter_map(|it| Some((it, labels.get(it)?))) {
            match signature.domains.get_mut(key) {
                Some(domains) => domains.add(value),
                None => signature.domains.entry(key.clone()).or_default().add(value),
            }
        }
    }

    pub(crate) fn remove(&mut self, pod: &Arc<PodInfo>, labels: &Labels) {
        if self.keys.is_empty() {
            return;
        }
        let ordered = OrderedPod::new(pod);
        let Some(signatures) = self.signatures.get_mut(&ordered) else { return };
        let Some(idx) = signatures.iter().position(|it| it.info.has_same_signature(pod)) else { return };
        let signature = &mut signatures[idx];
        signature.n_pods -= 1;
        for (key, value) in self.keys.iter().filter_map(|it| Some((it, labels.get(it)?))) {
            if let Some(domains) = signature.domains.get_mut(key) {
                domains.remove(value);
            }
        }
        if signature.n_pods == 0 {
            signatures.remove(idx);
            if signatures.is_empty() {
                self.signatures.remove(&ordered);
            }
        }
    }
}

/// An order that tells most signatures apart.
struct BySignature;

impl PodOrder for BySignature {
    fn compare(one: &PodInfo, other: &PodInfo) -> Ordering {
        one.key.namespace.cmp(&other.key.namespace).then_with(|| one.labels.cmp(&other.labels))
    }
}
