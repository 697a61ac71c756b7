//! Since when something is waited for. What a loop remembers begins anew with its process, and with each try; where the object itself, or
//! an event about it, says an older time of the same trouble, that is the beginning.

use corten_kinds::Kind;
use corten_meta::Time;
use corten_reconcile::{Actor, Step, Wait};
use serde_json::Value;

use super::{
    fields::{condition, items, text, time},
    findings::refusal,
};

/// Reasons that are one trouble, and the events that tell of it: their reason, and how their message begins.
type Trouble = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const PULL: Trouble = (
    &["ErrImagePull", "ImagePullBackOff"],
    &[
        ("BackOff", "Back-off pulling image"),
        ("Failed", "Error: ErrImagePull"),
        ("Failed", "Error: ImagePullBackOff"),
        ("Failed", "Failed to pull image"),
    ],
);
const CRASH: Trouble = (
    &["CrashLoopBackOff", "PostStartHookError", "RunContainerError"],
    &[("BackOff", "Back-off restarting failed container"), ("FailedPostStartHook", "")],
);
/// A claim that was never bound waits so since it was made.
const OF_NEW_CLAIMS: [&str; 4] = ["NoStorageClass", "NoVolumeFits", "StorageClassNotFound", "WaitForFirstConsumer"];
const OF_SILENT_NODES: [&str; 3] = ["NodeNotReady", "NodeSilent", "NotReady"];

/// Takes the older time wherever there is one.
pub(super) fn settle(kind: &Kind, object: &Value, events: &[Value], steps: &mut [Step], waits: &mut [(String, Wait)]) {
    // Whoever writes a time of its own may have none; nothing is older than its object.
    let created = time(&object["metadata"]["creationTimestamp"]);
    for step in steps {
        let container = step.name.split_once(' ').map(|it| it.1.to_owned());
        let is_scheduling = step.name == "scheduled";
        let Some(wait) = &mut step.wait else { continue };
        let begun = match is_scheduling {
            true => unscheduled_since(object, events, wait),
            false => begun(kind, object, events, wait, container.as_deref()),
        };
        take_older(wait, begun.max(created.filter(|_| begun.is_some())));
    }
    for (by, wait) in waits {
        let begun = match by.as_str() {
            "scheduler" if kind.singular == "pod" => unscheduled_since(object, events, wait),
            _ => begun(kind, object, events, wait, None),
        };
        take_older(wait, begun.max(created.filter(|_| begun.is_some())));
    }
}

/// Of what has no time it may not be known that it is the same.
fn take_older(wait: &mut Wait, begun: Option<Time>) {
    wait.since = wait.since.map(|it| begun.map_or(it, |begun| it.min(begun)));
}

fn begun(kind: &Kind, object: &Value, events: &[Value], wait: &Wait, container: Option<&str>) -> Option<Time> {
    let reason = &*wait.reason;
    let changed = |it: &Value| time(&it["lastTransitionTime"]);
    match &*kind.singular {
        "pod" if reason == "ReadinessGate" => return condition(object, "ContainersReady").and_then(changed),
        "pod" => {}
        "persistentvolumeclaim" if object["status"]["phase"] == "Pending" && OF_NEW_CLAIMS.contains(&reason) => {
            return time(&object["metadata"]["creationTimestamp"]);
        }
        "node" if OF_SILENT_NODES.contains(&reason) => {
            return condition(object, "Ready").filter(|it| it["status"] != "True").and_then(changed);
        }
        _ => {
            let is_it = |it: &&Value| text(it, "/type") == reason || is_same(text(it, "/reason"), it, wait);
            let told = items(object, "/status/conditions").iter().filter(is_it).filter_map(changed).min();
            return told.into_iter().chain(first_event(events, wait, None)).min();
        }
    }
    let name = container.or_else(|| wait.message.strip_prefix("container ")?.split_once(": ").map(|it| it.0));
    let first = first_event(events, wait, name)?;
    // What was in the way before the Pod was ready is over.
    let is_ready = condition(object, "Ready").is_some_and(|it| it["status"] == "True");
    if CRASH.0.contains(&reason) {
        return Some(first);
    }
    if is_ready {
        return has_restarted(object, name).then_some(first);
    }
    condition(object, "Ready").and_then(changed).into_iter().chain([first]).max()
}

/// When the first of the events was that tell of it.
fn first_event(events: &[Value], wait: &Wait, container: Option<&str>) -> Option<Time> {
    let troubles = [PULL, CRASH];
    let trouble = troubles.iter().find(|it| it.0.contains(&&*wait.reason));
    let is_of_container = |event: &Value| match (container, text(event, "/involvedObject/fieldPath")) {
        (None, _) | (_, "") => true,
        (Some(name), path) => path.ends_with(&format!("{{{name}}}")),
    };
    let is_told = |event: &Value| {
        let (reason, message) = (text(event, "/reason"), text(event, "/message"));
        let is_known = trouble.is_some_and(|it| it.1.iter().any(|it| it.0 == reason && message.starts_with(it.1)));
        match &*wait.reason {
            "Unhealthy" => reason == "Unhealthy" && is_of_probe(&wait.message, message),
            _ => {
                let is_told = !wait.message.is_empty() && message.ends_with(&wait.message);
                is_known || is_told || is_same(reason, event, wait)
            }
        }
    };
    let told = events.iter().filter(|it| is_of_container(it) && is_told(it));
    told.filter_map(|it| time(&it["firstTimestamp"])).min()
}

/// A refused write has the name of what refused it, and in conditions and events one for all.
fn is_same(reason: &str, told: &Value, wait: &Wait) -> bool {
    reason == wait.reason
        || refusal::refined(Wait::new(reason, text(told, "/message"), Actor::Operator)).reason == wait.reason
}

/// `Readiness probe failed: …` of `its readiness probe fails: …`.
fn is_of_probe(wait: &str, event: &str) -> bool {
    let kind = event.split(' ').next().unwrap_or_default().to_lowercase();
    wait.contains(&format!("its {kind} probe"))
}

fn has_restarted(pod: &Value, container: Option<&str>) -> bool {
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut statuses = statuses.iter().flat_map(|it| items(pod, it));
    statuses.any(|it| container.is_none_or(|name| it["name"] == name) && it["restartCount"].as_i64().unwrap_or(0) > 0)
}

/// A gate and a full node are the same condition.
fn unscheduled_since(pod: &Value, events: &[Value], wait: &Wait) -> Option<Time> {
    let condition = condition(pod, "PodScheduled").filter(|it| it["status"] == "False")?;
    let is_gated = |reason: &str| reason == "SchedulingGated";
    if is_gated(&wait.reason) != is_gated(text(condition, "/reason")) {
        return None;
    }
    let told = events.iter().filter(|it| it["reason"] == "FailedScheduling" && !is_gated(&wait.reason));
    let told = told.filter_map(|it| time(&it["firstTimestamp"])).min();
    told.or_else(|| time(&condition["lastTransitionTime"]))
}
