//! What of all that runs in the cluster bears on one pod.

mod domains;
mod neighbours;

use std::rc::Rc;

use corten_meta::Key;

use crate::{PodInfo, Snapshot, arguments::Arguments, devices::PodDevices, snapshot::Row, storage::PodVolumes};

pub(crate) use domains::Domains;
pub(crate) use neighbours::{Counts, Neighbours, pair};

/// What of all that runs in the cluster bears on one pod. Worked out once for each try.
#[derive(Clone)]
pub(crate) struct Among<'a> {
    pub(crate) affinity: Neighbours<'a>,
    pub(crate) spread: Vec<Domains<'a>>,
    pub(crate) volumes: Rc<PodVolumes<'a>>,
    pub(crate) devices: Rc<PodDevices<'a>>,
    /// The claims of the pod that only one pod may use, and how often others use them.
    exclusive_claims: Vec<Key>,
    n_exclusive_uses: usize,
}

impl<'a> Among<'a> {
    pub(crate) fn of(pod: &'a PodInfo, snapshot: &'a Snapshot, arguments: &Arguments) -> Self {
        let exclusive_claims: Vec<Key> = pod.claim_keys().filter(|it| snapshot.is_exclusive(it)).collect();
        Self {
            affinity: neighbours::neighbours(pod, snapshot),
            spread: domains::domains(pod, snapshot, arguments),
            volumes: Rc::new(snapshot.volumes_of(pod)),
            devices: Rc::new(PodDevices::of(pod, &snapshot.devices)),
            n_exclusive_uses: exclusive_claims.iter().map(|it| snapshot.n_users(it)).sum(),
            exclusive_claims,
        }
    }

    /// Does another pod use a claim of this one's that only one pod may use?
    pub(crate) fn is_claim_taken(&self) -> bool {
        self.n_exclusive_uses > 0
    }

    /// As if another pod were on the node, too (`AddPod` of upstream's `PreFilterExtensions`).
    pub(crate) fn add(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>) {
        self.affinity.add(pod, other, row);
        self.spread.iter_mut().for_each(|it| it.count(pod, other, row, 1));
        self.n_exclusive_uses += self.n_exclusive_uses_by(other);
    }

    /// As if that pod were not on the node (`RemovePod`).
    pub(crate) fn remove(&mut self, pod: &'a PodInfo, other: &'a PodInfo, row: &Row<'a>) {
        self.affinity.remove(pod, other, row);
        self.spread.iter_mut().for_each(|it| it.count(pod, other, row, -1));
        self.n_exclusive_uses -= self.n_exclusive_uses_by(other);
    }

    fn n_exclusive_uses_by(&self, other: &PodInfo) -> usize {
        if self.exclusive_claims.is_empty() {
            return 0;
        }
        other.claim_keys().filter(|it| self.exclusive_claims.contains(it)).count()
    }
}
