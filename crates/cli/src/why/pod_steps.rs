//! A Pod's steps: the scheduler's, then the kubelet's; what a journal has forgotten is taken from the Pod itself.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Step, StepState, Wait};
use serde_json::Value;

use super::{
    duration::duration,
    fields::{condition, items, text, time},
};

/// The kubelet's step that ends a Pod.
const END: &str = "end";
/// What a Pod that has ended had, and its node cannot give back.
const CLEANUP: &str = "FailedCleanup";
/// What the scheduler says of a Pod that something may have helped.
const BACK_OFF: &str = "SchedulingBackOff";
/// What it says of a Pod whose claim goes to another node.
const IS_MOVED: &str = "is being moved to node ";
/// Words of the scheduler's plugins, and what each is a wait for.
const REFUSALS: [(&[&str], &str, Actor); 12] = [
    (&["readwriteoncepod"], "VolumeRestrictions", Actor::Author),
    (&["persistentvolume", "persistent volumes", "pvc", "free storage"], "VolumeBinding", Actor::Author),
    (&["insufficient ", "too many pods"], "InsufficientResources", Actor::Operator),
    (&["untolerated taint"], "UntoleratedTaint", Actor::Operator),
    (&["were unschedulable"], "NodeUnschedulable", Actor::Operator),
    (&["pod affinity rules", "anti-affinity rules"], "InterPodAffinity", Actor::Author),
    (&["node affinity"], "NodeAffinity", Actor::Author),
    (&["free ports"], "NodePorts", Actor::Author),
    (&["topology spread"], "PodTopologySpread", Actor::Author),
    (&["max volume count"], "NodeVolumeLimits", Actor::Operator),
    (&["available volume zone"], "VolumeZone", Actor::Operator),
    (&["resourceclaim", "allocate all claims"], "DynamicResources", Actor::Operator),
];
/// Who places Pods that do not say otherwise.
const OWN_SCHEDULER: &str = "default-scheduler";

pub(super) fn of(pod: &Value, decisions: &[Decision]) -> Vec<Step> {
    let by =
        |name: &str| decisions.iter().filter(|it| it.by == name).flat_map(|it| it.steps.clone()).collect::<Vec<_>>();
    let node = pod["spec"]["nodeName"].as_str();
    let kubelet = by("kubelet");
    let mut steps = scheduled(pod, node, by("scheduler"));
    if let Some(node) = node.filter(|_| kubelet.is_empty() && !is_over(pod)) {
        // The journal of a kubelet on another machine is there: what it has said of the Pod is in the status.
        let has_spoken = pod["status"]["startTime"].is_string();
        steps.push(if has_spoken { elsewhere(pod, node) } else { silent(pod, node) });
    }
    steps.extend(kubelet);
    if pod["metadata"]["deletionTimestamp"].is_string() {
        // What it once waited for to run matters no more.
        steps.retain(|it| it.name == END);
    }
    if is_over(pod) {
        let is_kept = |it: &Step| it.wait.as_ref().is_some_and(|it| it.reason == CLEANUP);
        steps.iter_mut().filter(|it| !is_kept(it)).for_each(|it| it.wait = None);
        // Nothing else is under way any more, whatever its journal says it last saw.
        steps.retain(|it| is_kept(it) || matches!(it.state, StepState::Done | StepState::Failed));
    }
    steps
}

