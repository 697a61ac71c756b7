//! One pod as the scheduler knows it.

use std::sync::Arc;

use corten_meta::Time;

use crate::PodInfo;

/// One pod that is not finished.
pub(crate) struct Entry {
    pub(crate) info: Arc<PodInfo>,
    pub(crate) place: PodState,
    /// When it was first seen waiting: the start of its `scheduled` step.
    pub(crate) since: Time,
    /// The message of the PodScheduled condition as last seen, where that says False.
    pub(crate) told: Option<String>,
    /// The pod's conditions as last seen, and in which revision: a merge patch of one must carry them all.
    pub(crate) conditions: Vec<serde_json::Value>,
    pub(crate) resource_version: String,
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
