//! Claims that ask for more than they have: upstream's external-resizer with `RecoverVolumeExpansionFailure` (KEP-1790).

use corten_api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
};
use corten_meta::{Quantity, Time};
use serde_json::{Value, json};

use crate::{
    attaching::told_of,
    claim_status::{MESSAGE, conditions, key, pending, settled, size},
    node_expansion,
    provision::spec,
    secrets::key_of,
    words::{DriverFacts, Growth, Job, NodeGrowth},
};

const PENDING_MESSAGE: &str = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A growth to what the claim asks for now.
    Asked,
    /// One to what was asked for before, which may be under way: the volume may have that size already.
    Allocated,
    /// The node's part of the last one, where the volume has what was asked for before; else as `Allocated`.
    Node,
}

/// KEP-1790 (external-resizer's `expandAndRecover`), by what the claim says of its growth: where the volume's object has less than is
/// asked for and the driver's last answer left open whether it was done, the same where it was not done, and where the object has as much.
const NEXT: [(&str, [Next; 3]); 6] = [
    ("", [Next::Asked, Next::Asked, Next::Allocated]),
    ("ControllerResizeInProgress", [Next::Allocated, Next::Asked, Next::Allocated]),
    ("ControllerResizeInfeasible", [Next::Asked, Next::Asked, Next::Allocated]),
    ("NodeResizePending", [Next::Node, Next::Node, Next::Node]),
    ("NodeResizeInProgress", [Next::Node, Next::Node, Next::Node]),
    ("NodeResizeInfeasible", [Next::Allocated, Next::Allocated, Next::Allocated]),
];

/// What is to be done for a claim that is bound to this volume. `refused`: to how many bytes the driver did not grow it, the last time.
pub(crate) fn job(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    driver: &DriverFacts,
    refused: Option<u64>,
    now: Time,
) -> Option<Job> {
    let (claim_spec, status) = (spec(claim), claim.status.clone().unwrap_or_default());
    let csi = volume.spec.as_ref()?.csi.as_ref().filter(|it| it.driver == driver.name)?;
    if status.phase.as_deref() != Some("Bound") || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let asked = size(claim_spec.resources.as_ref()?.requests.as_ref()?.get("storage"))?;
    let has = size(status.capacity.as_ref().and_then(|it| it.get("storage")))?;
    let said = said(&status);
    let grows = driver.expands || driver.expands_nothing;
    if asked <= has {
        // Called off: as much is there as is asked for, and a growth that failed is forgotten.
        let is_marked = said.ends_with("Infeasible");
        let key = key(claim);
        return (is_marked && grows).then(|| Job::WriteStatus { claim: key, status: settled(&status, has) });
    }
    let volume_has = size(volume.spec.as_ref()?.capacity.as_ref()?.get("storage")).unwrap_or_default();
    let allocated = allocated(&status);
    let is_over = allocated.is_some_and(|it| refused == Some(bytes(it)));
    let column = if volume_has >= asked { 2 } else { usize::from(is_over) };
    let next = NEXT.iter().find(|it| it.0 == said).map_or(Next::Asked, |it| it.1[column]);
    match next {
        Next::Node if volume_has >= allocated.unwrap_or(asked) => {
            // Of others' drivers each node that has the volume does its part itself.
            let is_here = driver.node_expands && driver.is_built_in();
            let growth =
                is_here.then(|| node_expansion::growth(claim, &status, volume, csi, volume_has, now)).flatten()?;
            // It is asked whether a Pod has the volume or not: nothing is begun before the driver says so.
            Some(Job::ExpandOnNode(Box::new(NodeGrowth { begun: None, ..growth })))
        }
        // Who grew it knows no statuses of resources, and the node has its part yet.
        Next::Allocated
            if said.is_empty() && allocated.is_none() && status.conditions.iter().flatten().any(pending) =>
        {
            None
        }
        // Else its own resizer does it.
        _ => grows.then(|| {
            let wanted = if next == Next::Asked { asked } else { allocated.unwrap_or(asked) };
            Job::Expand(Box::new(growth(claim, &status, volume, csi, driver, wanted, now)))
        }),
    }
}

/// Has the node refused the claim's growth for good? Who grows volumes asks it once more, and not soon.
pub(crate) fn is_refused_by_node(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().is_some_and(|it| said(it) == "NodeResizeInfeasible")
}

/// How far a growth is said to be; empty: none is under way.
fn said(status: &PersistentVolumeClaimStatus) -> &str {
    status.allocated_resource_statuses.as_ref().and_then(|it| it.get("storage")).map_or("", String::as_str)
}

fn allocated(status: &PersistentVolumeClaimStatus) -> Option<Quantity> {
    size(status.allocated_resources.as_ref().and_then(|it| it.get("storage")))
}

fn bytes(size: Quantity) -> u64 {
    u64::try_from(size.value()).unwrap_or(0)
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
    let is_same = allocated(status) == Some(asked) && said(status).starts_with("ControllerResize");
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
        bytes: bytes(asked),
        size: asked.to_string(),
        volume_bytes: size(volume.spec.as_ref().and_then(|it| it.capacity.as_ref()?.get("storage"))).map_or(0, bytes),
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
