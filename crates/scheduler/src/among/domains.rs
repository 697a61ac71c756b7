//! How many pods each topology spread constraint of a pod counts in each domain.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

use corten_meta::Selector;

use crate::{
    PodInfo, Snapshot,
    arguments::Arguments,
    placement::{allows, untolerated},
    pod_info::Constraint,
    snapshot::Row,
};

/// Whether the pod may run on a node: found once for all of its constraints.
#[derive(Clone, Copy)]
struct Allowed {
    by_affinity: bool,
    by_taints: bool,
}

impl Allowed {
    fn of(pod: &PodInfo, row: &Row<'_>) -> Self {
        let by_taints = untolerated(pod, row).next().is_none();
        Self { by_affinity: allows(pod, row), by_taints }
    }
}

/// How many pods one constraint counts in each domain.
#[derive(Clone)]
pub(crate) struct Domains<'a> {
    pub(crate) constraint: Cow<'a, Constraint>,
    /// Nodes with the labels of all constraints of the pod count, no other.
    topology_keys: Rc<[String]>,
    pub(crate) counts: BTreeMap<&'a str, i64>,
    /// The fewest in any domain; zero while there are fewer domains than asked for.
    pub(crate) fewest: i64,
}

impl Domains<'_> {
    fn find_fewest(&mut self) {
        let is_too_few = self.counts.len() < self.constraint.domains_min;
        self.fewest = if is_too_few { 0 } else { self.counts.values().copied().min().unwrap_or(0) };
    }
}

impl<'a> Domains<'a> {
    /// Counts one pod more or less on a node.
    pub(crate) fn count(&mut self, pod: &PodInfo, other: &PodInfo, row: &Row<'a>, change: i64) {
        let is_labelled = self.topology_keys.iter().all(|it| row.labels.contains_key(it));
        if !is_labelled || !self.constraint.counts(pod, other) || !self.constraint.honors(pod, row) {
            return;
        }
        *self.counts.entry(&*row.labels[&self.constraint.topology_key]).or_default() += change;
        self.find_fewest();
    }
}

impl Constraint {
    fn counts_node(&self, allowed: Allowed) -> bool {
        (!self.honors_affinity || allowed.by_affinity) && (!self.honors_taints || allowed.by_taints)
    }

    /// Do pods on the node count (`matchNodeInclusionPolicies`)?
    pub(crate) fn honors(&self, pod: &PodInfo, row: &Row<'_>) -> bool {
        (!self.honors_affinity || allows(pod, row)) && (!self.honors_taints || untolerated(pod, row).next().is_none())
    }

    /// As in `countPodsMatchSelector`: pods that are being deleted do not count, and an empty selector counts none but the
    /// pod itself.
    pub(crate) fn count(&self, pod: &PodInfo, row: &Row<'_>) -> i64 {
        if self.selector.as_ref().is_none_or(Selector::is_empty) {
            return 0;
        }
        let counted = row.pods.values().filter(|it| self.counts(pod, it));
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    }

    /// Do pods count wherever they are, for this pod?
    pub(crate) fn counts_every_node(&self, pod: &PodInfo) -> bool {
        let is_free = pod.node_selector.is_empty() && pod.affinity.required.is_none();
        (!self.honors_affinity || is_free) && !self.honors_taints
    }

    /// How many pods count in each domain, where they do on every node. The label must be one that pods are counted by.
    pub(crate) fn count_by_domain<'a>(&self, pod: &PodInfo, snapshot: &'a Snapshot) -> BTreeMap<&'a str, i64> {
        let nodes = snapshot.topology_pod_counts.nodes(&self.topology_key);
        let mut counts: BTreeMap<&str, i64> = nodes.into_iter().flat_map(|it| it.all()).map(|it| (it.0, 0)).collect();
        let signatures = snapshot.topology_pod_counts.signatures().filter(|it| self.counts(pod, &it.info));
        for (value, count) in signatures.filter_map(|it| it.domains(&self.topology_key)).flat_map(|it| it.all()) {
            *counts.entry(value).or_default() += i64::try_from(count).unwrap_or(i64::MAX);
        }
        counts
    }

    fn counts(&self, pod: &PodInfo, other: &PodInfo) -> bool {
        other.key.namespace == pod.key.namespace
            && !other.deleting
            && self.selector.as_ref().is_some_and(|it| !it.is_empty() && it.matches(&other.labels))
    }
}

/// One for each of the pod's constraints, or of those that pods without any have, in order. As in `calPreFilterState`, only nodes
/// with the labels of all of them count.
pub(crate) fn domains<'a>(pod: &'a PodInfo, snapshot: &'a Snapshot, arguments: &Arguments) -> Vec<Domains<'a>> {
    let by_default = arguments.spread.hard(pod, &snapshot.groupings).into_iter().map(Cow::Owned);
    let constraints: Vec<Cow<'a, Constraint>> = pod.spread.iter().map(Cow::Borrowed).chain(by_default).collect();
    if constraints.is_empty() {
        return Vec::new();
    }
    if let Some(counted) = counted_together(pod, snapshot, &constraints) {
        return counted;
    }
    let topology_keys: Rc<[String]> = constraints.iter().map(|it| it.topology_key.clone()).collect();
    let is_labelled = |row: &Row<'_>| topology_keys.iter().all(|it| row.labels.contains_key(it));
    let rows: Vec<(Row<'a>, Allowed)> =
        snapshot.nodes().filter(is_labelled).map(|it| (it, Allowed::of(pod, &it))).collect();
    let of_constraint = |constraint: Cow<'a, Constraint>| {
        let mut counts = BTreeMap::new();
        for (row, _) in rows.iter().filter(|it| constraint.counts_node(it.1)) {
            *counts.entry(&*row.labels[&constraint.topology_key]).or_default() += constraint.count(pod, row);
        }
        let mut domains = Domains { constraint, topology_keys: Rc::clone(&topology_keys), counts, fewest: 0 };
        domains.find_fewest();
        domains
    };
    constraints.into_iter().map(of_constraint).collect()
}

/// Without a look at each node, where all constraints are of one label and any node with it counts.
fn counted_together<'a>(
    pod: &'a PodInfo,
    snapshot: &'a Snapshot,
    constraints: &[Cow<'a, Constraint>],
) -> Option<Vec<Domains<'a>>> {
    let key = &constraints.first()?.topology_key;
    let is_simple = |it: &Cow<'a, Constraint>| it.topology_key == *key && it.counts_every_node(pod);
    if !snapshot.topology_pod_counts.counts_by([&**key].into_iter()) || !constraints.iter().all(is_simple) {
        return None;
    }
    let topology_keys: Rc<[String]> = [key.clone()].into();
    let of_constraint = |constraint: &Cow<'a, Constraint>| {
        let (constraint, topology_keys) = (constraint.clone(), Rc::clone(&topology_keys));
        let counts = constraint.count_by_domain(pod, snapshot);
        let mut domains = Domains { constraint, topology_keys, counts, fewest: 0 };
        domains.find_fewest();
        domains
    };
    Some(constraints.iter().map(of_constraint).collect())
}
