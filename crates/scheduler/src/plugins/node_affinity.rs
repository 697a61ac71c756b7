//! A pod runs where its `nodeSelector` and required node affinity allow, and rather where its preferences are met.

use std::collections::BTreeMap;

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    framework::{Gap, Normalize, Reason, Score},
    seen::{NodeSelectorRequirement, NodeSelectorTerm},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeAffinity",
    filter: Some(filter),
    gap: Some(Gap { size: gap, text: gap_text }),
    score: Some(Score { weight: 2, raw, normalize: Normalize::ToMost }),
    actor: Actor::Author,
    wait: "NodeAffinity",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, reasons: &mut Vec<Reason<'p>>) {
    if !allows(pod, row) {
        reasons.push(Reason::Text("node(s) didn't match Pod's node affinity/selector"));
    }
}

/// Do the pod's selector and its required affinity allow the node?
pub(super) fn allows(pod: &PodInfo, row: &Row<'_>) -> bool {
    unselected(pod, row).next().is_none() && is_required(pod, row)
}

/// The labels of the node selector that the node has not.
fn unselected<'p>(pod: &'p PodInfo, row: &Row<'_>) -> impl Iterator<Item = &'p (String, String)> {
    pod.node_selector.iter().filter(|(key, value)| row.labels.get(key) != Some(value))
}

fn is_required(pod: &PodInfo, row: &Row<'_>) -> bool {
    let mut required = pod.affinity.required.iter();
    required.all(|it| it.node_selector_terms.iter().any(|it| matches(it, row)))
}

fn gap(pod: &PodInfo, row: &Row<'_>) -> i64 {
    let n_missing = unselected(pod, row).count() + usize::from(!is_required(pod, row));
    i64::try_from(n_missing).unwrap_or(i64::MAX)
}

fn gap_text(pod: &PodInfo, row: &Row<'_>) -> String {
    let labels = unselected(pod, row).map(|(key, value)| format!("lacks the label {key}={value}"));
    let term = (!is_required(pod, row)).then(|| "matches no term of the required node affinity".to_owned());
    labels.chain(term).collect::<Vec<_>>().join(", ")
}

fn raw(pod: &PodInfo, row: &Row<'_>) -> i64 {
    pod.affinity.preferred.iter().filter(|it| matches(&it.preference, row)).map(|it| it.weight).sum()
}

/// As upstream: a term without any requirement matches no node.
fn matches(term: &NodeSelectorTerm, row: &Row<'_>) -> bool {
    let is_empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    !is_empty
        && term.match_expressions.iter().all(|it| holds(it, label(row.labels, &it.key)))
        && term.match_fields.iter().all(|it| holds(it, (it.key == "metadata.name").then_some(row.name)))
}

fn label<'a>(labels: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    labels.get(key).map(String::as_str)
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let is_listed = || value.is_some_and(|it| requirement.values.contains(it));
    let number = || value.and_then(|it| it.parse::<i64>().ok()).zip(requirement.values.first()?.parse::<i64>().ok());
    match &*requirement.operator {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().is_some_and(|(value, bound)| value > bound),
        "Lt" => number().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}
