//! One pod as the scheduler knows it.

use std::sync::Arc;

use corten_meta::Time;

use crate::{Pod, PodInfo};

/// One pod that is not finished.
pub(crate) struct Entry {
    pub(crate) info: Arc<PodInfo>,
    pub(crate) place: PodState,
    /// When it was first seen waiting: the start of its `scheduled` step.
    pub(crate) since: Time,
    /// The message of the PodScheduled condition as last seen, where that says False.
    pub(crate) told: Option<String>,
    /// The node it is nominated to: that waits for room there, which is kept for it. Empty: to none.
    pub(crate) nominated: String,
    /// Its `status.nominatedNodeName` as last seen.
    pub(crate) told_nominated: String,
    pub(crate) start_time: Option<Time>,
    /// The pod's conditions as last seen, and in which revision: a merge patch of one must carry them all.
    pub(crate) conditions: Vec<serde_json::Value>,
    pub(crate) resource_version: String,
}

impl Entry {
    /// A pod as it was seen; whoever knows says what it is nominated to.
    pub(crate) fn new(pod: Pod, info: Arc<PodInfo>, place: PodState, since: Time) -> Self {
        let told = pod.scheduled_message();
        let (status, resource_version) = (pod.status, pod.metadata.resource_version);
        Self {
            info,
            place,
            since,
            told,
            nominated: String::new(),
            told_nominated: status.nominated_node_name,
            start_time: status.start_time,
            conditions: status.conditions,
            resource_version,
        }
    }

    /// It is being deleted because others of higher priority need its room (`podTerminatingByPreemption`).
    pub(crate) fn is_preempted(&self) -> bool {
        let is_target = |it: &serde_json::Value| {
            it["type"] == "DisruptionTarget" && it["status"] == "True" && it["reason"] == "PreemptionByScheduler"
        };
        self.info.deleting && self.conditions.iter().any(is_target)
    }
}

/// Where a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// In the queue, or gated.
    Waiting,
    /// Given to a node here; the API server has not confirmed it yet.
    Assumed(String),
    Bound(String),
    /// Not ours to place, and not placed.
    Foreign,
}

impl PodState {
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::Assumed(node) | Self::Bound(node) => Some(node),
            Self::Waiting | Self::Foreign => None,
        }
    }
}

/// A pod that has its node and waits there for its devices.
pub(crate) struct DeviceWait {
    pub(crate) until: Time,
    /// Some are those of the claim for its extended resources.
    pub(crate) has_extended: bool,
}
