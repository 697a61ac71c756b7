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
mod tests {
    use super::*;

    fn done(name: &str, started: i64, finished: i64) -> Step {
        let at = |it| Some(Time::from_unix_seconds(it));
        Step { started: at(started), finished: at(finished), ..step(name, StepState::Done) }
    }

    #[test]
    fn no_part_of_a_start_is_longer_than_the_whole() {
        let first = |volumes: (i64, i64), message: &str| {
            let container = Step { message: message.into(), ..done("container app", 14, 15) };
            let volumes = done("volumes", volumes.0, volumes.1);
            how_it_started(&[
                done("scheduled", 0, 1),
                done("network", 12, 14),
                volumes,
                container,
                done("ready", 15, 35),
            ])
        };
        for (volumes, message, said) in [
            ((1, 12), "running", "35s after it began; the longest step was ready, 20s"),
            // Its node came back, and looked at its volumes anew.
            ((130, 131), "running", "35s after it began; the longest step was ready, 20s"),
            ((1, 12), "running; 1 restart", "after 1 restart of container app"),
            ((1, 12), "running; 12 restarts", "after 12 restarts of container app"),
        ] {
            let found = first(volumes, message).expect("it is ready");
            assert!(found.ends_with(said), "{found}");
        }
    }
}
