//! PersistentVolumeClaims and PersistentVolumes: whom each belongs to, and what a claim asks for that its volume is not.

use std::time::Duration;

use corten_api::{
    resources::{PODS, STORAGE_CLASSES, VOLUME_ATTRIBUTES_CLASSES},
    volumes::SELECTED_NODE,
};
use corten_meta::{Key, Quantity};
use corten_provisioner::moves::MOVE_CONDITION;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{condition, items, key_of, one_line, text, time},
    gather::{newest_event, warning_events},
    reader::Reader,
};

/// The condition of a claim whose volume is grown, and its file system not yet.
const FILE_SYSTEM: &str = "FileSystemResizePending";
/// How the kubelet tells at a Pod that its volume is not grown.
const NOT_GROWN: &str = "NodeExpandVolume failed for volume ";
/// A node grows what is mounted there within moments.
const NODE_GROWS: Duration = Duration::from_secs(60);
/// A driver that refused is asked again; what it said longer ago may be over.
pub(in crate::why) const REFUSAL_LASTS: Duration = Duration::from_secs(900);

pub(super) async fn claim(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    // While it is moved to another node, no Pod that uses it is placed.
    let is_moved = condition(object, MOVE_CONDITION).is_some_and(|it| it["status"] == "True");
    if text(object, "/status/phase") == "Bound" && !is_leaving && !is_moved && !is_unlike_asked(object) {
        found.verdict = Some((State::Fine, format!("it is bound to volume {}", text(object, "/spec/volumeName"))));
    }
    if text(object, "/status/phase") == "Pending" && !is_leaving {
        refused(reader, object, found).await;
    }
    if text(object, "/status/modifyVolumeStatus/status") == "Pending" {
        let class = text(object, "/spec/volumeAttributesClassName");
        let why = match reader.is_missing(&VOLUME_ATTRIBUTES_CLASSES, &Key::cluster(class)).await {
            true => "is not there",
            false => "is another driver's, or has not been looked at yet",
        };
        let message = format!("its volume is not changed: class {class} {why}");
        found.wait(Wait::new("ModifyVolumePending", message, Actor::Author).on("VolumeAttributesClass", class));
    }
    if is_half_grown(object) && !fails_to_grow(object) {
        file_system(reader, object, found).await;
    }
}

/// Is its volume less than it asks for, or not as the class it asks for says?
pub(crate) fn is_unlike_asked(claim: &Value) -> bool {
    let is_changed = matches!(text(claim, "/status/modifyVolumeStatus/status"), "" | "InProgress");
    let is_refused = condition(claim, "ModifyVolumeError").is_some_and(|it| it["status"] == "True");
    !is_changed || is_refused || is_half_grown(claim) || fails_to_grow(claim)
}

/// Its volume is not as large as it asks for, and somebody has said why.
fn fails_to_grow(claim: &Value) -> bool {
    let says_why = |it: &Value| matches!(text(it, "/type"), "ControllerResizeError" | "NodeResizeError");
    items(claim, "/status/conditions").iter().any(|it| says_why(it) && text(it, "/status") == "True")
}

fn is_half_grown(claim: &Value) -> bool {
    let size = |path: &str| text(claim, path).parse::<Quantity>().unwrap_or_default();
    condition(claim, FILE_SYSTEM).is_some_and(|it| it["status"] == "True")
        && size("/status/capacity/storage") < size("/spec/resources/requests/storage")
}

