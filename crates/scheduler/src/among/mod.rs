//! What of all that runs in the cluster bears on one pod.

mod domains;
mod neighbours;

use crate::{PodInfo, Snapshot, devices::PodDevices, storage::PodVolumes};

pub(crate) use domains::Domains;
pub(crate) use neighbours::{Counts, Neighbours, pair};

/// What of all that runs in the cluster bears on one pod. Worked out once for each try.
pub(crate) struct Among<'a> {
    pub(crate) affinity: Neighbours<'a>,
    pub(crate) spread: Vec<Domains<'a>>,
    pub(crate) volumes: PodVolumes<'a>,
    pub(crate) devices: PodDevices<'a>,
    /// Another pod has a claim of its that only one may have.
    pub(crate) is_claim_taken: bool,
}

impl<'a> Among<'a> {
    pub(crate) fn of(pod: &'a PodInfo, snapshot: &'a Snapshot) -> Self {
        Self {
            affinity: neighbours::neighbours(pod, snapshot),
            spread: domains::domains(pod, snapshot),
            volumes: snapshot.volumes_of(pod),
            devices: PodDevices::of(pod, &snapshot.devices),
            is_claim_taken: snapshot.is_claim_taken(pod),
        }
    }
}
