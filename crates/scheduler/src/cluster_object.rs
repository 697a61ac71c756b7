//! What bears on placement beside nodes, pods, storage and devices.

use crate::{
    budgets::DisruptionBudget,
    groupings::{Grouping, ReplicaSet, ReplicationController, Service, StatefulSet},
    labelled_group::LabelledGroup,
    namespaces::Namespace,
    pod_groups::PodGroup,
};

/// An object of one of these kinds.
#[derive(Clone, Debug)]
pub enum ClusterObject {
    Budget(DisruptionBudget),
    Grouping(Grouping),
    Namespace(Namespace),
    PodGroup(PodGroup),
}

impl From<PodGroup> for ClusterObject {
    fn from(group: PodGroup) -> Self {
        Self::PodGroup(group)
    }
}

impl From<LabelledGroup> for ClusterObject {
    fn from(group: LabelledGroup) -> Self {
        Self::PodGroup(group.into())
    }
}

impl From<DisruptionBudget> for ClusterObject {
    fn from(budget: DisruptionBudget) -> Self {
        Self::Budget(budget)
    }
}

impl From<Namespace> for ClusterObject {
    fn from(namespace: Namespace) -> Self {
        Self::Namespace(namespace)
    }
}

macro_rules! groupings {
    ($($name:ident),*) => {
        $(
            impl From<$name> for ClusterObject {
                fn from(object: $name) -> Self {
                    Self::Grouping(Grouping::$name(object))
                }
            }
        )*
    };
}
groupings!(Service, ReplicationController, ReplicaSet, StatefulSet);
