//! Volumes of the built-in driver that are to be moved to another node: what comes next for one of them. A claim says where to
//! (`local.corten.dev/move-to`); how far it is, the volume says.
//!
//! ```text
//! claim: move-to n2 ──▶ volume: moving-to n2, move-id   it is copied, piece by piece
//!                   ──▶ volume: on n2, moved-from n1   it is bound there, and what n1 had is removed
//!                   ──▶ claim: no wish any more
//! ```
//!
//! Each mark is written only where the volume still is as it was read. So of "it is on n2" and "it is called off" one alone can be, and
//! a node is told to remove something only after the mark that says so.

use std::collections::BTreeSet;

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    volumes::{MOVE_TO, MOVED_FROM},
};
use corten_meta::{Time, transition_time};
use serde_json::{Value, json};

/// On a volume: a copy of it is made on this node.
pub const MOVING_TO: &str = "local.corten.dev/moving-to";
/// On a volume: which of its moves that is, `NUMBER-NONCE`. Nodes ask for it at each step.
pub const MOVE_ID: &str = "local.corten.dev/move-id";
/// On a volume: this move never ends on the other node, whatever is wished by now.
pub const MOVE_CALLED_OFF: &str = "local.corten.dev/move-called-off";
/// Of a volume as long as one of the two is on it: else a copy could be left behind.
pub const MOVE_FINALIZER: &str = "local.corten.dev/move";
/// Of a claim: `True` while it is under way, `False` where it was refused.
pub const MOVE_CONDITION: &str = "VolumeMoving";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What is known of one of them.
#[derive(Clone, Copy, Debug)]
pub struct MoveView<'m> {
    pub driver: &'m str,
    pub claim: Option<&'m PersistentVolumeClaim>,
    pub volume: Option<&'m PersistentVolume>,
    /// A Pod on a node that uses the claim and has not ended.
    pub pod: Option<&'m str>,
    /// Those whose driver can be asked.
    pub nodes: &'m BTreeSet<String>,
}

/// A volume, the node it moves from and the node it moves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeTransfer {
    pub volume: String,
    pub handle: String,
    pub from: String,
    pub to: String,
    /// Empty: somebody has taken it away from the volume.
    pub id: String,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveStep {
    Rest,
    /// Never: the claim is told why, and its wish is taken away.
    Refuse(String),
    /// Not yet.
    Wait {
        reason: &'static str,
        message: String,
    },
    /// Marks the volume with the node where it goes, and with an id that no other move has.
    Begin(VolumeTransfer),
    /// Goes on with the copy, and has the volume be on the other node when it is whole.
    Copy(VolumeTransfer),
    /// Marks the volume as called off, has it stay, and has the other node forget its copy. `None`: there is no such node any more.
    CallOff {
        transfer: VolumeTransfer,
        to: Option<String>,
    },
    /// The volume is elsewhere: what this node has of it is removed. `None`: there is no such node any more.
    RemoveOld {
        transfer: VolumeTransfer,
        node: Option<String>,
    },
    /// The volume is where it was to go: the wish is taken away.
    Fulfilled {
        node: String,
    },
}

fn annotation<'a>(of: Option<&'a std::collections::BTreeMap<String, String>>, name: &str) -> Option<&'a str> {
    of?.get(name).map(String::as_str).filter(|it| !it.is_empty())
}

/// Where the claim's volume is to go.
pub fn wish(claim: &PersistentVolumeClaim) -> Option<&str> {
    annotation(claim.metadata.annotations.as_ref(), MOVE_TO)
}

/// Is something of a move left to be done for the volume?
pub fn is_marked(volume: &PersistentVolume) -> bool {
    [MOVING_TO, MOVED_FROM].iter().any(|it| annotation(volume.metadata.annotations.as_ref(), it).is_some())
}

/// The node that has the volume.
pub fn node_of(volume: &PersistentVolume) -> Option<&str> {
    let required = volume.spec.as_ref()?.node_affinity.as_ref()?.required.as_ref()?;
    let mut expressions = required.node_selector_terms.iter().flat_map(|it| it.match_expressions.iter().flatten());
    let named = expressions.find(|it| it.key == HOSTNAME && it.operator == "In")?;
    named.values.as_ref()?.first().map(String::as_str)
}

/// Is it the volume of a claim of this name? The claim alone may name any.
fn is_of(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let of = volume.spec.as_ref().and_then(|it| it.claim_ref.as_ref());
    of.is_some_and(|it| it.name == claim.metadata.name && it.namespace == claim.metadata.namespace)
}

/// Is it this very claim's volume?
fn is_bound(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let of = volume.spec.as_ref().and_then(|it| it.claim_ref.as_ref());
    claim.metadata.deletion_timestamp.is_none() && of.is_some_and(|it| it.uid == claim.metadata.uid)
}

