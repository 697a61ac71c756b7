//! Pods: the node below them, and how they ended.

use std::time::Duration;

use corten_api::{
    resources::{NODES, PERSISTENT_VOLUME_CLAIMS},
    scheduling::{Stay, stay},
};
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::{device_claims, found::Findings, observed, refusal, sick_volumes, unheard};
use crate::why::{
    State,
    duration::duration,
    fields::{condition, items, key_of, text, time},
    gather::{newest_event, warning_events},
    pod_steps,
    reader::Reader,
    taints::{taint_of, toleration_of},
};

pub(super) async fn pod(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let node = text(object, "/spec/nodeName");
    let until = time(&object["metadata"]["deletionTimestamp"]);
    if let Some(until) = until.filter(|_| !node.is_empty() && !is_stopped(object)) {
        let of_node = reader.get(&NODES, &Key::cluster(node)).await;
        // Nobody ends its containers there, and eviction would only delete it once more.
        if of_node.is_some_and(|it| is_silent(&it)) {
            let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
            return found.wait(left_behind(node, until.after_seconds(grace.saturating_neg())));
        }
        found.wait(stopping(object, until, reader.now));
    }
    match text(object, "/status/phase") {
        // How it ended matters no more: what keeps it is said already.
        "Succeeded" | "Failed" if until.is_some() => return,
        "Succeeded" => {
            found.verdict = Some((State::Finished, "it has ended, and all its containers succeeded".into()));
            return;
        }
        "Failed" => return failed(object, found),
        _ if node.is_empty() => {
            own_claims(reader, object, found).await;
            device_claims::of_pod(reader, object, found).await;
            return device_claims::extended_resources(reader, object, found).await;
        }
        _ => {}
    }
    if reader.is_missing(&NODES, &Key::cluster(node)).await {
        found.explains.push("NodeSilent");
        let mut message =
            format!("its node {node} is not there: nobody runs it, and it is given up when that has been so for 40 s");
        let is_made_anew = items(object, "/metadata/ownerReferences").iter().any(|it| it["controller"] == true);
        if !is_made_anew {
            message.push_str("; no controller makes it anew");
        }
        return found.add("NodeGone", message, Actor::Cluster);
    }
    let Some(object_of_node) = reader.get(&NODES, &Key::cluster(node)).await else { return };
    if let Some(ready) = condition(&object_of_node, "Ready").filter(|it| it["status"] != "True") {
        let since = time(&ready["lastTransitionTime"]);
        let evicted = match evicted_at(object, &object_of_node) {
            _ if until.is_some() => "it is deleted, and waits for the node to end it".to_owned(),
            None => "it stays there".to_owned(),
            Some(at) if at > reader.now => format!("it is evicted in {}", duration(at.since(reader.now))),
            Some(_) => "it is being evicted".to_owned(),
        };
        let mut wait = Wait::new("NodeNotReady", format!("its node {node} is not ready; {evicted}"), Actor::Operator);
        wait.since = since;
        found.wait(wait.on("Node", node));
    } else if condition(object, "Ready").is_some_and(|it| it["status"] == "True") {
        unheard::pod(reader, node, found).await;
    }
    observed::pod(reader, object, found).await;
    sick_volumes::of(reader, object, found).await;
}

/// Claims of its own volumes that are not made: another's has the name, or the server takes none, as the newest event says.
async fn own_claims(reader: &Reader<'_>, pod: &Value, found: &mut Findings) {
    for volume in items(pod, "/spec/volumes").iter().filter(|it| it["ephemeral"].is_object()) {
        let (own, volume) = (key_of(pod), text(volume, "/name"));
        let claim = Key::new(own.namespace, format!("{}-{volume}", own.name));
        let n_before = found.waits.len();
        if reader.is_missing(&PERSISTENT_VOLUME_CLAIMS, &claim).await {
            let mark = format!("ephemeral volume {volume}: ");
            let is_it = |it: &Value| text(it, "/reason") == "FailedBinding" && text(it, "/message").starts_with(&mark);
            let Some(said) = newest_event(&warning_events(reader, pod).await, is_it) else { continue };
            found.wait(refusal::refined(Wait::new("FailedCreate", &said[mark.len()..], Actor::Operator)));
        } else {
            let Some(other) = reader.get(&PERSISTENT_VOLUME_CLAIMS, &claim).await else { continue };
            let is_own = |it: &Value| it["controller"] == true && it["uid"] == pod["metadata"]["uid"];
            if items(&other, "/metadata/ownerReferences").iter().any(is_own) {
                continue;
            }
            let message = format!("persistentvolumeclaim {:?} was not created for the pod", claim.name);
            let wait = Wait::new("ClaimOfAnother", message, Actor::Author);
            found.wait(wait.on("PersistentVolumeClaim", &claim.name));
        }
        found.begun(n_before, time(&pod["metadata"]["creationTimestamp"]));
        found.explains.push("VolumeBinding");
    }
}

