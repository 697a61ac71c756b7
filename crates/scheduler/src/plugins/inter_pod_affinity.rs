//! Pods that must run near certain others, or away from them: `podAffinity` and `podAntiAffinity`, as far as required.
//!
//! Anti-affinity works both ways: a pod that is placed keeps those away that its terms match. What is only preferred is
//! not scored yet. Labels of namespaces are not known here: a pod that selects namespaces by them is not placed, and one
//! that was placed by hand is taken to keep pods of every namespace away.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::{Among, Counts, pair},
    framework::{Reason, Refusal},
    pod_info::{Namespaces, Term},
    snapshot::{Row, Snapshot},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "InterPodAffinity",
    pre_filter: Some(pre_filter),
    filter_among: Some(filter),
    actor: Actor::Author,
    wait: "InterPodAffinity",
    ..Plugin::NONE
};

fn pre_filter(pod: &PodInfo, _snapshot: &Snapshot) -> Option<Refusal> {
    let mut terms = pod.pod_affinity.iter().chain(&pod.pod_anti_affinity);
    let message = "a pod affinity term with a namespaceSelector that is not empty is not supported yet, \
        list the namespaces in the term's namespaces instead";
    terms.any(|it| it.namespaces == Namespaces::Unknown).then(|| Refusal { message: message.to_owned(), claim: None })
}

/// As in `InterPodAffinity.Filter`, the first of the three rules that is broken is the one that is told.
fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, reasons: &mut Vec<Reason<'p>>) {
    let near = &among.affinity;
    if !is_wanted(pod, row, &near.wanted) {
        reasons.push(Reason::Text("node(s) didn't match pod affinity rules"));
    } else if pod.pod_anti_affinity.iter().any(|it| has(&near.unwanted, it, row)) {
        reasons.push(Reason::Text("node(s) didn't match pod anti-affinity rules"));
    } else if near.repelling.keys().any(|(key, value)| row.labels.get(*key).is_some_and(|it| it == value)) {
        reasons.push(Reason::Text("node(s) didn't satisfy existing pods anti-affinity rules"));
    }
}

/// As in `satisfyPodAffinity`: the first of a group of pods that want each other may go anywhere that has the labels.
fn is_wanted(pod: &PodInfo, row: &Row<'_>, wanted: &Counts<'_>) -> bool {
    let terms = &pod.pod_affinity;
    let has_labels = terms.iter().all(|it| row.labels.contains_key(&it.topology_key));
    let is_first = || wanted.is_empty() && terms.iter().all(|it| it.matches(pod));
    has_labels && (terms.iter().all(|it| has(wanted, it, row)) || is_first())
}

fn has(counts: &Counts<'_>, term: &Term, row: &Row<'_>) -> bool {
    pair(term, row).is_some_and(|it| counts.contains_key(&it))
}
