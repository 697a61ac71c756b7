//! Says what a node that has gone silent cannot say itself, and keeps pods away from nodes that are not well.
//!
//! ```text
//! silent for 50 s            -> its conditions become Unknown, its pods not ready
//! conditions, unschedulable  -> NoSchedule taints
//! not ready, unreachable     -> a NoExecute taint, one node of a zone after another
//! every node silent          -> no NoExecute taints: more likely it is us who cannot hear
//! ```

mod health;
mod taints;
mod zones;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, ObjectReference, Time};
use corten_reconcile::{
    Actor, Controller, EFFECTS_MAX, Effect, EventType, Plan, Verb, View, Wait, Wake, Watch, Write, status::exact_patch,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    metrics::NODE_EVICTIONS,
    projections::{Lease, Node, Pod, reference},
};
use health::{Health, Heard};

const LEASES: &str = "kube-node-lease";

pub struct NodeLifecycle;

impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Node>(Wake::Itself),
            Watch::new::<Lease>(Wake::With(node_of)),
            Watch::new::<Pod>(Wake::Nobody),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Patch, resource: resources::NODES, fields: &["spec.taints", "status.conditions"] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["status.conditions"] },
            ]
        }
    }

    fn remembers_what_is_gone(&self) -> bool {
        true
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let node = view.get::<Node>(key);
        let lease = view.get::<Lease>(&Key::new(LEASES, &*key.name));
        let before = view.note(key).and_then(|it| Heard::deserialize(it).ok());
        let heard = node.map(|it| Heard::of(it, lease, before.as_ref(), view.since(), now));
        let mut plan = Plan { effects: registered(before.as_ref(), key, node), ..Plan::default() };
        if heard != before {
            plan.effects.push(Effect::Remember { note: json!(heard) });
        }
        let Some((node, heard)) = node.filter(|it| !it.metadata.is_deleting()).zip(heard) else { return plan };
        plan.waits.extend(heard.clocks_apart().map(|it| Wait::new("ClocksApart", it, Actor::Operator)));
        let health = Health::of(node, &heard);
        if now >= health.deadline {
            plan.waits.push(silent(&health, now));
            let conditions = health::silenced(node, now);
            if !conditions.is_empty() {
                plan.effects.push(say_unknown(node, &conditions));
                if node.ready() == Some("True") {
                    plan.effects.push(not_ready_event(node));
                }
                return plan;
            }
        } else if now >= health.late {
            plan.waits.push(late(&health));
            plan.wake_at = Some(health.deadline);
        } else {
            plan.wake_at = Some(health.late);
        }
        taint(view, node, now, &mut plan);
        if node.ready().is_some_and(|it| it != "True") {
            unready_pods(view, node, now, &mut plan);
        }
        plan
    }
}

fn node_of(_view: &View, lease: &ObjectMeta) -> Vec<Key> {
    if lease.namespace == LEASES { vec![Key::cluster(&*lease.name)] } else { Vec::new() }
}

fn silent(health: &Health, now: Time) -> Wait {
    let seconds = now.since(health.heard).as_secs();
    let message =
        format!("nothing was heard of it for {seconds} s: its kubelet has stopped or cannot reach the server");
    Wait::new("NodeSilent", message, Actor::Operator)
}

fn late(health: &Health) -> Wait {
    let heard = health.heard.whole_seconds();
    let message = format!(
        "it renews its Lease every 10 s, and nothing was heard of it since {heard}: its kubelet has stopped, is slow, or cannot reach the server"
    );
    Wait::new("NodeLate", message, Actor::Operator)
}

fn say_unknown(node: &Node, conditions: &[serde_json::Value]) -> Effect {
    let patch = json!({ "metadata": { "uid": node.metadata.uid }, "status": { "conditions": conditions } });
    Effect::StrategicPatch { resource: resources::NODES, key: node.metadata.key(), subresource: Some("status"), patch }
}

fn not_ready_event(node: &Node) -> Effect {
    let message = format!("Node {} status is now: NodeNotReady", node.metadata.name);
    Effect::Event { about: reference(node), event_type: EventType::Normal, reason: "NodeNotReady", message }
}

/// As in `monitorNodeHealth`: tells of a node that was not known before, and of one that is known no longer.
fn registered(before: Option<&Heard>, key: &Key, node: Option<&Node>) -> Vec<Effect> {
    let known = before.map(|it| &*it.uid);
    let uid = node.map(|it| &*it.metadata.uid);
    if known == uid {
        return Vec::new();
    }
    let removed = known.map(|it| node_event(&key.name, it, "RemovingNode", "Removing Node", "from"));
    let added = uid.map(|it| node_event(&key.name, it, "RegisteredNode", "Registered Node", "in"));
    removed.into_iter().chain(added).collect()
}

fn node_event(name: &str, uid: &str, reason: &'static str, what: &str, of: &str) -> Effect {
    let about = ObjectReference {
        kind: resources::NODES.kind.to_string(),
        api_version: resources::NODES.api_version(),
        name: name.into(),
        uid: uid.into(),
        ..ObjectReference::default()
    };
    let message = format!("Node {name} event: {what} {name} {of} Controller");
    Effect::Event { about, event_type: EventType::Normal, reason, message }
}

fn taint(view: &View, node: &Node, now: Time, plan: &mut Plan) {
    let decision = zones::decide(view, node, now);
    if let Some((at, wait)) = decision.later {
        plan.wake_at = Some(plan.wake_at.map_or(at, |it| it.min(at)));
        plan.waits.extend(wait);
    }
    let is_given_up = decision.no_execute.is_some() && zones::no_execute(node).is_none();
    let Some(new) = taints::wanted(node, decision.no_execute, now) else { return };
    // A node that says itself that it is not ready tells of that in no other write of ours.
    let is_news = node
        .condition("Ready")
        .is_some_and(|it| it.status == "False" && it.last_transition_time > node.metadata.creation_timestamp);
    let was_told =
        [taints::NOT_READY, taints::UNREACHABLE].iter().any(|it| node.taint(it, taints::NO_SCHEDULE).is_some());
    let list = if new.is_empty() { serde_json::Value::Null } else { json!(new) };
    plan.effects.push(exact_patch(resources::NODES, &node.metadata, json!({ "spec": { "taints": list } })));
    if is_given_up {
        plan.effects.push(Effect::Count(NODE_EVICTIONS.count(&[&zones::key(node)], 1.0)));
    }
    if is_news && !was_told {
        plan.effects.push(not_ready_event(node));
    }
}

/// What was ready when its node was last heard of may not be. A pod that is said to be ready after that is left alone.
fn unready_pods(view: &View, node: &Node, now: Time, plan: &mut Plan) {
    let since = node.condition("Ready").and_then(|it| it.last_transition_time);
    let pods = view.on_node::<Pod>(&node.metadata.name).filter(|it| !it.is_finished());
    let stale = pods.filter(|it| it.is_ready() && it.ready_since() <= since).take(EFFECTS_MAX);
    for pod in stale {
        let condition = json!({ "type": "Ready", "status": "False", "lastTransitionTime": now });
        let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "conditions": [condition] } });
        let (resource, key) = (resources::PODS, pod.metadata.key());
        plan.effects.push(Effect::StrategicPatch { resource, key, subresource: Some("status"), patch });
        plan.effects.push(Effect::Event {
            about: reference(pod),
            event_type: EventType::Warning,
            reason: "NodeNotReady",
            message: "Node is not ready".into(),
        });
    }
}
