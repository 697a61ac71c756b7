//! A pod runs where its `nodeSelector` and required node affinity allow, and rather where its preferences are met.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    framework::{Gap, Normalize, Reason, Score},
    placement::{allows, is_required, matches, unselected},
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
