//! The volumes of one pod: which are there, which are to be chosen or made, and on which nodes that can be.

use std::collections::BTreeMap;

use corten_api::volumes::{MOVE_TO, NO_PROVISIONER, is_reachable};
use corten_meta::{Key, Quantity};

use super::{Claim, RemainingCapacity, Storage, objects::Volume};
use crate::{PodInfo, pod_info::Claim as PodClaim};

/// Worked out once for each try to place a pod.
pub(crate) struct PodVolumes<'a> {
    storage: &'a Storage,
    /// Of each claim that is bound its volume, where it is known.
    pub(crate) bound: Vec<(&'a Claim, Option<&'a Volume>)>,
    /// The claims that get their volumes with the node, each with the node that was chosen before.
    pub(crate) unbound: Vec<(&'a Claim, Option<&'a str>)>,
}

/// What is to be done for a pod's volumes once it has its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decisions {
    /// Volumes that are there, each with its claim.
    pub(crate) volumes: Vec<(String, Key)>,
    /// Claims whose volumes are to be made.
    pub(crate) to_be_made: Vec<Key>,
}

/// How much of what there is of one storage class a pod's claims would take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassUse {
    pub(crate) requested: i64,
    pub(crate) capacity: i64,
}

/// Why a node cannot have the volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflicts {
    pub(crate) elsewhere: bool,
    pub(crate) none_found: bool,
    pub(crate) no_room: bool,
    pub(crate) missing: bool,
}

/// Why no node can run the pod, and the claim that is the cause (`PreFilter` of VolumeBinding, in its words).
pub(crate) fn refusal(pod: &PodInfo, storage: &Storage) -> Option<(String, String)> {
    pod.claims.iter().find_map(|it| Some((unusable(pod, it, storage)?, it.name().to_owned()))).or_else(|| {
        let immediate = pod.claims.iter().find(|it| {
            let claim = storage.claim(&pod.claim_key(it)).expect("one that is not there is unusable");
            let is_delayed = storage.waits_for_consumer(claim) && claim.spec.volume_name.is_empty();
            !claim.is_bound() && !is_delayed
        });
        immediate.map(|it| ("pod has unbound immediate PersistentVolumeClaims".into(), it.name().to_owned()))
    })
}