/// The volume is grown, and the file system on it is to be by the node of a Pod that has it.
async fn file_system(reader: &Reader<'_>, claim: &Value, found: &mut Findings) {
    let (has, asked) = (text(claim, "/status/capacity/storage"), text(claim, "/spec/resources/requests/storage"));
    let since = condition(claim, FILE_SYSTEM).and_then(|it| time(&it["lastTransitionTime"]));
    let users = users(reader, claim).await;
    let n_before = found.waits.len();
    let whole = format!("it has {has} of {asked}: its volume is grown, and the file system on it is not yet");
    let Some(user) = users.first() else {
        found.add(FILE_SYSTEM, format!("{whole}; the next pod that mounts it has it grown"), Actor::Author);
        return found.begun(n_before, since);
    };
    let name = text(user, "/metadata/name");
    let said = newest_event(&warning_events(reader, user).await, |it| text(it, "/message").contains(NOT_GROWN));
    let is_soon = said.is_none() && since.is_some_and(|it| it.after(NODE_GROWS) > reader.now);
    let (then, actor) = match said {
        Some(said) => (format!("pod/{name} has it, and its node says: {}", one_line(&said)), Actor::Operator),
        None if is_soon => {
            (format!("pod/{name} has it, and its node grows it now, or when it begins anew"), Actor::Cluster)
        }
        None => (format!("pod/{name} has it, and must begin anew for that"), Actor::Author),
    };
    found.add(FILE_SYSTEM, format!("{whole}; {then}"), actor);
    found.begun(n_before, since);
}

/// The Pods on nodes that use the claim and have not ended.
async fn users(reader: &Reader<'_>, claim: &Value) -> Vec<Value> {
    let key = key_of(claim);
    let pods = reader.list(&PODS, &key.namespace).await;
    let is_user = |it: &&Value| {
        let is_over = matches!(text(it, "/status/phase"), "Succeeded" | "Failed");
        !is_over && !text(it, "/spec/nodeName").is_empty() && uses(it, &key.name)
    };
    pods.iter().filter(is_user).cloned().collect()
}

/// Has the Pod a volume of the claim, be it one that was made for it?
pub(crate) fn uses(pod: &Value, claim: &str) -> bool {
    items(pod, "/spec/volumes").iter().any(|it| {
        let own = || format!("{}-{}", text(pod, "/metadata/name"), text(it, "/name"));
        text(it, "/persistentVolumeClaim/claimName") == claim || it["ephemeral"].is_object() && own() == claim
    })
}

/// A driver that is asked for a volume where a Pod runs, and refuses, has the Pod placed anew: the claim's loop waits for
/// that again, and says nothing of the refusal.
async fn refused(reader: &Reader<'_>, claim: &Value, found: &mut Findings) {
    let class = text(claim, "/spec/storageClassName");
    if class.is_empty() {
        return;
    }
    let class = reader.get(&STORAGE_CLASSES, &Key::cluster(class)).await;
    let waits = class.is_some_and(|it| it["volumeBindingMode"] == "WaitForFirstConsumer");
    if !waits || claim["metadata"]["annotations"][SELECTED_NODE].is_string() {
        return;
    }
    let warnings = warning_events(reader, claim).await;
    let is_refusal = |it: &Value| {
        let at = time(&it["lastTimestamp"]).or_else(|| time(&it["eventTime"]));
        text(it, "/reason") == "ProvisioningFailed" && at.is_some_and(|it| it.after(REFUSAL_LASTS) >= reader.now)
    };
    let Some(said) = newest_event(&warnings, is_refusal) else { return };
    found.explains.extend(["WaitForPodScheduled", "WaitForFirstConsumer"]);
    let n_before = found.waits.len();
    found.add("ProvisioningFailed", one_line(&said), Actor::External);
    found.begun(n_before, time(&claim["metadata"]["creationTimestamp"]));
}

pub(super) fn volume(object: &Value, found: &mut Findings) {
    let claim = format!("{} in {}", text(object, "/spec/claimRef/name"), text(object, "/spec/claimRef/namespace"));
    let said = match text(object, "/status/phase") {
        "Bound" => format!("it is bound to persistentvolumeclaim/{claim}"),
        "Available" if object["spec"]["claimRef"].is_object() => {
            format!("it is reserved for persistentvolumeclaim/{claim}")
        }
        "Available" => "it is nobody's, and is bound to a claim that it fits".to_owned(),
        _ => return,
    };
    found.verdict = Some((State::Fine, said));
}