/// What comes next.
pub fn next(view: &MoveView<'_>) -> MoveStep {
    let wished = view.claim.and_then(wish);
    let Some(volume) = view.volume else {
        let why = || MoveStep::Refuse("the claim has no volume yet: its Pod decides where that is made".into());
        return wished.map_or(MoveStep::Rest, |_| why());
    };
    let name = volume.metadata.name.clone().unwrap_or_default();
    if view.claim.is_some_and(|it| !is_of(it, volume)) {
        let why = || MoveStep::Refuse(format!("volume {name} is not this claim's"));
        return wished.map_or(MoveStep::Rest, |_| why());
    }
    let csi = volume.spec.as_ref().and_then(|it| it.csi.as_ref()).filter(|it| it.driver == view.driver);
    let (Some(csi), Some(at)) = (csi, node_of(volume)) else {
        let why = || MoveStep::Refuse(format!("only volumes of {} are moved", view.driver));
        return wished.map_or(MoveStep::Rest, |_| why());
    };
    let marks = volume.metadata.annotations.as_ref();
    let id = annotation(marks, MOVE_ID);
    let transfer = |from: &str, to: &str| VolumeTransfer {
        volume: name.clone(),
        handle: csi.volume_handle.clone(),
        from: from.to_owned(),
        to: to.to_owned(),
        id: id.unwrap_or_default().to_owned(),
    };
    if let Some(from) = annotation(marks, MOVED_FROM).filter(|it| *it != at) {
        let node = view.nodes.contains(from).then(|| from.to_owned());
        return MoveStep::RemoveOld { transfer: transfer(from, at), node };
    }
    let wished = wished.filter(|_| view.claim.is_some_and(|it| is_bound(it, volume)));
    let under_way = annotation(marks, MOVING_TO);
    if let Some(to) = under_way.filter(|it| *it != at) {
        // A Pod that was placed before the wish was seen waits for the volume, and the volume would wait for it.
        let is_off = annotation(marks, MOVE_CALLED_OFF).is_some() || view.pod.is_some() || id.is_none();
        if is_off || wished != Some(to) {
            return MoveStep::CallOff {
                transfer: transfer(at, to),
                to: view.nodes.contains(to).then(|| to.to_owned()),
            };
        }
    }
    match wished {
        None => MoveStep::Rest,
        Some(to) if to == at => MoveStep::Fulfilled { node: at.to_owned() },
        Some(to) => match (view.nodes.contains(to), view.pod) {
            (false, _) if under_way.is_none() => {
                MoveStep::Refuse(format!("there is no node {to} with the driver {}", view.driver))
            }
            (false, _) => MoveStep::Wait { reason: "MoveNoNode", message: format!("node {to} is gone") },
            (true, Some(pod)) => MoveStep::Wait {
                reason: "MoveInUse",
                message: format!("pod {pod} has the volume on node {at}: it is moved when no Pod has it"),
            },
            (true, None) if under_way.is_none() => MoveStep::Begin(transfer(at, to)),
            (true, None) => MoveStep::Copy(transfer(at, to)),
        },
    }
}

/// What the volume is when it has moved: everything else of it stays.
pub fn moved(volume: &PersistentVolume, transfer: &VolumeTransfer) -> Value {
    let expression = json!({ "key": HOSTNAME, "operator": "In", "values": [transfer.to] });
    json!({
        "metadata": {
            "resourceVersion": volume.metadata.resource_version,
            "annotations": { MOVING_TO: null, MOVED_FROM: transfer.from },
        },
        "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } } },
    })
}

/// An id that no other move of the volume has. Nodes read from it which of two moves is the later one.
pub fn id_of(volume: &PersistentVolume, nonce: &str) -> String {
    format!("{}-{nonce}", volume.metadata.resource_version.as_deref().unwrap_or("0"))
}

/// The volume marked: from now on the move can only be undone.
pub fn called_off(volume: &PersistentVolume, transfer: &VolumeTransfer) -> Value {
    json!({ "metadata": {
        "resourceVersion": volume.metadata.resource_version,
        "annotations": { MOVE_ID: transfer.id, MOVE_CALLED_OFF: "true" },
    } })
}

/// The volume marked: a copy of it is made.
pub fn begun(volume: &PersistentVolume, transfer: &VolumeTransfer) -> Value {
    let held = volume.metadata.finalizers.iter().flatten().filter(|it| *it != MOVE_FINALIZER);
    let finalizers: Vec<&str> = held.map(String::as_str).chain([MOVE_FINALIZER]).collect();
    json!({ "metadata": {
        "resourceVersion": volume.metadata.resource_version,
        "annotations": { MOVING_TO: transfer.to, MOVE_ID: transfer.id, MOVE_CALLED_OFF: null },
        "finalizers": finalizers,
    } })
}

/// The volume without the marks: nothing of a move is left.
pub fn ended(volume: &PersistentVolume) -> Value {
    let held: Vec<&String> = volume.metadata.finalizers.iter().flatten().filter(|it| *it != MOVE_FINALIZER).collect();
    json!({ "metadata": {
        "resourceVersion": volume.metadata.resource_version,
        "annotations": { MOVING_TO: null, MOVED_FROM: null, MOVE_ID: null, MOVE_CALLED_OFF: null },
        "finalizers": held,
    } })
}

/// The claim's status with the condition; `None`: it says that already. Without `told` the condition goes.
pub fn with_condition(claim: &PersistentVolumeClaim, told: Option<(bool, &str, &str)>, now: Time) -> Option<Value> {
    let status = claim.status.as_ref();
    let all: Vec<Value> = status.iter().flat_map(|it| it.conditions.iter().flatten()).map(|it| json!(it)).collect();
    let (own, mut others): (Vec<Value>, Vec<Value>) = all.into_iter().partition(|it| it["type"] == MOVE_CONDITION);
    let before = own.first();
    match (told, before) {
        (None, None) => return None,
        (None, Some(_)) => {}
        (Some((is_moving, reason, message)), before) => {
            let status = if is_moving { "True" } else { "False" };
            let says = |it: &Value| it["status"] == status && it["reason"] == reason;
            if before.is_some_and(|it| says(it) && it["message"] == message) {
                return None;
            }
            others.push(json!({
                "type": MOVE_CONDITION,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": transition_time(before, status, now),
            }));
        }
    }
    Some(json!({
        "metadata": { "resourceVersion": claim.metadata.resource_version },
        "status": { "conditions": others },
    }))
}

#[cfg(test)]
mod tests;
