//! Conditions that say what is not well, of every kind that has some: no loop of this cluster need know them.

use corten_api::load_balancer::POOL_ADDRESSES;
use corten_kinds::Kind;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::fields::{items, text, time};

/// Conditions that are `True` where all is well.
const GOOD: [&str; 12] = [
    "AbleToScale",
    "Accepted",
    "Available",
    "Established",
    "KubernetesAPIApprovalPolicyConformant",
    "NamesAccepted",
    "Programmed",
    "Ready",
    "ScalingActive",
    "Succeeded",
    "Synced",
    POOL_ADDRESSES,
];
/// Conditions that are `True` where something is not well.
const BAD: [&str; 12] = [
    "ControllerResizeError",
    "Dangling",
    "Degraded",
    "Failed",
    "LoadBalancerPortsError",
    "ModifyVolumeError",
    "NodeResizeError",
    "NonStructuralSchema",
    "PortsAllocationFailed",
    "Stalled",
    "Terminating",
    "VolumeMoving",
];

/// Kinds whose conditions say what is normal, too, or what their loop's journal says better.
const READ_ELSEWHERE: [&str; 11] = [
    "certificatesigningrequest",
    "deployment",
    "job",
    "namespace",
    "node",
    "pod",
    "poddisruptionbudget",
    "replicaset",
    "replicationcontroller",
    "statefulset",
    "verticalpodautoscaler",
];

/// The conditions of an object that say that it is not well.
pub(crate) fn bad<'a>(kind: &Kind, object: &'a Value) -> impl Iterator<Item = &'a Value> {
    let is_read = !READ_ELSEWHERE.contains(&&*kind.singular);
    items(object, "/status/conditions").iter().filter(move |it| is_read && is_bad(it))
}

fn is_bad(condition: &Value) -> bool {
    let (name, status) = (text(condition, "/type"), text(condition, "/status"));
    // Who scales a workload to nothing has told its autoscaler to rest; who defines kinds in Kubernetes' own groups without leave
    // has said so, and they are served.
    let is_wished = matches!(text(condition, "/reason"), "ScalingDisabled" | "UnapprovedAnnotation");
    !is_wished && (GOOD.contains(&name) && status != "True" || BAD.contains(&name) && status == "True")
}

pub(super) fn waits(kind: &Kind, object: &Value, found: &mut Findings) {
    for condition in bad(kind, object) {
        let (name, status, said) = (text(condition, "/type"), text(condition, "/status"), text(condition, "/message"));
        let reason = Some(text(condition, "/reason")).filter(|it| !it.is_empty()).unwrap_or(name);
        let message = format!("condition {name} is {status}: {said}");
        let mut wait = Wait::new(reason, message.trim_end_matches(": "), actor(kind, object, name));
        // No condition is older than its object: whoever writes a time of its own may have none.
        let created = time(&object["metadata"]["creationTimestamp"]);
        wait.since = time(&condition["lastTransitionTime"]).max(created);
        found.wait(wait);
    }
}

fn actor(kind: &Kind, object: &Value, condition: &str) -> Actor {
    match &*kind.singular {
        "persistentvolumeclaim" if condition == "VolumeMoving" => mover(object),
        // The same size will be refused again.
        "persistentvolumeclaim" if condition.ends_with("ResizeError") && is_infeasible(object) => Actor::Author,
        "service" if matches!(reason(object, condition), "AddressTaken" | "AddressNotInPool") => Actor::Author,
        // What they name is not there, or cannot be done.
        "flowschema" | "storageversionmigration" => Actor::Author,
        "apiservice" if object["spec"]["service"].is_object() => Actor::External,
        // Of custom objects the cluster knows nothing: whoever wrote the condition does.
        _ if kind.is_custom() && writer(object, condition).is_some() => Actor::External,
        _ => Actor::Operator,
    }
}

/// Does the claim's driver refuse for good the size that it asks for? Room may be made, and is asked for again.
pub(crate) fn is_infeasible(claim: &Value) -> bool {
    let mut conditions = items(claim, "/status/conditions").iter();
    let has_no_room = conditions.any(|it| {
        text(it, "/type").ends_with("ResizeError") && text(it, "/message").contains("code = ResourceExhausted ")
    });
    !has_no_room && text(claim, "/status/allocatedResourceStatuses/storage").ends_with("Infeasible")
}

/// Whose turn it is while a claim's volume is moved to another node.
fn mover(claim: &Value) -> Actor {
    match reason(claim, "VolumeMoving") {
        "MoveCopying" | "MoveRetrying" => Actor::Cluster,
        "MoveInUse" => Actor::Author,
        _ => Actor::Operator,
    }
}

fn reason<'a>(object: &'a Value, condition: &str) -> &'a str {
    let told = items(object, "/status/conditions").iter().find(|it| it["type"] == condition);
    told.map(|it| text(it, "/reason")).unwrap_or_default()
}

/// The condition that a wait repeats.
pub(crate) fn condition_of(wait: &Wait) -> Option<&str> {
    wait.message.strip_prefix("condition ")?.split_once(" is ").map(|it| it.0)
}

/// Who wrote a condition of an object last, as its `managedFields` say; where they say it only of all conditions, who wrote
/// those.
pub(crate) fn writer<'a>(object: &'a Value, condition: &str) -> Option<&'a str> {
    let entry = format!("k:{{\"type\":\"{condition}\"}}");
    let entries = || items(object, "/metadata/managedFields").iter().rev();
    let conditions = |it: &'a Value| &it["fieldsV1"]["f:status"]["f:conditions"];
    let own = entries().find(|it| conditions(it)[&*entry].is_object());
    let found = own.or_else(|| entries().find(|it| conditions(it).is_object()))?;
    Some(text(found, "/manager")).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests;
