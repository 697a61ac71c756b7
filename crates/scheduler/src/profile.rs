//! Which plugins one scheduler has, and what they are set to.

use std::collections::BTreeSet;

use crate::{
    PLUGINS, PodInfo, Snapshot, arguments::Arguments, groupings::Groupings, plugins::GANG_SCHEDULING,
    pod_groups::PodGroups, pod_info::Constraint,
};

/// One scheduler: the pods that name it are placed by these plugins.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The `schedulerName` of its pods.
    pub name: String,
    /// The plugins whose filters run, by their place in [`PLUGINS`], in order.
    pub(crate) filters: Vec<usize>,
    /// Those that may turn a pod down before any node is looked at.
    pub(crate) pre_filters: Vec<usize>,
    /// Those that score, each with its weight.
    pub(crate) scores: Vec<(usize, i64)>,
    /// Those that may keep a pod out of the queue.
    pub(crate) pre_enqueue: Vec<usize>,
    /// DefaultPreemption is on.
    pub(crate) preempts: bool,
    pub(crate) arguments: Arguments,
    /// The share of nodes that is looked for; 0: one that falls as the cluster grows.
    pub(crate) percentage_of_nodes_to_score: usize,
}

impl Default for Profile {
    /// All plugins with upstream's weights.
    fn default() -> Self {
        let all = || PLUGINS.iter().enumerate();
        Self {
            name: "default-scheduler".into(),
            filters: all().filter(|it| it.1.has_filter()).map(|it| it.0).collect(),
            pre_filters: all().filter(|it| it.1.pre_filter.is_some()).map(|it| it.0).collect(),
            scores: all().filter_map(|(idx, it)| Some((idx, it.score.as_ref()?.weight))).collect(),
            pre_enqueue: all().filter(|it| it.1.pre_enqueue.is_some()).map(|it| it.0).collect(),
            preempts: true,
            arguments: Arguments::default(),
            percentage_of_nodes_to_score: 0,
        }
    }
}

impl Profile {
    /// The filters before the first that looks beyond the node.
    pub(crate) fn own_filters(&self) -> &[usize] {
        let end = self.filters.iter().position(|it| PLUGINS[*it].filter_among.is_some());
        &self.filters[..end.unwrap_or(self.filters.len())]
    }

    /// Those after them, without the ones that turn no node down for this pod.
    pub(crate) fn other_filters(&self, pod: &PodInfo, snapshot: &Snapshot) -> Vec<usize> {
        let skips = |it: &&usize| PLUGINS[**it].skips.is_some_and(|skips| skips(pod, snapshot, &self.arguments));
        self.filters[self.own_filters().len()..].iter().filter(|it| !skips(it)).copied().collect()
    }

    /// The only nodes that a filter may let the pod run on, where one knows them by name; and that plugin.
    pub(crate) fn only_nodes<'p>(&self, pod: &'p PodInfo) -> Option<(usize, BTreeSet<&'p str>)> {
        self.filters.iter().find_map(|it| Some((*it, PLUGINS[*it].only_nodes?(pod)?)))
    }

    /// The constraints that the pod must keep because it has none of its own.
    pub(crate) fn default_spread(&self, pod: &PodInfo, groupings: &Groupings) -> Vec<Constraint> {
        self.arguments.spread.hard(pod, groupings)
    }

    /// The first plugin that keeps the pod out of the queue, by its place.
    pub(crate) fn gate_of(&self, pod: &PodInfo, groups: &PodGroups) -> Option<usize> {
        let keeps_out = |it: &usize| PLUGINS[*it].pre_enqueue.is_some_and(|it| it(pod, groups).is_some());
        self.pre_enqueue.iter().copied().find(keeps_out)
    }

    /// Are pods of a gang placed together?
    pub(crate) fn has_gangs(&self) -> bool {
        self.pre_enqueue.iter().any(|it| PLUGINS[*it].name == GANG_SCHEDULING)
    }
}
