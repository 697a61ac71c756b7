//! Which nodes a daemon set's pods may run on: node name, node selector, required node affinity and taints.

use corten_api::scheduling::{node_field, requirement_holds, term_matches};
use corten_meta::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::Value;

use crate::projections::{DaemonNode, DaemonSet, Toleration};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    ShouldRun,
    /// A pod that is there may stay, a new one is not made: a taint that does not evict.
    MayStay,
    MustNot,
}

/// What a set asks of a node.
pub(super) struct Eligible {
    node_name: String,
    labels: Selector,
    /// One of them must match, if there are any.
    terms: Option<Vec<Term>>,
    tolerations: Vec<Toleration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_expressions: Vec<Requirement>,
    match_fields: Vec<Requirement>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    values: Vec<String>,
}

/// As in `AddOrUpdateDaemonPodTolerations`: daemons stay on nodes that are in trouble, and come to nodes that take no other pods.
pub(super) const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Only for pods in the node's network.
pub(super) const TOLERATED_BY_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The taints that a set's pods tolerate whatever their template says.
pub(super) fn tolerated(template: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_host_network = template["spec"]["hostNetwork"] == true;
    TOLERATED.iter().copied().chain(is_host_network.then_some(TOLERATED_BY_HOST_NETWORK))
}

impl Eligible {
    pub(super) fn of(set: &DaemonSet) -> Self {
        let template = &set.spec.template;
        let spec = &template["spec"];
        let labels = LabelSelector {
            match_labels: Deserialize::deserialize(&spec["nodeSelector"]).unwrap_or_default(),
            ..LabelSelector::default()
        };
        let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = required["nodeSelectorTerms"].as_array();
        let mut tolerations: Vec<Toleration> = Deserialize::deserialize(&spec["tolerations"]).unwrap_or_default();
        tolerations.extend(tolerated(template).map(|(key, effect)| Toleration {
            key: key.into(),
            operator: "Exists".into(),
            effect: effect.into(),
            ..Toleration::default()
        }));
        Self {
            node_name: spec["nodeName"].as_str().unwrap_or_default().to_owned(),
            labels: labels.selector(),
            // A term that cannot be read has no requirement, and matches no node.
            terms: terms.map(|it| it.iter().map(|it| Term::deserialize(it).unwrap_or_default()).collect()),
            tolerations,
        }
    }

    pub(super) fn verdict(&self, node: &DaemonNode) -> Verdict {
        let is_named = self.node_name.is_empty() || self.node_name == node.metadata.name;
        let is_wanted = self.labels.matches(&node.metadata.labels)
            && self.terms.as_ref().is_none_or(|it| it.iter().any(|term| term.matches(node)));
        if !is_named || !is_wanted {
            return Verdict::MustNot;
        }
        let mut intolerable = node.spec.taints.iter().filter(|it| {
            matches!(&*it.effect, "NoSchedule" | "NoExecute") && !self.tolerations.iter().any(|mine| mine.tolerates(it))
        });
        match (intolerable.clone().next(), intolerable.any(|it| it.effect == "NoExecute")) {
            (None, _) => Verdict::ShouldRun,
            (_, true) => Verdict::MustNot,
            (_, false) => Verdict::MayStay,
        }
    }
}

impl Term {
    fn matches(&self, node: &DaemonNode) -> bool {
        let label = |key: &str| node.metadata.labels.get(key).map(|it| &**it);
        let labels = self.match_expressions.iter().map(|it| it.holds(label(&it.key)));
        let fields = self.match_fields.iter().map(|it| it.holds(node_field(&it.key, &node.metadata.name)));
        term_matches(labels.chain(fields))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        requirement_holds(&self.operator, self.values.iter().map(String::as_str), value)
    }
}
