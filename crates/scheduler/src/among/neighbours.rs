//! The pods that inter-pod affinity is about: those near which a pod must run, and those away from which.

use std::collections::BTreeMap;

use crate::{
    Snapshot,
    pod_info::{PodInfo, Term},
    snapshot::Row,
};

/// How many pods there are by the label and value of their nodes.
pub(crate) type Counts<'a> = BTreeMap<(&'a str, &'a str), usize>;

/// The pods that bear on one pod.
#[derive(Default)]
pub(crate) struct Neighbours<'a> {
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
    let mut found = Neighbours::default();
    let is_picky = !pod.pod_affinity.is_empty() || !pod.pod_anti_affinity.is_empty();
    if !is_picky && !snapshot.has_repelling_pods() {
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
    fn add(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>) {
        let count = |counts: &mut Counts<'a>, term: &'a Term| {
            if let Some(pair) = pair(term, row) {
                *counts.entry(pair).or_default() += 1;
            }
        };
        if pod.pod_affinity.iter().all(|it| it.matches(other)) {
            pod.pod_affinity.iter().for_each(|it| count(&mut self.wanted, it));
        }
        let unwanted = pod.pod_anti_affinity.iter().filter(|it| it.matches(other));
        unwanted.for_each(|it| count(&mut self.unwanted, it));
        let repelling = other.pod_anti_affinity.iter().filter(|it| it.matches(pod));
        repelling.for_each(|it| count(&mut self.repelling, it));
    }
}
