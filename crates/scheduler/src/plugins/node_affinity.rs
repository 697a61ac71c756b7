//! A pod runs where its `nodeSelector` and required node affinity allow, and rather where its preferences are met.

use std::collections::BTreeSet;

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Normalize, Points, Reason, Rejection, Score, Shortfall},
    placement::{allows, is_required, matches, meets, unselected},
    snapshot::Row,
};

pub(crate) const NAME: &str = "NodeAffinity";

pub(super) const PLUGIN: Plugin = Plugin {
    name: NAME,
    filter: Some(filter),
    only_nodes: Some(only_nodes),
    shortfall: Some(Shortfall { size: shortfall, text: shortfall_text }),
    score: Some(Score { weight: 2, points: Points::Each { raw, normalize: Normalize::ToMost } }),
    actor: Actor::Author,
    wait: "NodeAffinity",
    ..Plugin::NONE
};

/// As in `NodeAffinity.Filter`: what the configuration adds (`addedAffinity`) comes first.
fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, arguments: &Arguments, rejection: &mut Rejection<'p>) {
    if !meets(&arguments.added_affinity, row) {
        rejection.finally_because(Reason::Text("node(s) didn't match scheduler-enforced node affinity"));
    } else if !allows(pod, row) {
        rejection.finally_because(Reason::Text("node(s) didn't match Pod's node affinity/selector"));
    }
}

/// Where each term that is required names nodes, the pod runs on none but these.
fn only_nodes(pod: &PodInfo) -> Option<BTreeSet<&str>> {
    let mut names = BTreeSet::new();
    for term in &pod.affinity.required.as_ref()?.node_selector_terms {
        let named = term.match_fields.iter().find(|it| it.key == "metadata.name" && it.operator == "In")?;
        names.extend(named.values.iter().map(|it| &**it));
    }
    Some(names)
}

fn shortfall(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> i64 {
    let n_missing = unselected(pod, row).count() + usize::from(!is_required(pod, row));
    i64::try_from(n_missing).unwrap_or(i64::MAX)
}

fn shortfall_text(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> String {
    let labels = unselected(pod, row).map(|(key, value)| format!("lacks the label {key}={value}"));
    let term = (!is_required(pod, row)).then(|| "matches no term of the required node affinity".to_owned());
    labels.chain(term).collect::<Vec<_>>().join(", ")
}

fn raw(pod: &PodInfo, row: &Row<'_>, arguments: &Arguments) -> i64 {
    let terms = arguments.added_affinity.preferred.iter().chain(&pod.affinity.preferred);
    terms.filter(|it| matches(&it.preference, row)).map(|it| it.weight).sum()
}
