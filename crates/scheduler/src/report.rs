//! What the scheduler tells people: conditions and events in Kubernetes's words, and decisions for the journal.

use corten_meta::{Key, Retry, Time, shortened};
use corten_reconcile::{Actor, Decision, EventType, Step, StepState, Wait};
use serde_json::{Value, json};

use crate::{Effect, PLUGINS, PodInfo, Snapshot, cycle::Failure, entry::Entry};

const STEP: &str = "scheduled";
/// So many waits one decision holds: those that turned most nodes down.
const WAITS_MAX: usize = 100;

pub(crate) fn bound(info: &PodInfo, node: &str, since: Time, now: Time) -> Vec<Effect> {
    let message = format!("Successfully assigned {} to {node}", info.key);
    vec![
        Effect::Event { about: info.reference(), event_type: EventType::Normal, reason: "Scheduled", message },
        found_bound(info, node, since, now),
    ]
}

/// It is on a node, and nothing is waited for any more.
pub(crate) fn found_bound(info: &PodInfo, node: &str, since: Time, now: Time) -> Effect {
    let step = Step {
        name: STEP.into(),
        state: StepState::Done,
        started: Some(since),
        finished: Some(now),
        message: format!("on node {node}"),
        log: Vec::new(),
        wait: None,
    };
    let effects = vec![format!("bind Pod {} to {node}", info.key)];
    Effect::Record { pod: info.key.clone(), decision: decision(effects, Vec::new(), step, now) }
}

/// No node fits.
pub(crate) fn unschedulable(entry: &Entry, failure: &Failure, snapshot: &Snapshot, now: Time) -> Vec<Effect> {
    let message = failure.message();
    let waits = waits(&entry.info, failure, snapshot);
    let mut effects = not_scheduled(entry, "Unschedulable", &message, now);
    let record = blocked(&entry.info, &message, waits, entry.since, now);
    effects.push(record);
    effects
}

/// A node was found, but the API server did not take the binding.
pub(crate) fn bind_failed(entry: &Entry, node: &str, retry: Retry, error: &str, now: Time) -> Vec<Effect> {
    let message = format!("binding rejected: running Bind plugin \"DefaultBinder\": {error}");
    let mut effects = not_scheduled(entry, "SchedulerError", &message, now);
    let actor = if retry == Retry::Never { Actor::Operator } else { Actor::Cluster };
    let wait = Wait::new("BindingRejected", format!("the api server did not bind it: {error}"), actor).on("node", node);
    effects.push(blocked(&entry.info, &message, vec![wait], entry.since, now));
    effects
}

/// It has a node, where its volumes are chosen or made.
pub(crate) fn waits_for_volumes(info: &PodInfo, node: &str, claim: &Key, since: Time, now: Time) -> Effect {
    let message = format!("node {node} is chosen, its volumes are bound there first");
    let wait = Wait::new("VolumesUnbound", message.clone(), Actor::Cluster).on("PersistentVolumeClaim", &claim.name);
    blocked(info, &message, vec![wait], since, now)
}

/// It had a node, and its volumes could not be bound there.
pub(crate) fn volumes_failed(entry: &Entry, node: &str, error: &str, now: Time) -> Vec<Effect> {
    let message = format!("running PreBind plugin \"VolumeBinding\": binding volumes: {error}");
    let mut effects = not_scheduled(entry, "SchedulerError", &message, now);
    let told = format!("its volumes could not be bound for node {node}: {error}");
    let wait = Wait::new("VolumesUnbound", told, Actor::Cluster).on("node", node);
    effects.push(blocked(&entry.info, &message, vec![wait], entry.since, now));
    effects
}

/// It has a node, where the drivers of its devices make them ready.
pub(crate) fn waits_for_devices(
    info: &PodInfo,
    node: &str,
    claim: Option<&str>,
    since: Time,
    now: Time,
) -> Vec<Effect> {
    let message = format!("node {node} is chosen, its devices are made ready there first");
    let wait = Wait::new("DevicesNotReady", message.clone(), Actor::External);
    let wait = match claim {
        Some(claim) => wait.on("ResourceClaim", claim),
        None => wait,
    };
    let event = Effect::Event {
        about: info.reference(),
        event_type: EventType::Normal,
        reason: "BindingConditionsPending",
        message: format!("waiting for binding conditions for device on node {node}"),
    };
    vec![event, blocked(info, &message, vec![wait], since, now)]
}

/// It had a node, and its devices did not become ready there.
pub(crate) fn devices_failed(entry: &Entry, node: &str, error: &str, now: Time) -> Vec<Effect> {
    let message = format!("running PreBind plugin \"DynamicResources\": {error}");
    let mut effects = not_scheduled(entry, "SchedulerError", &message, now);
    let told = format!("its devices were not made ready for node {node}: {error}");
    let wait = Wait::new("DevicesNotReady", told, Actor::External).on("node", node);
    effects.push(blocked(&entry.info, &message, vec![wait], entry.since, now));
    effects
}

