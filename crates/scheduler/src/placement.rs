//! May a pod run on a node, by the node's labels and taints? What plugins of several extension points ask.

use std::collections::BTreeMap;

use corten_api::scheduling::{self, node_field, requirement_holds, term_matches};

use crate::{
    PodInfo,
    projections::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration},
    snapshot::Row,
};

/// Do the pod's selector and its required affinity allow the node?
pub(crate) fn allows(pod: &PodInfo, row: &Row<'_>) -> bool {
    unselected(pod, row).next().is_none() && is_required(pod, row)
}

/// The labels of the node selector that the node has not.
pub(crate) fn unselected<'p>(pod: &'p PodInfo, row: &Row<'_>) -> impl Iterator<Item = &'p (String, String)> {
    pod.node_selector.iter().filter(|(key, value)| row.labels.get(key) != Some(value))
}

pub(crate) fn is_required(pod: &PodInfo, row: &Row<'_>) -> bool {
    meets(&pod.affinity, row)
}

/// Does the node match what the affinity requires, if anything?
pub(crate) fn meets(affinity: &NodeAffinity, row: &Row<'_>) -> bool {
    let mut required = affinity.required.iter();
    required.all(|it| it.node_selector_terms.iter().any(|it| matches(it, row)))
}

pub(crate) fn matches(term: &NodeSelectorTerm, row: &Row<'_>) -> bool {
    let labels = term.match_expressions.iter().map(|it| holds(it, label(row.labels, &it.key)));
    let fields = term.match_fields.iter().map(|it| holds(it, node_field(&it.key, row.name)));
    term_matches(labels.chain(fields))
}

fn label<'a>(labels: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    labels.get(key).map(String::as_str)
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    requirement_holds(&requirement.operator, requirement.values.iter().map(|it| &**it), value)
}

/// The taints that keep the pod off the node.
pub(crate) fn untolerated<'r>(pod: &PodInfo, row: &Row<'r>) -> impl Iterator<Item = &'r Taint> {
    let strict = row.taints.iter().filter(|it| matches!(&*it.effect, "NoSchedule" | "NoExecute"));
    strict.filter(|it| !tolerates(&pod.tolerations, &it.key, &it.value, &it.effect))
}

pub(crate) fn tolerates(tolerations: &[Toleration], key: &str, value: &str, effect: &str) -> bool {
    tolerations.iter().any(|it| {
        let of = scheduling::Toleration { key: &it.key, operator: &it.operator, value: &it.value, effect: &it.effect };
        of.tolerates(scheduling::Taint { key, value, effect })
    })
}