/// Of a Pod that the scheduler tries again soon, what was in its way when it was last tried is waited for still: its condition
/// says it. A back-off alone needs nobody, and neither does a volume on its way to another node, of which the claim tells.
pub(super) fn recall(pod: &Value, decisions: &mut [Decision]) {
    let is_moved = |it: &Wait| it.message.contains(IS_MOVED);
    for decision in decisions.iter_mut().filter(|it| it.waits.iter().any(is_moved)) {
        for step in decision.steps.iter_mut().filter(|it| it.wait.as_ref().is_some_and(is_moved)) {
            step.state = StepState::Running;
        }
        let waits = decision.waits.iter_mut().chain(decision.steps.iter_mut().filter_map(|it| it.wait.as_mut()));
        waits.filter(|it| is_moved(it)).for_each(|it| it.actor = Actor::Cluster);
    }
    let is_back_off = |it: &Wait| it.reason == BACK_OFF;
    for decision in decisions.iter_mut().filter(|it| it.waits.iter().any(is_back_off)) {
        let known = last_refusal(pod);
        for step in decision.steps.iter_mut().filter(|it| it.wait.as_ref().is_some_and(is_back_off)) {
            match &known {
                Some(wait) => (step.message, step.wait) = (wait.message.clone(), Some(wait.clone())),
                None => step.state = StepState::Running,
            }
        }
        decision.waits.splice(0..0, known);
    }
}

/// What the condition `PodScheduled` says, as a wait of the plugin whose words those are.
fn last_refusal(pod: &Value) -> Option<Wait> {
    let condition = condition(pod, "PodScheduled").filter(|it| it["status"] == "False")?;
    let message = Some(text(condition, "/message")).filter(|it| !it.is_empty())?;
    let words = message.to_lowercase();
    let known = REFUSALS.iter().find(|it| it.0.iter().any(|it| words.contains(it)));
    let (reason, actor) = known.map_or((text(condition, "/reason"), Actor::Operator), |it| (it.1, it.2));
    let mut wait = Wait::new(reason, message, actor);
    if reason == "VolumeBinding" {
        let claims = || items(pod, "/spec/volumes").iter().filter(|it| it["persistentVolumeClaim"].is_object());
        let only = claims().next().filter(|_| claims().count() == 1);
        let named = words.contains("persistentvolumeclaim \"").then(|| message.split('"').nth(1)).flatten();
        let is_unbound = words.contains("unbound immediate");
        let claim = named.or_else(|| Some(text(only.filter(|_| is_unbound)?, "/persistentVolumeClaim/claimName")));
        wait = claim.map_or(wait.clone(), |it| wait.on("PersistentVolumeClaim", it));
    }
    wait.since = scheduled_at(pod).1;
    Some(wait)
}

pub(super) fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn scheduled(pod: &Value, node: Option<&str>, said: Vec<Step>) -> Vec<Step> {
    let is_bound = |it: &Step| it.state == StepState::Done;
    match node {
        Some(_) if said.iter().any(is_bound) => said,
        Some(node) => vec![bound(pod, node)],
        None if said.is_empty() => vec![unbound(pod)],
        None => said,
    }
}

fn scheduled_at(pod: &Value) -> (Option<Time>, Option<Time>) {
    let changed = condition(pod, "PodScheduled").and_then(|it| time(&it["lastTransitionTime"]));
    let created = time(&pod["metadata"]["creationTimestamp"]);
    (created, changed.or(created))
}

fn bound(pod: &Value, node: &str) -> Step {
    let (started, finished) = scheduled_at(pod);
    Step { started, finished, message: format!("on node {node}"), ..step("scheduled", StepState::Done) }
}

fn unbound(pod: &Value) -> Step {
    let (created, changed) = scheduled_at(pod);
    let scheduler = text(pod, "/spec/schedulerName");
    let condition = condition(pod, "PodScheduled");
    let mut wait = match condition.and_then(|it| it["reason"].as_str()) {
        Some(reason) => {
            let message = condition.and_then(|it| it["message"].as_str()).unwrap_or_default();
            let actor = if reason == "SchedulingGated" { Actor::External } else { Actor::Operator };
            Wait::new(reason, message, actor)
        }
        None if !matches!(scheduler, "" | OWN_SCHEDULER) => {
            let message = format!("it asks for the scheduler {scheduler:?}, which has not said anything about it");
            Wait::new("NotScheduled", message, Actor::External)
        }
        None => Wait::new("NotScheduled", "no scheduler has looked at it yet", Actor::Operator),
    };
    wait.since = changed.or(created);
    Step { started: created, wait: Some(wait), ..step("scheduled", StepState::Blocked) }
}

