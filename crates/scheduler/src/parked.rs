//! Pods that fit nowhere, those together that are alike: what happens is held against each such group once, however many are in it.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_meta::Key;

use crate::{
    PodInfo,
    ordered_pod::{OrderedPod, PodOrder},
};

/// Who turned a pod down, as far as it matters to what may help it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusedBy {
    /// A plugin that looks beyond the node: what happens on one node may help the pod on another.
    pub(crate) is_among: bool,
    /// An extender. What may help the pod nobody knows.
    pub(crate) is_extender: bool,
}

impl RefusedBy {
    pub(crate) fn or(self, other: Self) -> Self {
        Self { is_among: self.is_among || other.is_among, is_extender: self.is_extender || other.is_extender }
    }

    /// May something help the pod, if the plugins that turned it down care?
    pub(crate) fn may_be_helped(self, cares: impl FnOnce() -> bool) -> bool {
        self.is_extender || (self.is_among && cares())
    }
}

/// Pods that are alike and were turned down by the same.
pub(crate) struct ParkedGroup {
    /// One of them, perhaps of before.
    pub(crate) info: Arc<PodInfo>,
    pub(crate) refused_by: RefusedBy,
    pub(crate) keys: BTreeSet<Key>,
    /// So many changes were known when it was last found out why they fit nowhere.
    n_changes: u64,
    /// The number of the last look at why.
    look: u64,
    /// The last pod that was told something new; those behind it are told next.
    told: Option<Key>,
}

/// All groups, and where to look for the one of a pod.
#[derive(Default)]
pub(crate) struct Parked {
    groups: BTreeMap<u64, ParkedGroup>,
    by_request: BTreeMap<OrderedPod<ByRequest>, Vec<u64>>,
    n_groups: u64,
    /// How often something changed that may have been said to be in the way.
    n_changes: u64,
    n_looks: u64,
}

impl Parked {
    /// Answers the number of the pod's group.
    pub(crate) fn insert(&mut self, info: &Arc<PodInfo>, refused_by: RefusedBy) -> u64 {
        let numbers = self.by_request.entry(OrderedPod::new(info)).or_default();
        let groups = &mut self.groups;
        let is_one = |it: &&u64| groups[*it].refused_by == refused_by && groups[*it].info.is_alike(info);
        let number = numbers.iter().find(is_one).copied().unwrap_or_else(|| {
            self.n_groups += 1;
            numbers.push(self.n_groups);
            let (info, keys) = (Arc::clone(info), BTreeSet::new());
            let group = ParkedGroup { info, refused_by, keys, n_changes: self.n_changes, look: 0, told: None };
            groups.insert(self.n_groups, group);
            self.n_groups
        });
        groups.get_mut(&number).expect("it was there, or was made").keys.insert(info.key.clone());
        number
    }

    pub(crate) fn remove(&mut self, number: u64, key: &Key) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.keys.remove(key);
        if !group.keys.is_empty() {
            return;
        }
        let ordered = OrderedPod::new(&group.info);
        self.groups.remove(&number);
        if let Some(numbers) = self.by_request.get_mut(&ordered) {
            numbers.retain(|it| *it != number);
            if numbers.is_empty() {
                self.by_request.remove(&ordered);
            }
        }
    }

    pub(crate) fn refused_by(&self, number: u64) -> RefusedBy {
        self.groups.get(&number).map(|it| it.refused_by).unwrap_or_default()
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (u64, &ParkedGroup)> {
        self.groups.iter().map(|(number, group)| (*number, group))
    }

    /// What is said of why they fit nowhere may not be so any more.
    pub(crate) fn changed(&mut self) {
        self.n_changes += 1;
    }

    /// The groups of which that may be, up to so many, those first that have not been looked at for the longest.
    pub(crate) fn outdated(&self, n_max: usize) -> Vec<u64> {
        let mut outdated: Vec<(u64, u64)> =
            self.groups.iter().filter(|it| it.1.n_changes < self.n_changes).map(|it| (it.1.look, *it.0)).collect();
        outdated.sort_unstable();
        outdated.into_iter().map(|it| it.1).take(n_max).collect()
    }

    /// Its pods in the order in which they are told something new: from the one on that comes after who was told last.
    pub(crate) fn to_be_told(&self, number: u64) -> Vec<Key> {
        let Some(group) = self.groups.get(&number) else { return Vec::new() };
        let mut keys: Vec<Key> = group.keys.iter().cloned().collect();
        let n_before = group.told.as_ref().map_or(0, |told| keys.partition_point(|it| it <= told));
        keys.rotate_left(n_before);
        keys
    }

    /// It was looked at why the group fits nowhere, and this pod was the last one that was told something new.
    pub(crate) fn looked(&mut self, number: u64, told: Option<Key>) {
        self.n_looks += 1;
        if let Some(group) = self.groups.get_mut(&number) {
            group.look = self.n_looks;
            group.told = told.or(group.told.take());
        }
    }

    /// What is said of the group is so.
    pub(crate) fn is_up_to_date(&mut self, number: u64) {
        if let Some(group) = self.groups.get_mut(&number) {
            group.n_changes = self.n_changes;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// A plugin that looks beyond the node turns the group down by now.
    pub(crate) fn refuse_among(&mut self, number: u64) {
        if let Some(group) = self.groups.get_mut(&number) {
            group.refused_by.is_among = true;
        }
    }
}

/// What tells most pods apart that are not alike.
struct ByRequest;

impl PodOrder for ByRequest {
    fn compare(one: &PodInfo, other: &PodInfo) -> Ordering {
        let numbers = |it: &PodInfo| (it.priority, it.requested.cpu_millis, it.requested.memory_bytes);
        let namespaces = || one.key.namespace.cmp(&other.key.namespace);
        numbers(one).cmp(&numbers(other)).then_with(namespaces).then_with(|| one.labels.cmp(&other.labels))
    }
}
