//! A topology spread constraint of a pod.

use std::collections::BTreeMap;

use corten_meta::Selector;

use super::affinity_term::narrowed;
use crate::projections::TopologySpreadConstraint;

/// One constraint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constraint {
    pub(crate) max_skew: i64,
    pub(crate) topology_key: String,
    /// Without one it counts no pod.
    pub(crate) selector: Option<Selector>,
    pub(crate) domains_min: usize,
    /// Nodes the pod may not run on do not count: by its node affinity, by its tolerations.
    pub(crate) honors_affinity: bool,
    pub(crate) honors_taints: bool,
}

const SOFT: &str = "ScheduleAnyway";

impl Constraint {
    /// Those that say `DoNotSchedule`.
    pub(crate) fn hard(constraints: &[TopologySpreadConstraint], labels: &BTreeMap<String, String>) -> Vec<Self> {
        Self::all(constraints.iter().filter(|it| it.when_unsatisfiable != SOFT), labels)
    }

    /// Those that say `ScheduleAnyway`.
    pub(crate) fn soft(constraints: &[TopologySpreadConstraint], labels: &BTreeMap<String, String>) -> Vec<Self> {
        Self::all(constraints.iter().filter(|it| it.when_unsatisfiable == SOFT), labels)
    }

    fn all<'a>(
        constraints: impl Iterator<Item = &'a TopologySpreadConstraint>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Self> {
        let constraint = |it: &TopologySpreadConstraint| Self {
            max_skew: it.max_skew,
            topology_key: it.topology_key.clone(),
            selector: narrowed(it.label_selector.as_ref(), labels, &it.match_label_keys, &[]),
            domains_min: usize::try_from(it.min_domains.unwrap_or(1)).unwrap_or(1),
            honors_affinity: it.node_affinity_policy != "Ignore",
            honors_taints: it.node_taints_policy == "Honor",
        };
        constraints.map(constraint).collect()
    }

    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|it| it.matches(labels))
    }
}
