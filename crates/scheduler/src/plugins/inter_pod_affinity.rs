//! Pods that run near certain others, or away from them: `podAffinity` and `podAntiAffinity`.
//!
//! What is required works both ways only for anti-affinity: a pod that is placed keeps those away that its terms match. What is
//! preferred always works both ways, and what a placed pod requires draws others to it, too.

use std::collections::BTreeMap;

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::{Among, Counts, pair},
    framework::{Points, Reason, Rejection, SCORE_MAX, Score, Scoring, real, whole},
    pod_info::{Term, WeightedTerm},
    snapshot::{Row, Snapshot},
    topology_pod_counts::{DomainCounts, PodSignature},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "InterPodAffinity",
    filter_among: Some(filter),
    skips: Some(|pod, snapshot, _| {
        pod.pod_affinity.is_empty() && pod.pod_anti_affinity.is_empty() && !snapshot.has_repelling_pods()
    }),
    score: Some(Score { weight: 2, points: Points::All(points) }),
    actor: Actor::Author,
    wait: "InterPodAffinity",
    ..Plugin::NONE
};

/// As in `InterPodAffinity.Filter`, the first of the three rules that is broken is the one that is told.
fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    let near = &among.affinity;
    if !is_wanted(pod, row, among) {
        rejection.finally_because(Reason::Text("node(s) didn't match pod affinity rules"));
    } else if pod.pod_anti_affinity.iter().any(|it| has(&near.unwanted, it, row)) {
        rejection.because(Reason::Text("node(s) didn't match pod anti-affinity rules"));
    } else if near.repelling.has_any_near(row) {
        rejection.because(Reason::Text("node(s) didn't satisfy existing pods anti-affinity rules"));
    }
}

/// As in `satisfyPodAffinity`: the first of a group of pods that want each other may go anywhere that has the labels.
fn is_wanted(pod: &PodInfo, row: &Row<'_>, among: &Among<'_>) -> bool {
    let (wanted, namespaces) = (&among.affinity.wanted, among.affinity.namespaces);
    let terms = &pod.pod_affinity;
    let has_labels = terms.iter().all(|it| row.labels.contains_key(&it.topology_key));
    let is_first = || wanted.is_empty() && terms.iter().all(|it| it.matches(pod, namespaces));
    has_labels && (terms.iter().all(|it| has(wanted, it, row)) || is_first())
}

fn has(counts: &Counts<'_>, term: &Term, row: &Row<'_>) -> bool {
    pair(term, row).is_some_and(|(key, value)| counts.has(key, value))
}

/// How much pods draw this one to the nodes with a label, by its key: each of a value, and all in some domains.
#[derive(Default)]
struct Pull<'a> {
    by_value: BTreeMap<&'a str, BTreeMap<&'a str, i64>>,
    by_domain: BTreeMap<&'a str, Vec<(&'a DomainCounts, i64)>>,
}

impl<'a> Pull<'a> {
    /// Calls `one` for each term that draws the pod to the other, or keeps it away, with how much it does (`processExistingPod`).
    fn terms_of(
        pod: &'a PodInfo,
        other: &'a PodInfo,
        (hard_weight, snapshot): (i64, &Snapshot),
        mut one: impl FnMut(&'a Term, i64),
    ) {
        let namespaces = &snapshot.namespaces;
        let of = |terms: &'a [WeightedTerm], sign: i64| terms.iter().map(move |it| (&it.term, it.weight * sign));
        let own = of(&pod.preferred_affinity, 1).chain(of(&pod.preferred_anti_affinity, -1));
        for (term, weight) in own.filter(|it| it.0.matches(other, namespaces)) {
            one(term, weight);
        }
        let required = other.pod_affinity.iter().filter(|_| hard_weight > 0).map(|it| (it, hard_weight));
        let preferred = of(&other.preferred_affinity, 1).chain(of(&other.preferred_anti_affinity, -1));
        for (term, weight) in required.chain(preferred).filter(|it| it.0.matches(pod, namespaces)) {
            one(term, weight);
        }
    }

    fn add_signature(&mut self, pod: &'a PodInfo, signature: &'a PodSignature, of: (i64, &Snapshot)) {
        Self::terms_of(pod, &signature.info, of, |term, weight| {
            if let Some(domains) = signature.domains(&term.topology_key) {
                self.by_domain.entry(&term.topology_key).or_default().push((domains, weight));
            }
        });
    }

    fn add_pod(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>, of: (i64, &Snapshot)) {
        Self::terms_of(pod, other, of, |term, weight| {
            if let Some((key, value)) = pair(term, row) {
                let sum = self.by_value.entry(key).or_default().entry(value).or_default();
                *sum = sum.saturating_add(weight);
            }
        });
    }

    fn on(&self, row: &Row<'_>) -> i64 {
        let values = self.by_value.iter().filter_map(|(key, values)| values.get(row.labels.get(*key)?.as_str()));
        let domains = self.by_domain.iter().filter_map(|(key, all)| Some((row.labels.get(*key)?, all)));
        let domains =
            domains.flat_map(|(value, all)| all.iter().map(move |(domains, weight)| (domains.count(value), weight)));
        let domains = domains.map(|(count, weight)| weight.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX)));
        values.copied().chain(domains).fold(0, i64::saturating_add)
    }
}

/// `PreScore`, `Score` and `NormalizeScore`: unless the pod has preferences, only pods that have are looked at.
fn points(scoring: &Scoring<'_>) -> Option<Vec<i64>> {
    let Scoring { pod, snapshot, feasible, arguments } = *scoring;
    let has_preferences = !pod.preferred_affinity.is_empty() || !pod.preferred_anti_affinity.is_empty();
    let looks_at_others = snapshot.has_pods_with_affinity() && !arguments.affinity.ignores_preferred_terms_of_others;
    if !has_preferences && !looks_at_others {
        return None;
    }
    let mut pull = Pull::default();
    let of = (arguments.affinity.hard_weight, snapshot);
    let is_counted = snapshot.topology_pod_counts.counts_by(pod.keys_of_terms());
    for signature in
        snapshot.topology_pod_counts.signatures().filter(|it| is_counted && (has_preferences || it.info.has_affinity()))
    {
        pull.add_signature(pod, signature, of);
    }
    let looked_at = |it: &Row<'_>| !is_counted && (has_preferences || it.has_pods_with_affinity);
    for row in snapshot.nodes().filter(looked_at) {
        for other in row.pods.values().filter(|it| has_preferences || it.has_affinity()) {
            pull.add_pod(pod, other, &row, of);
        }
    }
    if pull.by_value.is_empty() && pull.by_domain.is_empty() {
        return None;
    }
    let mut points: Vec<i64> = feasible.iter().map(|it| pull.on(&snapshot.row_at(*it))).collect();
    let least = points.iter().copied().min().unwrap_or(0);
    let range = points.iter().copied().max().unwrap_or(0).saturating_sub(least);
    for it in &mut points {
        *it = if range > 0 { whole(real(SCORE_MAX) * (real(it.saturating_sub(least)) / real(range))) } else { 0 };
    }
    Some(points)
}
