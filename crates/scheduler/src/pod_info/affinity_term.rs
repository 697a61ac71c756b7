//! A required term of a pod's affinity or anti-affinity to others.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{LabelSelector, ObjectMeta, Selector, selector::Requirement};

use super::PodInfo;
use crate::projections::PodAffinityTerm;

/// One required term, ready to be matched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) namespaces: Namespaces,
    /// Without one it matches no pod.
    selector: Option<Selector>,
    pub(crate) topology_key: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Namespaces {
    All,
    Listed(BTreeSet<String>),
    /// Selected by labels.
    Unknown,
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
}

/// The selector with what `matchLabelKeys` and `mismatchLabelKeys` add: the owner's own values, or any but those.
pub(crate) fn narrowed(
    selector: Option<&LabelSelector>,
    labels: &BTreeMap<String, String>,
    same: &[String],
    other: &[String],
) -> Option<Selector> {
    let requirements = selector?.requirements();
    let own = |key: &String| labels.get(key).map(|it| BTreeSet::from([it.clone()]));
    let same = same.iter().filter_map(|key| Some(Requirement::In(key.clone(), own(key)?)));
    let other = other.iter().filter_map(|key| Some(Requirement::NotIn(key.clone(), own(key)?)));
    Some(requirements.chain(same).chain(other).collect())
}
