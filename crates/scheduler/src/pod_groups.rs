//! PodGroups: pods that are scheduled together (KEP-4671), and which there are of each.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{Key, Named, ObjectMeta, Resource};
use corten_reconcile::Projection;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    PodInfo,
    labelled_group::{self, LabelledGroup},
};

/// Each pod that comes is told to all of its group, in groups of so many.
const TOLD_MAX: usize = 100;

/// The fields of a PodGroup that the scheduler reads.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PodGroup {
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: PodGroupSpec,
    #[serde(default)]
    status: PodGroupStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodGroupSpec {
    scheduling_policy: SchedulingPolicy,
    priority: i32,
    disruption_mode: DisruptionMode,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DisruptionMode {
    all: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SchedulingPolicy {
    gang: Option<GangPolicy>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GangPolicy {
    min_count: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodGroupStatus {
    conditions: Vec<Value>,
}

impl PodGroup {
    /// Fewer of its pods are not placed at all. Nothing where they are placed one by one.
    pub(crate) fn min_count(&self) -> Option<usize> {
        Some(self.spec.scheduling_policy.gang.as_ref()?.min_count)
    }

    pub(crate) fn condition(&self, condition_type: &str) -> Option<&Value> {
        self.status.conditions.iter().find(|it| it["type"] == condition_type)
    }
}

impl Named for PodGroup {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for PodGroup {
    const RESOURCE: Resource = corten_api::resources::POD_GROUPS;
}

impl From<LabelledGroup> for PodGroup {
    fn from(group: LabelledGroup) -> Self {
        let gang = Some(GangPolicy { min_count: group.spec.min_member });
        let spec = PodGroupSpec { scheduling_policy: SchedulingPolicy { gang }, ..PodGroupSpec::default() };
        let name = labelled_group::key_of(&group.metadata.key()).name;
        Self { metadata: ObjectMeta { name, ..group.metadata }, spec, status: PodGroupStatus::default() }
    }
}

/// All groups, and the pods that name them.
#[derive(Default)]
pub(crate) struct PodGroups {
    groups: BTreeMap<Key, PodGroup>,
    members: BTreeMap<Key, BTreeSet<Key>>,
    /// There is a definition of those that labels name.
    are_labelled_served: bool,
}

impl PodGroups {
    /// Takes a group in, and says whether that may let its pods in.
    pub(crate) fn set(&mut self, group: PodGroup) -> bool {
        let min_count = group.min_count();
        let old = self.groups.insert(group.metadata.key(), group);
        old.is_none_or(|it| it.min_count() != min_count)
    }

    pub(crate) fn remove(&mut self, group: &Key) {
        self.groups.remove(group);
    }

    /// What counts of a pod where others take its room: its group's priority (`getPodPriority`).
    pub(crate) fn priority_of(&self, pod: &PodInfo) -> i32 {
        // By the convention of labels a group has none.
        let named = pod.group.as_ref().filter(|it| !labelled_group::is_labelled(it));
        named.and_then(|it| self.groups.get(it)).map_or(pod.priority, |it| it.spec.priority)
    }

    /// The group with which the pod leaves its node, or stays.
    pub(crate) fn disrupted_whole<'p>(&self, pod: &'p PodInfo) -> Option<&'p Key> {
        let key = pod.group.as_ref()?;
        self.groups.get(key).filter(|it| it.spec.disruption_mode.all.is_some()).map(|_| key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Those that labels name count, or do not; gives the groups of pods for which that changes something.
    pub(crate) fn serve_labelled(&mut self, are_served: bool) -> Vec<Key> {
        if self.are_labelled_served == are_served {
            return Vec::new();
        }
        self.are_labelled_served = are_served;
        if !are_served {
            self.groups.retain(|key, _| !labelled_group::is_labelled(key));
        }
        self.members.keys().filter(|it| labelled_group::is_labelled(it)).cloned().collect()
    }

    pub(crate) fn get(&self, group: &Key) -> Option<&PodGroup> {
        self.groups.get(group)
    }

    /// Says whether it was not known as one before.
    pub(crate) fn add_member(&mut self, group: &Key, pod: &Key) -> bool {
        self.members.entry(group.clone()).or_default().insert(pod.clone())
    }

    /// Says whether it was one.
    pub(crate) fn remove_member(&mut self, group: &Key, pod: &Key) -> bool {
        let Some(members) = self.members.get_mut(group) else { return false };
        let was_one = members.remove(pod);
        if members.is_empty() {
            self.members.remove(group);
        }
        was_one
    }

    /// Has it as many pods as it asks for, and none more?
    pub(crate) fn is_just_complete(&self, group: &Key) -> bool {
        let wanted = self.groups.get(group).and_then(PodGroup::min_count);
        wanted == self.members.get(group).map(BTreeSet::len)
    }

    /// Are its pods told of each other that comes? Those of a large group are not.
    pub(crate) fn tells_its_pods(&self, group: &Key) -> bool {
        self.members.get(group).is_none_or(|it| it.len() <= TOLD_MAX)
    }

    pub(crate) fn members(&self, group: &Key) -> impl Iterator<Item = &Key> {
        self.members.get(group).into_iter().flatten()
    }

    /// What a pod of the group waits for before any is tried, as `GangScheduling.PreEnqueue`.
    pub(crate) fn lacks(&self, pod: &PodInfo) -> Option<String> {
        let key = pod.group.as_ref()?;
        let name = labelled_group::plain_name(key);
        let Some(group) = self.groups.get(key) else {
            let says_nothing = labelled_group::is_labelled(key) && !self.are_labelled_served;
            return (!says_nothing).then(|| format!("its pod group {name} is not there"));
        };
        let (wanted, found) = (group.min_count()?, self.members.get(key).map_or(0, BTreeSet::len));
        (found < wanted).then(|| format!("its pod group {name} has {found} of the {wanted} pods that it needs"))
    }
}
