//! A term of a pod's affinity or anti-affinity to others.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{LabelSelector, ObjectMeta, Selector, selector::Requirement};

use super::PodInfo;
use crate::{
    namespaces::NamespaceLabels,
    projections::{PodAffinityTerm, WeightedPodAffinityTerm},
};

/// One term, ready to be matched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    /// The namespaces it names.
    namespaces: BTreeSet<String>,
    /// Those it selects by their labels, too.
    namespace_selector: Option<Selector>,
    /// Without one it matches no pod.
    selector: Option<Selector>,
    pub(crate) topology_key: String,
}

/// A term that is preferred, by how much.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WeightedTerm {
    pub(crate) weight: i64,
    pub(crate) term: Term,
}

impl WeightedTerm {
    pub(crate) fn all(terms: &[WeightedPodAffinityTerm], owner: &ObjectMeta) -> Vec<Self> {
        let one =
            |it: &WeightedPodAffinityTerm| Self { weight: it.weight, term: Term::new(&it.pod_affinity_term, owner) };
        terms.iter().map(one).collect()
    }
}

impl Term {
    pub(crate) fn all(terms: &[PodAffinityTerm], owner: &ObjectMeta) -> Vec<Self> {
        terms.iter().map(|it| Self::new(it, owner)).collect()
    }

    /// As in `getNamespacesFromPodAffinityTerm`: a term that says nothing of namespaces is about its pod's own.
    fn new(term: &PodAffinityTerm, owner: &ObjectMeta) -> Self {
        let says_nothing = term.namespaces.is_empty() && term.namespace_selector.is_none();
        let namespaces =
            if says_nothing { [owner.namespace.clone()].into() } else { term.namespaces.iter().cloned().collect() };
        let namespace_selector = term.namespace_selector.as_ref().map(LabelSelector::selector);
        let (same, other) = (&term.match_label_keys, &term.mismatch_label_keys);
        let selector = narrowed(term.label_selector.as_ref(), &owner.labels, same, other);
        Self { namespaces, namespace_selector, selector, topology_key: term.topology_key.clone() }
    }

    pub(crate) fn matches(&self, pod: &PodInfo, namespaces: &NamespaceLabels) -> bool {
        let is_selected = || {
            let selector = self.namespace_selector.as_ref();
            selector.is_some_and(|it| it.is_empty() || it.matches(namespaces.of(&pod.key.namespace)))
        };
        let is_near = self.namespaces.contains(&pod.key.namespace) || is_selected();
        is_near && self.selector.as_ref().is_some_and(|it| it.matches(&pod.labels))
    }

    /// Does it depend on the labels of namespaces?
    pub(crate) fn selects_namespaces(&self) -> bool {
        self.namespace_selector.as_ref().is_some_and(|it| !it.is_empty())
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
