//! How the node does: its conditions, and what is told where one turns.

use std::collections::BTreeSet;

use corten_api::core::v1::{Node, NodeCondition};
use corten_meta::{Time, aggregate};
use serde_json::{Value, json};

use super::event;
use crate::{
    Config, Effect, NodeFacts,
    node::{devices::DeviceCounts, shutdown},
};

pub(super) const OWN: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];

/// What of the node is not the machine's own doing.
#[derive(Clone, Copy)]
pub(super) struct State<'a> {
    pub(super) pressed: &'a [&'static str],
    pub(super) is_shutting_down: bool,
    pub(super) volumes_in_use: &'a BTreeSet<String>,
    pub(super) devices: &'a DeviceCounts,
}

/// Why the node is not ready, in upstream's words.
fn problem(facts: &NodeFacts, state: State<'_>) -> Option<String> {
    let shutdown = state.is_shutting_down.then(|| shutdown::PROBLEM.to_owned());
    let runtime = facts.runtime_problem.as_ref().map(|it| format!("container runtime is down: {it}"));
    aggregate([runtime, network_problem(facts), shutdown].into_iter().flatten())
}

pub(crate) fn network_problem(facts: &NodeFacts) -> Option<String> {
    let ready = "NetworkReady=false reason:NetworkPluginNotReady message:";
    facts.network_problem.as_ref().map(|it| format!("container runtime network not ready: {ready}{it}"))
}

pub(super) fn conditions(facts: &NodeFacts, state: State<'_>, old: &[NodeCondition], now: Time) -> Vec<Value> {
    let pressure = |name, on: [&'static str; 2], off: [&'static str; 2]| {
        let is_on = state.pressed.contains(&name);
        let [reason, message] = if is_on { on } else { off };
        (name, is_on, reason, message.to_owned())
    };
    let ready = match problem(facts, state) {
        None => ("Ready", true, "KubeletReady", "kubelet is posting ready status".to_owned()),
        Some(problem) => ("Ready", false, "KubeletNotReady", problem),
    };
    let own = [
        pressure(
            "MemoryPressure",
            ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
            ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
        ),
        pressure(
            "DiskPressure",
            ["KubeletHasDiskPressure", "kubelet has disk pressure"],
            ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
        ),
        pressure(
            "PIDPressure",
            ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
            ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
        ),
        ready,
    ];
    let mut all: Vec<Value> = own
        .into_iter()
        .map(|(name, is_true, reason, message)| {
            let status = if is_true { "True" } else { "False" };
            let before = old.iter().find(|it| it.type_ == name && it.status == status);
            let since = before.and_then(|it| it.last_transition_time.as_ref()).map_or(now, |it| Time(it.0));
            json!({
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
                "message": message,
                "reason": reason,
                "status": status,
                "type": name,
            })
        })
        .collect();
    all.extend(old.iter().filter(|it| !OWN.contains(&it.type_.as_str())).map(|it| json!(it)));
    all
}

/// An event for each condition that turned.
pub(super) fn transitions(config: &Config, old: &[NodeCondition], new: Option<&Value>) -> Vec<Effect> {
    let turned = new.and_then(Value::as_array).into_iter().flatten().filter(|it| {
        let before = old.iter().find(|old| it["type"] == *old.type_);
        before.is_none_or(|old| it["status"] != *old.status)
    });
    let reason = |it: &Value| match (it["type"].as_str()?, it["status"] == "True") {
        ("Ready", true) => Some("NodeReady"),
        ("Ready", false) => Some("NodeNotReady"),
        ("MemoryPressure", true) => Some("NodeHasInsufficientMemory"),
        ("MemoryPressure", false) => Some("NodeHasSufficientMemory"),
        ("DiskPressure", true) => Some("NodeHasDiskPressure"),
        ("DiskPressure", false) => Some("NodeHasNoDiskPressure"),
        ("PIDPressure", true) => Some("NodeHasInsufficientPID"),
        ("PIDPressure", false) => Some("NodeHasSufficientPID"),
        _ => None,
    };
    let message = |reason: &str| format!("Node {} status is now: {reason}", config.node_name);
    turned.filter_map(reason).map(|it| event(config, it, message(it))).collect()
}

/// Each start tells how the node does, as if nothing had been known of it (`nodestatus.ReadyCondition` and its kin). A condition
/// that turns tells of itself.
pub(super) fn standing(config: &Config, facts: &NodeFacts, state: State<'_>, node: &Node, now: Time) -> Vec<Effect> {
    let old = node.status.as_ref().and_then(|it| it.conditions.clone()).unwrap_or_default();
    let mut conditions = conditions(facts, state, &old, now);
    conditions.retain(|it| old.iter().any(|old| it["type"] == *old.type_ && it["status"] == *old.status));
    transitions(config, &[], Some(&conditions.into()))
}