fn unusable(pod: &PodInfo, of_pod: &PodClaim, storage: &Storage) -> Option<String> {
    let name = of_pod.name();
    let Some(claim) = storage.claim(&pod.claim_key(of_pod)) else {
        return Some(match of_pod {
            PodClaim::Ephemeral(_) => {
                format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
            }
            PodClaim::Named(_) => format!("persistentvolumeclaim {name:?} not found"),
        });
    };
    if claim.status.phase == "Lost" {
        let volume = &claim.spec.volume_name;
        return Some(format!("persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"));
    }
    if claim.metadata.is_deleting() {
        return Some(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    if let Some(node) = claim.metadata.annotations.get(MOVE_TO) {
        return Some(format!("persistentvolumeclaim {name:?} is being moved to node {node}"));
    }
    let is_own = claim.metadata.controller().is_some_and(|it| it.uid == pod.uid);
    (matches!(of_pod, PodClaim::Ephemeral(_)) && !is_own)
        .then(|| format!("PVC {} was not created for pod {} (pod is not owner)", claim.metadata.key(), pod.key))
}

impl<'a> PodVolumes<'a> {
    /// A node that is gone was never chosen: `is_node` knows those that are there.
    pub(crate) fn of(pod: &PodInfo, storage: &'a Storage, is_node: impl Fn(&str) -> bool) -> Self {
        let mut all = Self { storage, bound: Vec::new(), unbound: Vec::new() };
        for claim in pod.claim_keys().filter_map(|it| storage.claim(&it)) {
            if claim.is_bound() {
                all.bound.push((claim, storage.volume(&claim.spec.volume_name)));
            } else {
                let chosen = storage.node_of(claim).or_else(|| claim.source_node());
                all.unbound.push((claim, chosen.filter(|it| is_node(it))));
            }
        }
        // The smallest first, so that it does not take the volume that a larger one needs.
        all.unbound.sort_by_key(|it| it.0.spec.resources.requests.storage);
        all
    }

    pub(crate) fn storage(&self) -> &'a Storage {
        self.storage
    }

    /// The decisions that a node leads to (`FindPodVolumes`).
    pub(crate) fn on(&self, node: &str, labels: &BTreeMap<String, String>) -> Result<Decisions, Conflicts> {
        let mut conflicts = Conflicts::default();
        for (_, volume) in &self.bound {
            conflicts.missing |= volume.is_none();
            conflicts.elsewhere |= volume.is_some_and(|it| !is_reachable(&it.spec, labels));
        }
        let mut decisions = Decisions::default();
        self.find(node, labels, &mut decisions, &mut conflicts);
        if conflicts == Conflicts::default() { Ok(decisions) } else { Err(conflicts) }
    }

    /// The volumes of the claims that have none. A claim whose volume cannot be made is told of alone (`checkVolumeProvisions`).
    fn find(
        &self,
        node: &str,
        labels: &BTreeMap<String, String>,
        decisions: &mut Decisions,
        conflicts: &mut Conflicts,
    ) {
        if self.unbound.iter().any(|it| it.1.is_some_and(|it| it != node)) {
            conflicts.none_found = true;
            return;
        }
        let is_chosen = |it: &&(&'a Claim, Option<&str>)| it.1.is_some();
        let mut to_be_made: Vec<&Claim> = self.unbound.iter().filter(is_chosen).map(|it| it.0).collect();
        for (claim, _) in self.unbound.iter().filter(|it| !is_chosen(it)) {
            match self.storage.matching(claim, labels, &decisions.volumes) {
                Some(volume) => decisions.volumes.push((volume.metadata.name.clone(), claim.metadata.key())),
                None => to_be_made.push(claim),
            }
        }
        for claim in to_be_made {
            self.make(claim, labels, decisions, conflicts);
            if conflicts.none_found || conflicts.no_room {
                break;
            }
        }
    }

    /// What the decisions take of each storage class (`VolumeBinding.Score`): of volumes that are there, where there are any; else of
    /// what drivers have left for new ones, as far as they tell.
    pub(crate) fn uses(&self, decisions: &Decisions, labels: &BTreeMap<String, String>) -> Vec<ClassUse> {
        let mut uses: BTreeMap<&str, ClassUse> = BTreeMap::new();
        let requested = |it: &Claim| it.spec.resources.requests.storage.map_or(0, Quantity::value);
        for (volume, claim) in &decisions.volumes {
            let (Some(volume), Some(claim)) = (self.storage.volume(volume), self.storage.claim(claim)) else {
                continue;
            };
            let of_class = uses.entry(claim.class()).or_default();
            of_class.requested = of_class.requested.saturating_add(requested(claim));
            let capacity = volume.spec.capacity.storage.map_or(0, Quantity::value);
            of_class.capacity = of_class.capacity.saturating_add(capacity);
        }
        let to_be_made = decisions.to_be_made.iter().filter(|_| decisions.volumes.is_empty());
        for claim in to_be_made.filter_map(|it| self.storage.claim(it)) {
            let remaining_capacity =
                self.storage.class(claim.class()).map(|it| self.storage.remaining_capacity(claim, it, labels));
            let Some(RemainingCapacity::Bytes(capacity)) = remaining_capacity else { continue };
            let of_class = uses.entry(claim.class()).or_default();
            of_class.requested = of_class.requested.saturating_add(requested(claim));
            of_class.capacity = capacity;
        }
        uses.into_values().collect()
    }

    /// Can the volume be made for such a node? (`checkVolumeProvisions`)
    fn make(
        &self,
        claim: &Claim,
        labels: &BTreeMap<String, String>,
        decisions: &mut Decisions,
        conflicts: &mut Conflicts,
    ) {
        let class = self.storage.class(claim.class()).filter(|it| {
            let provisioner = &it.fields.provisioner;
            !provisioner.is_empty() && provisioner != NO_PROVISIONER && it.fields.allows(labels)
        });
        match class {
            None => conflicts.none_found = true,
            Some(class) if matches!(self.storage.remaining_capacity(claim, class, labels), RemainingCapacity::None) => {
                conflicts.no_room = true
            }
            Some(_) => decisions.to_be_made.push(claim.metadata.key()),
        }
    }
}
