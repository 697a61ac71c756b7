//! Pods of one kind spread over zones, nodes or any other label: `topologySpreadConstraints` that say `DoNotSchedule`.
//!
//! `ScheduleAnyway` is not scored yet, nor are upstream's own soft constraints for pods that have none: they cost no pod
//! its place.

use std::collections::BTreeMap;

use corten_meta::Selector;
use corten_reconcile::Actor;

use super::{inter_pod_affinity::narrowed, node_affinity, taint_toleration};
use crate::{
    Plugin, PodInfo, Snapshot,
    framework::{Among, Reason},
    seen::TopologySpreadConstraint,
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PodTopologySpread",
    filter_among: Some(filter),
    actor: Actor::Author,
    wait: "PodTopologySpread",
    ..Plugin::NONE
};

/// One constraint that says `DoNotSchedule`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constraint {
    max_skew: i64,
    topology_key: String,
    /// Without one it counts no pod.
    selector: Option<Selector>,
    domains_min: usize,
    /// Nodes the pod may not run on do not count: by its node affinity, by its tolerations.
    honors_affinity: bool,
    honors_taints: bool,
}

/// Whether the pod may run on a node: found once for all of its constraints.
#[derive(Clone, Copy)]
struct Allowed {
    by_affinity: bool,
    by_taints: bool,
}

impl Allowed {
    fn of(pod: &PodInfo, row: &Row<'_>) -> Self {
        let by_taints = taint_toleration::untolerated(pod, row).next().is_none();
        Self { by_affinity: node_affinity::allows(pod, row), by_taints }
    }
}

/// How many pods one constraint counts in each domain.
pub(crate) struct Domains<'a> {
    counts: BTreeMap<&'a str, i64>,
    /// The fewest in any domain; zero while there are fewer domains than asked for.
    fewest: i64,
}

impl Constraint {
    pub(crate) fn all(constraints: &[TopologySpreadConstraint], labels: &BTreeMap<String, String>) -> Vec<Self> {
        let hard = constraints.iter().filter(|it| it.when_unsatisfiable != "ScheduleAnyway");
        let constraint = |it: &TopologySpreadConstraint| Self {
            max_skew: it.max_skew,
            topology_key: it.topology_key.clone(),
            selector: narrowed(it.label_selector.as_ref(), labels, &it.match_label_keys, &[]),
            domains_min: usize::try_from(it.min_domains.unwrap_or(1)).unwrap_or(1),
            honors_affinity: it.node_affinity_policy != "Ignore",
            honors_taints: it.node_taints_policy == "Honor",
        };
        hard.map(constraint).collect()
    }

    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|it| it.matches(labels))
    }

    fn counts_node(&self, allowed: Allowed) -> bool {
        (!self.honors_affinity || allowed.by_affinity) && (!self.honors_taints || allowed.by_taints)
    }

    /// As upstream: pods that are being deleted do not count, and an empty selector counts none but the pod itself.
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

/// One for each of the pod's constraints, in order. As upstream, only nodes with the labels of all of them count.
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

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, reasons: &mut Vec<Reason<'p>>) {
    for (constraint, domains) in pod.spread.iter().zip(&among.spread) {
        let Some(domain) = row.labels.get(&constraint.topology_key) else {
            reasons.push(Reason::Text("node(s) didn't match pod topology spread constraints (missing required label)"));
            return;
        };
        let here = domains.counts.get(&**domain).copied().unwrap_or(0) + i64::from(constraint.selects(&pod.labels));
        if here - domains.fewest > constraint.max_skew {
            reasons.push(Reason::Text("node(s) didn't match pod topology spread constraints"));
            return;
        }
    }
}