/// Has its node ended it, so that only finalizers keep it?
fn is_stopped(pod: &Value) -> bool {
    pod_steps::is_over(pod) && !items(pod, "/metadata/finalizers").is_empty()
}

/// Has the cluster given up hearing of it?
fn is_silent(node: &Value) -> bool {
    condition(node, "Ready").is_some_and(|it| it["status"] == "Unknown")
}

fn left_behind(node: &str, since: Time) -> Wait {
    let message =
        format!("it is deleted, and waits for its node {node}, which is silent: only that can tell that it has ended");
    Wait { since: Some(since), ..Wait::new("NodeNotReady", message, Actor::Operator) }.on("Node", node)
}

/// A grace period ends by itself, and a node that lets it pass has a problem.
const OVERDUE: Duration = Duration::from_secs(10);

fn stopping(pod: &Value, until: Time, now: Time) -> Wait {
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let wait = if until.after(OVERDUE) < now {
        let message = format!(
            "its grace period of {grace} s ended {} ago, and its node has not ended it",
            duration(now.since(until))
        );
        Wait::new("StopOverdue", message, Actor::Operator).on("Node", text(pod, "/spec/nodeName"))
    } else {
        let left = if until > now { duration(until.since(now)) } else { "no time".into() };
        let message =
            format!("its containers are asked to end, and have {left} left of {grace} s: then they are killed");
        Wait::new("Stopping", message, Actor::Cluster)
    };
    Wait { since: until.after_seconds(grace.saturating_neg()).into(), ..wait }
}

/// When the taints of its node drive the Pod away; never where it tolerates them without end. A controller that was not there to
/// take a taint back waits longer: that is not known here.
fn evicted_at(pod: &Value, node: &Value) -> Option<Time> {
    let taints = || items(node, "/spec/taints").iter().filter(|it| it["effect"] == "NoExecute");
    let tolerations = items(pod, "/spec/tolerations").iter();
    let tolerations = tolerations.map(|it| (toleration_of(it), it["tolerationSeconds"].as_i64()));
    let tainted = taints().filter_map(|it| time(&it["timeAdded"])).max();
    match stay(taints().map(taint_of), tolerations) {
        Stay::Forever => None,
        Stay::Ended => tainted,
        Stay::For(stay) => {
            let came = condition(pod, "PodScheduled").and_then(|it| time(&it["lastTransitionTime"]));
            Some(tainted.into_iter().chain(came).max()?.after(stay))
        }
    }
}

/// How the kubelet's `localStorageEviction` says that a Pod used more of a disk than it may.
const OWN_LIMITS: [&str; 3] =
    ["Usage of EmptyDir volume", "exceeded its local ephemeral storage limit", "exceeds the total limit of containers"];

/// The Pod is over and did not end well: it says why, or a container's end does.
fn failed<'a>(pod: &'a Value, found: &mut Findings) {
    let (reason, message) = (text(pod, "/status/reason"), text(pod, "/status/message"));
    let ends = items(pod, "/status/initContainerStatuses").iter().chain(items(pod, "/status/containerStatuses"));
    // One that was lost with its machine, and is not started again, waits and has its end in `lastState`.
    let end = |it: &'a Value| it.pointer("/state/terminated").or_else(|| it.pointer("/lastState/terminated"));
    let bad = ends.filter_map(|it| Some((text(it, "/name"), end(it)?)));
    let bad = bad.filter(|(_, it)| it["exitCode"] != 0).min_by_key(|(_, it)| text(it, "/finishedAt").to_owned());
    let (reason, message, at) = match bad {
        _ if !reason.is_empty() => {
            let told = condition(pod, "DisruptionTarget").or_else(|| condition(pod, "Ready"));
            (reason, message.to_owned(), told.and_then(|it| time(&it["lastTransitionTime"])))
        }
        Some((name, end)) => {
            let (code, said) = (&end["exitCode"], text(end, "/message"));
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            let reason = if end["reason"] == "OOMKilled" { "OOMKilled" } else { "PodFailed" };
            (reason, format!("container {name} ended with exit code {code}{said}"), time(&end["finishedAt"]))
        }
        None => ("PodFailed", "it says no more of it".to_owned(), None),
    };
    // Over a limit of its own, as its author wrote it, or for want of what the node has.
    let is_own = OWN_LIMITS.iter().any(|it| message.contains(it));
    let actor = if reason == "NodeLost" || reason == "Evicted" && !is_own { Actor::Operator } else { Actor::Author };
    found.verdict = Some((State::Failed, format!("{reason}: {message}")));
    let mut wait = Wait::new(reason, message, actor);
    wait.since = at;
    found.wait(wait);
}
