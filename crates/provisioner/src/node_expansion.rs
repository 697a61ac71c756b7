//! The node's part in growing a volume: the kubelet's `NodeExpander`, with `RecoverVolumeExpansionFailure` (KEP-1790).

use std::time::Duration;

use corten_api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
};
use corten_meta::{Quantity, Time};
use corten_reconcile::EventType::{self, Normal, Warning};
use serde_json::{Value, json};

use crate::{
    attaching::told_of,
    claim_status::{MESSAGE, conditions_but, key, pending, settled, size},
    provision::spec,
    secrets::key_of,
    words::{Failure, FailureKind, NodeGrowth},
};

const ERROR: &str = "NodeResizeError";
/// As upstream's `exponentialbackoff`.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(122);

/// What a node knows of one volume that its Pods have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeExpansion {
    /// How large it is here at least.
    has: Option<Quantity>,
    failures: u32,
    retry_at: Option<Time>,
    /// The last try failed, and nothing of it is under way.
    has_failed: bool,
}

impl NodeExpansion {
    pub fn is_due(&self, now: Time) -> bool {
        self.retry_at.is_none_or(|it| it <= now)
    }

    /// Does the claim say that there may be something to do? Then its volume says what.
    pub fn may_grow(&mut self, claim: &PersistentVolumeClaim) -> bool {
        let status = claim.status.clone().unwrap_or_default();
        let claim_has = capacity(&status);
        let has = *self.has.get_or_insert(claim_has);
        match said(&status) {
            Some("NodeResizePending" | "NodeResizeInProgress") => true,
            Some(_) => false,
            // Another node that has the volume, too, was first; or who grew it knows no statuses of resources.
            None => claim_has > has || status.conditions.iter().flatten().any(pending),
        }
    }

    /// What this node is to do about the volume with this handle.
    pub fn growth(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        (driver, handle): (&str, &str),
        now: Time,
    ) -> Option<NodeGrowth> {
        let status = claim.status.clone().unwrap_or_default();
        let csi = volume.spec.as_ref()?.csi.as_ref();
        let csi = csi.filter(|it| it.driver == driver && it.volume_handle == handle && it.read_only != Some(true))?;
        let owner = volume.spec.as_ref()?.claim_ref.as_ref()?.uid.as_ref();
        if owner.is_none() || owner != claim.metadata.uid.as_ref() {
            return None;
        }
        let (wanted, claim_has) = (size(volume.spec.as_ref()?.capacity.as_ref()?.get("storage"))?, capacity(&status));
        let is_written = claim_has >= wanted && said(&status).is_none();
        let has = if is_written { self.has.unwrap_or(claim_has) } else { claim_has };
        if wanted <= has {
            return None;
        }
        let growth = growth(claim, &status, volume, csi, wanted, now)?;
        if is_written {
            return Some(NodeGrowth { begun: None, done: None, failed: None, infeasible: None, ..growth });
        }
        // Another size is asked for by now: who grows volumes begins anew with that.
        let asked = spec(claim).resources.as_ref().and_then(|it| size(it.requests.as_ref()?.get("storage")));
        let is_over = self.has_failed && asked != Some(wanted);
        let failed = if is_over { growth.infeasible.clone() } else { growth.failed };
        Some(NodeGrowth { failed, ..growth })
    }

    pub fn ended(&mut self, growth: &NodeGrowth, result: &Result<(), Failure>, now: Time) {
        match result {
            Ok(()) => {
                *self = Self {
                    has: Some(Quantity::bytes(i64::try_from(growth.bytes).unwrap_or(i64::MAX))),
                    ..Self::default()
                }
            }
            Err(why) => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(PAUSE_MAX);
                // A Pod may have begun anew between two looks.
                let pause = if why.is_in_use { PAUSE_MAX } else { pause };
                self.failures = self.failures.saturating_add(1);
                self.retry_at = Some(now.after(pause));
                if why.kind != FailureKind::Unasked {
                    self.has_failed = why.kind != FailureKind::Open;
                }
            }
        }
    }

    /// What users are told of it, as the kubelet tells them.
    pub fn told(
        growth: &NodeGrowth,
        node: &str,
        result: &Result<(), Failure>,
    ) -> Option<(EventType, &'static str, String)> {
        let volume = &growth.volume;
        match result {
            Ok(()) => {
                let message = format!("MountVolume.NodeExpandVolume succeeded for volume {volume:?} {node}");
                Some((Normal, "FileSystemResizeSuccessful", message))
            }
            // It is not tried again, and the condition says why.
            Err(why) if why.is_in_use => None,
            Err(why) => {
                let message =
                    format!("NodeExpandVolume.NodeExpandVolume failed for volume {volume:?} : {}", why.message);
                Some((Warning, "VolumeResizeFailed", message))
            }
        }
    }
}

fn said(status: &PersistentVolumeClaimStatus) -> Option<&str> {
    status.allocated_resource_statuses.as_ref()?.get("storage").map(String::as_str)
}

fn capacity(status: &PersistentVolumeClaimStatus) -> Quantity {
    size(status.capacity.as_ref().and_then(|it| it.get("storage"))).unwrap_or_default()
}

/// The node's part, for a claim that has not yet what its volume has.
pub(crate) fn growth(
    claim: &PersistentVolumeClaim,
    status: &PersistentVolumeClaimStatus,
    volume: &PersistentVolume,
    csi: &CSIPersistentVolumeSource,
    wanted: Quantity,
    now: Time,
) -> Option<NodeGrowth> {
    let (name, spec) = (volume.metadata.name.clone()?, volume.spec.as_ref()?);
    let error = json!({ "type": ERROR, "status": "True", "lastTransitionTime": now, "message": MESSAGE });
    let conditions: Vec<Value> = conditions_but(status, &[ERROR]).chain([error]).collect();
    let said = said(status);
    let is = |what: &str| json!({ "allocatedResourceStatuses": { "storage": what } });
    // A resizer that says nothing in statuses of resources would not understand them either.
    let with = |what: &str| match said {
        Some(_) => json!({ "allocatedResourceStatuses": { "storage": what }, "conditions": conditions }),
        None => json!({ "conditions": conditions }),
    };
    Some(NodeGrowth {
        claim: key(claim),
        driver: csi.driver.clone(),
        told: told_of(&name, spec, csi),
        volume: name,
        bytes: u64::try_from(wanted.value()).unwrap_or(0),
        secret: key_of(csi.node_expand_secret_ref.as_ref()),
        begun: (said == Some("NodeResizePending")).then(|| is("NodeResizeInProgress")),
        done: Some(settled(status, wanted)),
        failed: Some(with("NodeResizeInProgress")),
        infeasible: Some(with("NodeResizeInfeasible")),
    })
}
