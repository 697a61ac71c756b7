//! Pods that must run near certain others, or away from them: `podAffinity` and `podAntiAffinity`, as far as required.
//!
//! Anti-affinity works both ways: a pod that is placed keeps those away that its terms match. What is only preferred is
//! not scored yet. Labels of namespaces are not known here: a pod that selects namespaces by them is not placed, and one
//! that was placed by hand is taken to keep pods of every namespace away.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{LabelSelector, ObjectMeta, Selector, selector::Requirement};
use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo, Snapshot,
    framework::{Among, Reason},
    seen::PodAffinityTerm,
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "InterPodAffinity",
    pre_filter: Some(pre_filter),
    filter_among: Some(filter),
    actor: Actor::Author,
    wait: "InterPodAffinity",
    ..Plugin::NONE
};

/// One required term, ready to be matched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    namespaces: Namespaces,
    /// Without one it matches no pod.
    selector: Option<Selector>,
    topology_key: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Namespaces {
    All,
    Listed(BTreeSet<String>),
    /// Selected by labels.
    Unknown,
}

/// How many pods there are by the label and value of their nodes.
type Counts<'a> = BTreeMap<(&'a str, &'a str), usize>;

/// The pods that bear on one pod.
#[derive(Default)]
pub(crate) struct Neighbours<'a> {
    /// Those that match all its affinity terms.
    wanted: Counts<'a>,
    /// Those that match one of its anti-affinity terms.
    unwanted: Counts<'a>,
    /// Those with an anti-affinity term that matches it.
    repelling: Counts<'a>,
}

impl Term {
    pub(crate) fn all(terms: &[PodAffinityTerm], owner: &ObjectMeta) -> Vec<Self> {
        terms.iter().map(|it| Self::new(it, owner)).collect()
    }

    fn new(term: &PodAffinityTerm, owner: &ObjectMeta) -> Self {
        let namespaces = match &term.namespace_selector {
            None if term.namespaces.is_empty() => Namespaces::Listed([owner.namespace.clone()].into()),
            None => Namespaces::Listed(term.namespaces.iter().cloned().collect()),
            Some(it) if it.selector().is_empty() => Namespaces::All,
            Some(_) => Namespaces::Unknown,
        };
        let (same, other) = (&term.match_label_keys, &term.mismatch_label_keys);
        let selector = narrowed(term.label_selector.as_ref(), &owner.labels, same, other);
        Self { namespaces, selector, topology_key: term.topology_key.clone() }
    }

    pub(crate) fn matches(&self, pod: &PodInfo) -> bool {
        let is_near = match &self.namespaces {
            Namespaces::All | Namespaces::Unknown => true,
            Namespaces::Listed(names) => names.contains(&pod.key.namespace),
        };
        is_near && self.selector.as_ref().is_some_and(|it| it.matches(&pod.labels))
    }

    /// The pair that a node's pods are counted under, where the node has the label at all.
    fn pair<'a>(&'a self, row: &Row<'a>) -> Option<(&'a str, &'a str)> {
        row.labels.get(&self.topology_key).map(|value| (&*self.topology_key, &**value))
    }
}

/// The selector with what `matchLabelKeys` and `mismatchLabelKeys` add: the owner's own values, or any but those.
pub(super) fn narrowed(
    selector: Option<&LabelSelector>,
    labels: &BTreeMap<String, String>,
    same: &[String],
    other: &[String],
) -> Option<Selector> {
    let mut selector = selector?.selector();
    let own = |key: &String| labels.get(key).map(|it| BTreeSet::from([it.clone()]));
    selector.0.extend(same.iter().filter_map(|key| Some(Requirement::In(key.clone(), own(key)?))));
    selector.0.extend(other.iter().filter_map(|key| Some(Requirement::NotIn(key.clone(), own(key)?))));
    Some(selector)
}

fn pre_filter(pod: &PodInfo) -> Option<String> {
    let mut terms = pod.pod_affinity.iter().chain(&pod.pod_anti_affinity);
    let message = "a pod affinity term with a namespaceSelector that is not empty is not supported yet, \
        list the namespaces in the term's namespaces instead";
    terms.any(|it| it.namespaces == Namespaces::Unknown).then(|| message.to_owned())
}

pub(crate) fn neighbours<'a>(pod: &'a PodInfo, snapshot: &'a Snapshot) -> Neighbours<'a> {
    let mut found = Neighbours::default();
    let is_picky = !pod.pod_affinity.is_empty() || !pod.pod_anti_affinity.is_empty();
    if !is_picky && !snapshot.has_repelling_pods() {
        return found;
    }
    for row in snapshot.nodes().filter(|it| is_picky || it.has_repelling_pods) {
        for other in row.pods.values() {
            found.add(pod, other, &row);
        }
    }
    found
}

impl<'a> Neighbours<'a> {
    fn add(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>) {
        let count = |counts: &mut Counts<'a>, term: &'a Term| {
            if let Some(pair) = term.pair(row) {
                *counts.entry(pair).or_default() += 1;
            }
        };
        if pod.pod_affinity.iter().all(|it| it.matches(other)) {
            pod.pod_affinity.iter().for_each(|it| count(&mut self.wanted, it));
        }
        let unwanted = pod.pod_anti_affinity.iter().filter(|it| it.matches(other));
        unwanted.for_each(|it| count(&mut self.unwanted, it));
        let repelling = other.pod_anti_affinity.iter().filter(|it| it.matches(pod));
        repelling.for_each(|it| count(&mut self.repelling, it));
    }
}

/// As upstream, the first of the three rules that is broken is the one that is told.
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

/// As upstream: the first of a group of pods that want each other may go anywhere that has the labels.
fn is_wanted(pod: &PodInfo, row: &Row<'_>, wanted: &Counts<'_>) -> bool {
    let terms = &pod.pod_affinity;
    let has_labels = terms.iter().all(|it| row.labels.contains_key(&it.topology_key));
    let is_first = || wanted.is_empty() && terms.iter().all(|it| it.matches(pod));
    has_labels && (terms.iter().all(|it| has(wanted, it, row)) || is_first())
}

fn has(counts: &Counts<'_>, term: &Term, row: &Row<'_>) -> bool {
    term.pair(row).is_some_and(|it| counts.contains_key(&it))
}
