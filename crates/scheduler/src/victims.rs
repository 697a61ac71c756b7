//! Who leaves with whom: pods of a PodGroup whose `disruptionMode` is `all` go together or stay together (KEP-5710), any other pod
//! goes alone.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_meta::{Key, Time};

use crate::{PodInfo, budgets::Budgets, entry::Entry, pod_groups::PodGroups};

/// Pods that go together.
pub(crate) struct Unit {
    /// Each with its node.
    pub(crate) pods: Vec<(Arc<PodInfo>, String)>,
    pub(crate) priority: i32,
    is_of_group: bool,
    start_time: Option<Time>,
}

impl Unit {
    /// Those among which `pods` are, on whatever node: each pod is in one of them.
    pub(crate) fn all<'p>(
        pods: impl Iterator<Item = &'p Arc<PodInfo>>,
        entries: &BTreeMap<Key, Entry>,
        groups: &PodGroups,
    ) -> Vec<Self> {
        let (mut units, mut seen) = (Vec::new(), BTreeSet::new());
        for pod in pods {
            match groups.disrupted_whole(pod) {
                None => units.push(Self::of(std::iter::once(&pod.key), pod, entries, groups)),
                Some(group) if seen.insert(group) => units.push(Self::of(groups.members(group), pod, entries, groups)),
                Some(_) => {}
            }
        }
        units
    }

    fn of<'k>(
        keys: impl Iterator<Item = &'k Key>,
        one: &PodInfo,
        entries: &BTreeMap<Key, Entry>,
        groups: &PodGroups,
    ) -> Self {
        let placed: Vec<&Entry> =
            keys.filter_map(|it| entries.get(it)).filter(|it| it.place.node().is_some()).collect();
        Self {
            priority: groups.priority_of(one),
            is_of_group: one.group.as_ref().is_some_and(|it| groups.get(it).is_some()),
            start_time: placed.iter().filter_map(|it| it.start_time).min(),
            pods: placed
                .into_iter()
                .filter_map(|it| Some((Arc::clone(&it.info), it.place.node()?.to_owned())))
                .collect(),
        }
    }

    /// `MoreImportantVictim`: the higher priority, then pods of a group, then the more of them, then the longer run.
    pub(crate) fn compare_importance(&self, other: &Self) -> Ordering {
        let rank = |it: &Self| {
            let first = it.pods.first().map(|it| it.0.key.clone());
            let size = Reverse((it.is_of_group, it.pods.len()));
            (Reverse(it.priority), size, it.start_time.is_none(), it.start_time, first)
        };
        rank(self).cmp(&rank(other))
    }

    /// How many of its pods some budget would not let go, for each of these, which are the most important first
    /// (`FilterVictimsWithPDBViolation`).
    pub(crate) fn violations(units: &[Self], budgets: &Budgets) -> Vec<usize> {
        let mut violated = budgets.are_violated(units.iter().flat_map(|it| &it.pods).map(|it| &*it.0)).into_iter();
        let of = |it: &Self| violated.by_ref().take(it.pods.len()).filter(|it| *it).count();
        units.iter().map(of).collect()
    }
}
