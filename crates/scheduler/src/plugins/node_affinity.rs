//! A pod runs where its `nodeSelector` and required node affinity allow, and rather where its preferences are met.

use std::collections::BTreeMap;

use corten_api::scheduling::{node_field, requirement_holds, term_matches};
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

fn matches(term: &NodeSelectorTerm, row: &Row<'_>) -> bool {
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
