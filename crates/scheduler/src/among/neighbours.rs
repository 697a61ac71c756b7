//! The pods that inter-pod affinity is about: those near which a pod must run, and those away from which.

use std::collections::BTreeMap;

use crate::{
    Snapshot,
    namespaces::NamespaceLabels,
    pod_info::{PodInfo, Term},
    snapshot::Row,
    topology_pod_counts::DomainCounts,
};

/// How many pods there are by the label and value of their nodes.
#[derive(Clone, Default)]
pub(crate) struct Counts<'a> {
    /// Those that are counted together, by the label.
    of_signatures: BTreeMap<&'a str, Vec<&'a DomainCounts>>,
    /// Those beside them, and less those that are thought away.
    others: BTreeMap<(&'a str, &'a str), i64>,
}

impl<'a> Counts<'a> {
    fn change(&mut self, key: &'a str, value: &'a str, by: i64) {
        *self.others.entry((key, value)).or_default() += by;
    }

    /// Are there any on nodes with the label of this value?
    pub(crate) fn has(&self, key: &str, value: &str) -> bool {
        let signatures = self.of_signatures.get(key).into_iter().flatten();
        let together: usize = signatures.map(|it| it.count(value)).sum();
        let others = if self.others.is_empty() { 0 } else { self.others.get(&(key, value)).copied().unwrap_or(0) };
        i64::try_from(together).unwrap_or(i64::MAX).saturating_add(others) > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        let together: usize = self.of_signatures.values().flatten().map(|it| it.sum()).sum();
        let others: i64 = self.others.values().sum();
        i64::try_from(together).unwrap_or(i64::MAX).saturating_add(others) <= 0
    }

    /// Are there any in a domain of the node?
    pub(crate) fn has_any_near(&self, row: &Row<'_>) -> bool {
        let mut keys = self.of_signatures.keys().chain(self.others.keys().map(|(key, _)| key));
        keys.any(|key| row.labels.get(*key).is_some_and(|value| self.has(key, value)))
    }
}

/// The pods that bear on one pod.
#[derive(Clone)]
pub(crate) struct Neighbours<'a> {
    pub(crate) namespaces: &'a NamespaceLabels,
    /// Those that match all its affinity terms.
    pub(crate) wanted: Counts<'a>,
    /// Those that match one of its anti-affinity terms.
    pub(crate) unwanted: Counts<'a>,
    /// Those with an anti-affinity term that matches it.
    pub(crate) repelling: Counts<'a>,
}

/// The pair that a node's pods are counted under, where the node has the label at all.
pub(crate) fn pair<'a>(term: &'a Term, row: &Row<'a>) -> Option<(&'a str, &'a str)> {
    row.labels.get(&term.topology_key).map(|value| (&*term.topology_key, &**value))
}

pub(crate) fn neighbours<'a>(pod: &'a PodInfo, snapshot: &'a Snapshot) -> Neighbours<'a> {
    let (wanted, unwanted, repelling) = (Counts::default(), Counts::default(), Counts::default());
    let mut found = Neighbours { namespaces: &snapshot.namespaces, wanted, unwanted, repelling };
    let is_picky = !pod.pod_affinity.is_empty() || !pod.pod_anti_affinity.is_empty();
    if !is_picky && !snapshot.has_repelling_pods() {
        return found;
    }
    let own_terms = pod.pod_affinity.iter().chain(&pod.pod_anti_affinity);
    if snapshot.topology_pod_counts.counts_by(own_terms.map(|it| &*it.topology_key)) {
        for signature in
            snapshot.topology_pod_counts.signatures().filter(|it| is_picky || !it.info.pod_anti_affinity.is_empty())
        {
            found.count(pod, &signature.info, |counts, term| {
                if let Some(domains) = signature.domains(&term.topology_key) {
                    counts.of_signatures.entry(&term.topology_key).or_default().push(domains);
                }
            });
        }
        return found;
    }
    for row in snapshot.nodes().filter(|it| is_picky || it.has_repelling_pods) {
        for other in row.pods.values() {
            found.add(pod, other, &row);
        }
    }
    found
}

impl<'a> Neighbours<'a> {
    pub(crate) fn add(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>) {
        self.change(pod, other, row, 1);
    }

    pub(crate) fn remove(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>) {
        self.change(pod, other, row, -1);
    }

    fn change(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>, by: i64) {
        self.count(pod, other, |counts, term| {
            if let Some((key, value)) = pair(term, row) {
                counts.change(key, value, by);
            }
        });
    }

    /// Calls `one` for each count that the other pod is in.
    fn count(&mut self, pod: &'a PodInfo, other: &'a PodInfo, mut one: impl FnMut(&mut Counts<'a>, &'a Term)) {
        let namespaces = self.namespaces;
        if pod.pod_affinity.iter().all(|it| it.matches(other, namespaces)) {
            pod.pod_affinity.iter().for_each(|it| one(&mut self.wanted, it));
        }
        let unwanted = pod.pod_anti_affinity.iter().filter(|it| it.matches(other, namespaces));
        unwanted.for_each(|it| one(&mut self.unwanted, it));
        let repelling = other.pod_anti_affinity.iter().filter(|it| it.matches(pod, namespaces));
        repelling.for_each(|it| one(&mut self.repelling, it));
    }
}
