//! Claims that ask for more than they have: upstream's external-resizer with `RecoverVolumeExpansionFailure` (KEP-1790).

use corten_api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
};
use corten_meta::{Quantity, Time};
use serde_json::{Value, json};

use crate::{
    attaching::told_of,
    claim_status::{MESSAGE, conditions, key, settled, size},
    node_expansion,
    provision::spec,
    secrets::key_of,
    words::{DriverFacts, Growth, Job, NodeGrowth},
};

const PENDING_MESSAGE: &str = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
/// What is to be done for a claim that is bound to this volume.
pub(crate) fn job(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    driver: &DriverFacts,
    now: Time,
) -> Option<Job> {
    let (claim_spec, status) = (spec(claim), claim.status.clone().unwrap_or_default());
    let csi = volume.spec.as_ref()?.csi.as_ref().filter(|it| it.driver == driver.name)?;
    if status.phase.as_deref() != Some("Bound") || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let asked = size(claim_spec.resources.as_ref()?.requests.as_ref()?.get("storage"))?;
    let has = size(status.capacity.as_ref().and_then(|it| it.get("storage")))?;
    let said = status.allocated_resource_statuses.as_ref().and_then(|it| it.get("storage")).map(String::as_str);
    let volume_has = size(volume.spec.as_ref()?.capacity.as_ref()?.get("storage")).unwrap_or_default();
    let grows = driver.expands || driver.expands_nothing;
    if asked <= has {
        // Called off: as much is there as is asked for, and a growth that failed is forgotten.
        let is_marked = said.is_some_and(|it| it.ends_with("Infeasible"));
        let key = key(claim);
        return (is_marked && grows).then(|| Job::WriteStatus { claim: key, status: settled(&status, has) });
    }
    let allocated = size(status.allocated_resources.as_ref().and_then(|it| it.get("storage")));
    match said {
        // The node will refuse the same size again; another one is asked for anew.
        Some("NodeResizeInfeasible") if allocated == Some(asked) => None,
        Some("NodeResizePending" | "NodeResizeInProgress") if volume_has >= asked => {
            // Of others' drivers each node that has the volume does its part itself.
            let is_here = driver.node_expands && driver.socket.is_none();
            let growth = is_here.then(|| node_expansion::growth(claim, &status, volume, csi, asked, now)).flatten()?;
            // It is asked whether a Pod has the volume or not: nothing is begun before the driver says so.
            Some(Job::ExpandOnNode(Box::new(NodeGrowth { begun: None, ..growth })))
        }
        // Else its own resizer does it.
        _ => grows.then(|| Job::Expand(Box::new(growth(claim, &status, volume, csi, driver, asked, now)))),
    }
}

fn growth(
    claim: &PersistentVolumeClaim,
    status: &PersistentVolumeClaimStatus,
    volume: &PersistentVolume,
    csi: &CSIPersistentVolumeSource,
    driver: &DriverFacts,
    asked: Quantity,
    now: Time,
) -> Growth {
    let name = volume.metadata.name.clone().unwrap_or_default();
    let said = status.allocated_resource_statuses.as_ref().and_then(|it| it.get("storage"));
    let allocated = size(status.allocated_resources.as_ref().and_then(|it| it.get("storage")));
    let is_same = allocated == Some(asked) && said.is_some_and(|it| it.starts_with("ControllerResize"));
    let condition = |kind: &str, message: &str| {
        let mut condition = json!({ "type": kind, "status": "True", "lastTransitionTime": now });
        if !message.is_empty() {
            condition["message"] = message.into();
        }
        condition
    };
    let with = |said: &str, own: Option<Value>| {
        json!({
            "allocatedResources": { "storage": asked.to_string() },
            "allocatedResourceStatuses": { "storage": said },
            "conditions": conditions(status, own),
        })
    };
    Growth {
        claim: key(claim),
        driver: driver.name.clone(),
        told: volume.spec.as_ref().map(|it| told_of(&name, it, csi)).unwrap_or_default(),
        volume: name,
        bytes: u64::try_from(asked.value()).unwrap_or(0),
        size: asked.to_string(),
        is_asked: driver.expands,
        secret: key_of(csi.controller_expand_secret_ref.as_ref()),
        // Of what is tried again the condition goes on to say why.
        begun: match is_same {
            true => json!({ "allocatedResourceStatuses": { "storage": "ControllerResizeInProgress" } }),
            false => with("ControllerResizeInProgress", Some(condition("Resizing", ""))),
        },
        waits_for_node: with("NodeResizePending", Some(condition("FileSystemResizePending", PENDING_MESSAGE))),
        done: settled(status, asked),
        failed: with("ControllerResizeInProgress", Some(condition("ControllerResizeError", MESSAGE))),
        infeasible: with("ControllerResizeInfeasible", Some(condition("ControllerResizeError", MESSAGE))),
    }
}