/// The scheduler itself broke at it.
pub(crate) fn broken(entry: &Entry, now: Time) -> Vec<Effect> {
    let message = "internal error of the scheduler, see its log";
    let mut effects = not_scheduled(entry, "SchedulerError", message, now);
    let told = "the scheduler panicked at it and tries again with a back-off: a defect of the program";
    let wait = Wait::new("LoopPanicked", told, Actor::Operator);
    effects.push(blocked(&entry.info, message, vec![wait], entry.since, now));
    effects
}

/// It has scheduling gates; the API server itself wrote the condition when the pod was created.
pub(crate) fn gated(info: &PodInfo, since: Time, now: Time) -> Effect {
    let waits = PLUGINS.iter().filter_map(|it| Some(Wait::new(it.wait, it.pre_enqueue?(info)?, it.actor))).collect();
    blocked(info, "Scheduling is blocked due to non-empty scheduling gates", waits, since, now)
}

/// The condition, where it says something new, and the event.
fn not_scheduled(entry: &Entry, reason: &str, message: &str, now: Time) -> Vec<Effect> {
    let info = &entry.info;
    let mut effects = Vec::new();
    if entry.told.as_deref() != Some(message) {
        let patch = condition_patch(entry, reason, message, now);
        effects.push(Effect::PatchCondition { pod: info.key.clone(), patch });
    }
    effects.push(Effect::Event {
        about: info.reference(),
        event_type: EventType::Warning,
        reason: "FailedScheduling",
        message: message.to_owned(),
    });
    effects
}

/// A merge patch replaces a list as a whole, so the other conditions go with it, and the revision they are of: what
/// comes late must not undo what the kubelet has said since.
fn condition_patch(entry: &Entry, reason: &str, message: &str, now: Time) -> Value {
    let old = entry.conditions.iter().find(|it| it["type"] == "PodScheduled");
    let since = old.filter(|it| it["status"] == "False").map(|it| it["lastTransitionTime"].clone());
    let since = since.filter(|it| !it.is_null()).unwrap_or_else(|| json!(now));
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": null,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    });
    if entry.info.generation > 0 {
        condition["observedGeneration"] = json!(entry.info.generation);
    }
    let mut conditions: Vec<Value> =
        entry.conditions.iter().filter(|it| it["type"] != "PodScheduled").cloned().collect();
    conditions.push(condition);
    let metadata = json!({ "uid": entry.info.uid, "resourceVersion": entry.resource_version });
    json!({ "metadata": metadata, "status": { "conditions": conditions } })
}

/// One wait for each reason, the one that turned most nodes down first; then the node that came nearest.
fn waits(info: &PodInfo, failure: &Failure, snapshot: &Snapshot) -> Vec<Wait> {
    if failure.n_nodes == 0 {
        return vec![Wait::new("NoNodes", "the cluster has no node", Actor::Operator)];
    }
    if let Some((plugin_idx, refusal)) = failure.refusal.as_deref() {
        let plugin = &PLUGINS[*plugin_idx];
        let wait = Wait::new(plugin.wait, refusal.message.clone(), plugin.actor);
        return vec![match &refusal.claim {
            Some((kind, claim)) => wait.on(kind, claim),
            None => wait,
        }];
    }
    let mut rejections: Vec<_> = failure.rejections.iter().collect();
    rejections.sort_by_key(|it| std::cmp::Reverse(it.n_nodes));
    let mut waits: Vec<Wait> = rejections
        .into_iter()
        .take(WAITS_MAX)
        .map(|it| {
            let plugin = &PLUGINS[it.plugin_idx];
            let message = format!("{} of {} nodes: {}", it.n_nodes, failure.n_nodes, it.reason);
            Wait::new(plugin.wait, message, plugin.actor)
        })
        .collect();
    if let Some(nearest) = &failure.nearest {
        let (plugin, row) = (&PLUGINS[nearest.plugin_idx], snapshot.row_at(nearest.node_idx));
        let gap =
            plugin.gap.as_ref().map(|it| format!(", which {}", shortened(&(it.text)(info, &row)))).unwrap_or_default();
        let message = format!("the nearest node is {}{gap}", row.name);
        waits.push(Wait::new("NearestNode", message, plugin.actor).on("node", row.name));
    }
    waits
}

fn blocked(info: &PodInfo, message: &str, waits: Vec<Wait>, since: Time, now: Time) -> Effect {
    let step = Step {
        name: STEP.into(),
        state: StepState::Blocked,
        started: Some(since),
        finished: None,
        message: message.to_owned(),
        log: Vec::new(),
        wait: waits.first().cloned(),
    };
    Effect::Record { pod: info.key.clone(), decision: decision(Vec::new(), waits, step, now) }
}

fn decision(effects: Vec<String>, waits: Vec<Wait>, step: Step, now: Time) -> Decision {
    Decision { by: "scheduler".into(), at: Some(now), effects, waits, steps: vec![step], ..Decision::default() }
}
