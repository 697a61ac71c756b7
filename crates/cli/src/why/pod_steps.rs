//! A Pod's steps: the scheduler's, then the kubelet's; what a journal has forgotten is taken from the Pod itself.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Step, StepState, Wait};
use serde_json::Value;

use super::{
    duration::duration,
    fields::{condition, text, time},
};

/// The kubelet's step that ends a Pod.
const END: &str = "end";
/// Who places Pods that do not say otherwise.
const OWN_SCHEDULER: &str = "default-scheduler";

pub(super) fn of(pod: &Value, decisions: &[Decision]) -> Vec<Step> {
    let by =
        |name: &str| decisions.iter().filter(|it| it.by == name).flat_map(|it| it.steps.clone()).collect::<Vec<_>>();
    let node = pod["spec"]["nodeName"].as_str();
    let kubelet = by("kubelet");
    let mut steps = scheduled(pod, node, by("scheduler"));
    if let Some(node) = node.filter(|_| kubelet.is_empty() && !is_over(pod)) {
        steps.push(silent(pod, node));
    }
    steps.extend(kubelet);
    if pod["metadata"]["deletionTimestamp"].is_string() {
        // What it once waited for to run matters no more.
        steps.retain(|it| it.name == END);
    }
    if is_over(pod) {
        steps.iter_mut().for_each(|it| it.wait = None);
        // Nothing is under way any more, whatever its journal says it last saw.
        steps.retain(|it| matches!(it.state, StepState::Done | StepState::Failed));
    }
    steps
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
/// too: there something was waited for.
pub(super) fn how_it_started(steps: &[Step]) -> Option<String> {
    let ready = steps.iter().find(|it| it.name == "ready")?.finished?;
    let mut timed: Vec<_> = steps.iter().filter_map(|it| Some((it.started?, it.finished?, &*it.name))).collect();
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
