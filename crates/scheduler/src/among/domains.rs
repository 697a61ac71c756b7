//! How many pods each topology spread constraint of a pod counts in each domain.

use std::collections::BTreeMap;

use corten_meta::Selector;

use crate::{
    PodInfo, Snapshot,
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
pub(crate) struct Domains<'a> {
    pub(crate) counts: BTreeMap<&'a str, i64>,
    /// The fewest in any domain; zero while there are fewer domains than asked for.
    pub(crate) fewest: i64,
}

impl Constraint {
    fn counts_node(&self, allowed: Allowed) -> bool {
        (!self.honors_affinity || allowed.by_affinity) && (!self.honors_taints || allowed.by_taints)
    }

    /// As in `countPodsMatchSelector`: pods that are being deleted do not count, and an empty selector counts none but the
    /// pod itself.
    fn count(&self, pod: &PodInfo, row: &Row<'_>) -> i64 {
        if self.selector.as_ref().is_none_or(Selector::is_empty) {
            return 0;
        }
        let counted = row
            .pods
            .values()
            .filter(|it| it.key.namespace == pod.key.namespace && !it.deleting && self.selects(&it.labels));
        i64::try_from(counted.count()).unwrap_or(i64::MAX)
    }
}

/// One for each of the pod's constraints, in order. As in `calPreFilterState`, only nodes with the labels of all of them count.
pub(crate) fn domains<'a>(pod: &PodInfo, snapshot: &'a Snapshot) -> Vec<Domains<'a>> {
    if pod.spread.is_empty() {
        return Vec::new();
    }
    let is_labelled = |row: &Row<'_>| pod.spread.iter().all(|it| row.labels.contains_key(&it.topology_key));
    let rows: Vec<(Row<'a>, Allowed)> =
        snapshot.nodes().filter(is_labelled).map(|it| (it, Allowed::of(pod, &it))).collect();
    let of_constraint = |constraint: &Constraint| {
        let mut counts = BTreeMap::new();
        for (row, _) in rows.iter().filter(|it| constraint.counts_node(it.1)) {
            *counts.entry(&*row.labels[&constraint.topology_key]).or_default() += constraint.count(pod, row);
        }
        let is_too_few = counts.len() < constraint.domains_min;
        let fewest = if is_too_few { 0 } else { counts.values().copied().min().unwrap_or(0) };
        Domains { counts, fewest }
    };
    pod.spread.iter().map(of_constraint).collect()
}