fn silent(pod: &Value, node: &str) -> Step {
    let message = format!("node {node} has not said anything about this Pod");
    let mut wait = Wait::new("NodeSilent", message, Actor::Operator).on("node", node);
    wait.since = scheduled_at(pod).1;
    Step { wait: Some(wait), ..step("node", StepState::Blocked) }
}

fn elsewhere(pod: &Value, node: &str) -> Step {
    let ready = condition(pod, "Ready");
    let since = ready.and_then(|it| time(&it["lastTransitionTime"]));
    if ready.is_some_and(|it| it["status"] == "True") {
        let (started, message) = (scheduled_at(pod).1, format!("node {node} says that it is ready"));
        return Step { started, finished: since, message, ..step("node", StepState::Done) };
    }
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut statuses = statuses.iter().flat_map(|it| items(pod, it));
    let waiting = statuses.find_map(|it| {
        let (name, waiting) = (text(it, "/name"), it.pointer("/state/waiting")?);
        let said = waiting["message"].as_str().unwrap_or("it has not started");
        Some((waiting["reason"].as_str()?, format!("container {name} on node {node}: {said}")))
    });
    let (reason, message) = waiting.unwrap_or_else(|| {
        let said = ready.and_then(|it| it["message"].as_str()).unwrap_or("its containers are not ready");
        ("ContainersNotReady", format!("on node {node}: {said}"))
    });
    let goes_on = matches!(reason, "ContainerCreating" | "PodInitializing");
    let mut wait = Wait::new(reason, message, if goes_on { Actor::Cluster } else { Actor::Author });
    wait.since = since;
    Step { wait: Some(wait), ..step("node", StepState::Blocked) }
}

fn step(name: &str, state: StepState) -> Step {
    Step {
        name: name.into(),
        state,
        started: None,
        finished: None,
        message: String::new(),
        log: Vec::new(),
        wait: None,
    }
}

/// When it was ready, how long that took, and what took longest: "why was it slow?". What lies between two steps counts,
/// too: there something was waited for. Steps of a later time are not of that start: a node that came back mounted a Pod's
/// volumes anew. Where a container was started again since, its first start is not known any more.
pub(super) fn how_it_started(steps: &[Step]) -> Option<String> {
    let ready = steps.iter().find(|it| it.name == "ready")?.finished?;
    let restarted = steps.iter().filter(|it| it.name.starts_with("container ")).find_map(restarts);
    if let Some(restarts) = restarted {
        return Some(format!("ready since {}, after {restarts}", ready.whole_seconds()));
    }
    let timed = steps.iter().filter_map(|it| Some((it.started?, it.finished?, &*it.name)));
    let mut timed: Vec<_> = timed.filter(|it| it.1 <= ready).collect();
    timed.sort();
    let began = timed.first()?.0;
    let mut longest = (Duration::ZERO, String::new());
    let mut until = began;
    for (started, finished, name) in timed {
        longest = longest.max((finished.since(started), format!("the longest step was {name}")));
        longest = longest.max((started.since(until), format!("the longest part was the wait before {name}")));
        until = until.max(finished);
    }
    let total = duration(ready.since(began));
    let (took, what) = longest;
    Some(format!("ready since {}, {total} after it began; {what}, {}", ready.whole_seconds(), duration(took)))
}

/// `2 restarts of container app`, as the kubelet ends the step's message.
fn restarts(step: &Step) -> Option<String> {
    let said = step.message.rsplit("; ").next()?;
    let (n, word) = said.split_once(' ')?;
    let is_it = n.parse::<u32>().is_ok() && matches!(word, "restart" | "restarts");
    is_it.then(|| format!("{said} of {}", step.name))
}

#[cfg(test)]
mod tests;
