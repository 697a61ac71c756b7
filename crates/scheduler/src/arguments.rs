//! What a profile sets its plugins to: `pluginConfig` of a KubeSchedulerConfiguration, with upstream's defaults.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    PodInfo,
    groupings::Groupings,
    pod_info::Constraint,
    projections::{NodeAffinity, TopologySpreadConstraint},
};

/// The arguments of all plugins of one profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) fit: FitArguments,
    pub(crate) balanced: BalancedArguments,
    pub(crate) affinity: AffinityArguments,
    pub(crate) preemption: PreemptionArguments,
    pub(crate) spread: SpreadArguments,
    pub(crate) volumes: VolumeArguments,
    pub(crate) devices: DeviceArguments,
    /// Of NodeAffinity: what holds for each pod beside its own affinity (`addedAffinity`).
    pub(crate) added_affinity: NodeAffinity,
}

/// `NodeResourcesFitArgs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FitArguments {
    /// Extended resources that are not looked at.
    pub(crate) ignored: BTreeSet<String>,
    /// As above, by what comes before the slash.
    pub(crate) ignored_groups: BTreeSet<String>,
    pub(crate) strategy: Strategy,
    pub(crate) resources: Resources,
}

impl FitArguments {
    pub(crate) fn ignores(&self, resource: &str) -> bool {
        let group = resource.split_once('/').map_or(resource, |it| it.0);
        self.ignored.contains(resource) || self.ignored_groups.contains(group)
    }
}

/// How a node's use is turned into a score (`scoringStrategy.type`).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Strategy {
    #[default]
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio(Shape),
}

/// A line through points: of the use in percent, and the score from 0 to 100.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape(pub(crate) Vec<(i64, i64)>);

impl Shape {
    /// As in `BuildBrokenLinearFunction`: between two points in proportion, beyond the last as the last.
    pub(crate) fn at(&self, use_percent: i64) -> i64 {
        let Some(next) = self.0.iter().position(|it| use_percent <= it.0) else {
            return self.0.last().map_or(0, |it| it.1);
        };
        let (to, Some(from)) = (self.0[next], next.checked_sub(1).map(|it| self.0[it])) else { return self.0[next].1 };
        from.1 + (to.1 - from.1) * (use_percent - from.0) / (to.0 - from.0)
    }
}

/// How long a pod that has its node waits there for its volumes, or for its devices.
pub(crate) const BIND_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// `VolumeBindingArgs`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VolumeArguments {
    pub(crate) bind_timeout: Duration,
    /// How what volumes take of what there is becomes a score.
    pub(crate) shape: Shape,
}

impl Default for VolumeArguments {
    /// Where most is left.
    fn default() -> Self {
        Self { bind_timeout: BIND_TIMEOUT, shape: Shape(vec![(0, 100), (100, 0)]) }
    }
}

/// `DynamicResourcesArgs`. How long one search for devices may take is bounded by its work, not by time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceArguments {
    pub(crate) bind_timeout: Duration,
}

impl Default for DeviceArguments {
    fn default() -> Self {
        Self { bind_timeout: BIND_TIMEOUT }
    }
}

/// `NodeResourcesBalancedAllocationArgs`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BalancedArguments {
    pub(crate) resources: Resources,
}

/// Resources that are scored, each with its weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resources(pub(crate) Vec<(String, i64)>);

impl Default for Resources {
    fn default() -> Self {
        Self(vec![("cpu".into(), 1), ("memory".into(), 1)])
    }
}

/// `InterPodAffinityArgs`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AffinityArguments {
    /// How much a term that a placed pod requires draws others that it matches (`hardPodAffinityWeight`).
    pub(crate) hard_weight: i64,
    /// A pod that prefers nothing is not drawn by what others prefer (`ignorePreferredTermsOfExistingPods`).
    pub(crate) ignores_preferred_terms_of_others: bool,
}

impl Default for AffinityArguments {
    fn default() -> Self {
        Self { hard_weight: 1, ignores_preferred_terms_of_others: false }
    }
}

/// `PodTopologySpreadArgs`: the constraints of pods that have none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpreadArguments {
    /// `defaultingType: System`.
    pub(crate) is_of_system: bool,
    pub(crate) constraints: Vec<TopologySpreadConstraint>,
}

impl Default for SpreadArguments {
    /// `systemDefaultConstraints`.
    fn default() -> Self {
        let constraint = |topology_key: &str, max_skew| TopologySpreadConstraint {
            max_skew,
            topology_key: topology_key.into(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            ..TopologySpreadConstraint::default()
        };
        let constraints = vec![constraint("kubernetes.io/hostname", 3), constraint("topology.kubernetes.io/zone", 5)];
        Self { is_of_system: true, constraints }
    }
}

impl SpreadArguments {
    /// The labels of nodes that it names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.constraints.iter().map(|it| &*it.topology_key)
    }

    /// Those that are only scored.
    pub(crate) fn soft(&self, pod: &PodInfo, groupings: &Groupings) -> Vec<Constraint> {
        Self::among(Constraint::soft(&self.constraints, &pod.labels), pod, groupings)
    }

    /// Those that must be kept; none where the pod has constraints of its own.
    pub(crate) fn hard(&self, pod: &PodInfo, groupings: &Groupings) -> Vec<Constraint> {
        if !pod.spread.is_empty() || !pod.soft_spread.is_empty() {
            return Vec::new();
        }
        Self::among(Constraint::hard(&self.constraints, &pod.labels), pod, groupings)
    }

    /// Among the pods with which this one belongs together; none where there are none (`buildDefaultConstraints`).
    fn among(constraints: Vec<Constraint>, pod: &PodInfo, groupings: &Groupings) -> Vec<Constraint> {
        if constraints.is_empty() {
            return constraints;
        }
        let Some(selector) = groupings.selector_of(pod) else { return Vec::new() };
        constraints.into_iter().map(|it| Constraint { selector: Some(selector.clone()), ..it }).collect()
    }
}

/// `DefaultPreemptionArgs`: how many nodes are looked at for victims.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreemptionArguments {
    pub(crate) candidates_percent_min: usize,
    pub(crate) candidates_min: usize,
}

impl Default for PreemptionArguments {
    fn default() -> Self {
        Self { candidates_percent_min: 10, candidates_min: 100 }
    }
}
