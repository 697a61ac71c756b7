//! What the scheduler tells people: conditions and events in Kubernetes's words, and decisions for the journal.

use corten_meta::{Key, Retry, Time, shortened, transition_time};
use corten_reconcile::{Actor, Decision, EventType, Step, StepState, Wait};
use serde_json::{Value, json};

use crate::{
    Effect, Eviction, PLUGINS, Plugin, PodGroup, PodInfo, Profile, QueueEvent, Snapshot, cycle::Failure, entry::Entry,
    labelled_group, nearest, pod_groups::PodGroups,
};

const STEP: &str = "scheduled";
/// So many waits one decision holds: those that turned most nodes down.
const WAITS_MAX: usize = 100;
/// What others make room for.
pub(crate) const POD: &str = "pod";
pub(crate) const PODGROUP: &str = "podgroup";
/// So many of the pods that a nominated pod waits for are named.
const VICTIMS_MAX: usize = 5;

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

/// No node fits, and these are the waits that says.
pub(crate) fn unschedulable(
    entry: &Entry,
    failure: &Failure,
    waits: Vec<Wait>,
    victims: &[Key],
    now: Time,
) -> Vec<Effect> {
    let message = failure.message();
    let waits = preempting(entry, victims).into_iter().chain(waits).collect();
    let mut effects = not_scheduled(entry, "Unschedulable", &message, now);
    let record = blocked(&entry.info, &message, waits, entry.since, now);
    effects.push(record);
    effects
}

/// As above, where it was not tried: what is in its way is other than was said.
pub(crate) fn explained_anew(
    entry: &Entry,
    failure: &Failure,
    waits: Vec<Wait>,
    victims: &[Key],
    now: Time,
) -> Vec<Effect> {
    let told = unschedulable(entry, failure, waits, victims, now);
    told.into_iter().filter(|it| !matches!(it, Effect::Event { .. })).collect()
}

/// Something happened that may help it, so soon after its last try that it waits for its turn.
pub(crate) fn backs_off(entry: &Entry, event: QueueEvent, until: Time, now: Time) -> Effect {
    let until = until.whole_seconds();
    let message = format!("{event} may have helped it: it is tried again at {until}, a while after its last try");
    let wait = Wait::new("SchedulingBackOff", message.clone(), Actor::Cluster);
    blocked(&entry.info, &message, vec![wait], entry.since, now)
}

/// The pods of lower priority whose end a nominated pod waits for.
fn preempting(entry: &Entry, victims: &[Key]) -> Option<Wait> {
    let node = Some(&entry.nominated).filter(|it| !it.is_empty())?;
    let first = victims.first()?;
    let names: Vec<String> = victims.iter().take(VICTIMS_MAX).map(Key::to_string).collect();
    let more = victims.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = names.join(", ");
    let message = format!("node {node} is kept for it until these pods of lower priority have ended: {names}{more}");
    let wait = Wait::new("Preempting", message, Actor::Cluster);
    Some(if first.namespace == entry.info.key.namespace { wait.on("Pod", &first.name) } else { wait.on("node", node) })
}

/// A pod left its node, or will, for one of higher priority.
pub(crate) fn evicted(eviction: &Eviction) -> Effect {
    Effect::Event {
        about: eviction.victim.clone(),
        event_type: EventType::Normal,
        reason: "Preempted",
        message: format!(
            "Preempted by {} {} on node {}",
            eviction.preemptor_kind, eviction.preemptor_uid, eviction.node
        ),
    }
}

/// The condition of a pod that is evicted for one of higher priority.
pub(crate) fn disruption_patch(victim: &Entry, profile: &str, preemptor_kind: &str, now: Time) -> Value {
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{profile}: preempting to accommodate a higher priority {preemptor_kind}"),
        "lastTransitionTime": now,
    });
    if victim.info.generation > 0 {
        condition["observedGeneration"] = json!(victim.info.generation);
    }
    json!({ "metadata": { "uid": victim.info.uid }, "status": { "conditions": [condition] } })
}

/// Takes a pod's nomination away: one of higher priority has its node.
pub(crate) fn no_longer_nominated(info: &PodInfo) -> Effect {
    let patch = json!({ "metadata": { "uid": info.uid }, "status": { "nominatedNodeName": null } });
    Effect::PatchCondition { pod: info.key.clone(), patch }
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
pub(crate) fn volumes_failed(entry: &Entry, node: &str, claim: &Key, error: &str, now: Time) -> Vec<Effect> {
    let message = format!("running PreBind plugin \"VolumeBinding\": binding volumes: {error}");
    let mut effects = not_scheduled(entry, "SchedulerError", &message, now);
    let told = format!("its volumes could not be bound for node {node}: {error}");
    // Why that is the claim says: its driver may have refused.
    let wait = Wait::new("VolumesUnbound", told, Actor::Cluster).on("PersistentVolumeClaim", &claim.name);
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

/// Extenders are asked about it.
pub(crate) fn waits_for_extenders(info: &PodInfo, urls: &[String], since: Time, now: Time) -> Effect {
    let message = format!("waiting for the answer of extender {}", urls.join(", "));
    let wait = Wait::new("ExtenderPending", message.clone(), Actor::External);
    blocked(info, &message, vec![wait], since, now)
}

/// An extender that matters did not answer, or not what it was asked.
pub(crate) fn extender_failed(entry: &Entry, url: &str, error: &str, now: Time) -> Vec<Effect> {
    let error = shortened(error);
    let message = format!("extender {url}: {error}");
    let mut effects = not_scheduled(entry, "SchedulerError", &message, now);
    let wait = Wait::new("ExtenderFailed", message.clone(), Actor::External);
    effects.push(blocked(&entry.info, &message, vec![wait], entry.since, now));
    effects
}

/// Tells of a nomination that was made after the condition was written.
pub(crate) fn nominated(entry: &Entry) -> Effect {
    let patch = json!({ "metadata": { "uid": entry.info.uid }, "status": { "nominatedNodeName": entry.nominated } });
    Effect::PatchCondition { pod: entry.info.key.clone(), patch }
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

/// It is kept out of the queue. For scheduling gates the API server itself wrote the condition when the pod was created; what was said
/// of a pod that was tried before is so no more.
pub(crate) fn gated(entry: &Entry, groups: &PodGroups, now: Time) -> Vec<Effect> {
    let info = &*entry.info;
    let wait = |it: &Plugin| Some(Wait::new(it.wait, it.pre_enqueue?(info, groups)?, it.actor));
    let waits: Vec<Wait> = PLUGINS.iter().filter_map(wait).collect();
    let message = match waits.first() {
        Some(first) if info.gates.is_empty() => first.message.clone(),
        _ => "Scheduling is blocked due to non-empty scheduling gates".to_owned(),
    };
    let mut effects = vec![blocked(info, &message, waits, entry.since, now)];
    if info.gates.is_empty() && entry.told.as_ref().is_some_and(|it| *it != message) {
        let patch = condition_patch(entry, "Unschedulable", &message, now);
        effects.push(Effect::PatchCondition { pod: info.key.clone(), patch });
    }
    effects
}

/// It fits, or was not tried, and others of its gang do not fit.
pub(crate) fn waits_for_gang(
    entry: &Entry,
    group: &Key,
    message: &str,
    hindrance: Option<(&Key, &str)>,
    victims: &[Key],
    now: Time,
) -> Vec<Effect> {
    let mut effects = not_scheduled(entry, "Unschedulable", message, now);
    let why = hindrance.map(|(pod, why)| format!("; pod {} does not fit: {why}", pod.name)).unwrap_or_default();
    let name = labelled_group::plain_name(group);
    let told = format!("the pods of pod group {name} cannot be placed together: {message}{why}");
    let wait = Wait::new("GangUnschedulable", told, Actor::Operator);
    let wait = match hindrance {
        Some((pod, _)) if *pod != entry.info.key => wait.on("Pod", &pod.name),
        _ => wait,
    };
    let waits = preempting(entry, victims).into_iter().chain([wait]).collect();
    effects.push(blocked(&entry.info, message, waits, entry.since, now));
    effects
}

/// As many pods of a group have nodes as it asks for.
pub(crate) fn group_scheduled(group: Option<&PodGroup>, now: Time) -> Option<Effect> {
    group_condition(group?, ("True", "Scheduled"), "", now)
}

/// Too few of its pods can have nodes now, or a plugin broke at one.
pub(crate) fn group_unschedulable(
    group: Option<&PodGroup>,
    is_error: bool,
    message: &str,
    now: Time,
) -> Option<Effect> {
    let reason = if is_error { "SchedulerError" } else { "Unschedulable" };
    group_condition(group?, ("False", reason), message, now)
}

/// Nothing where that is said already. What was scheduled once stays so (`updatePodGroupCondition`).
fn group_condition(group: &PodGroup, (status, reason): (&str, &str), message: &str, now: Time) -> Option<Effect> {
    const TYPE: &str = "PodGroupInitiallyScheduled";
    if labelled_group::is_labelled(&group.metadata.key()) {
        return None;
    }
    let old = group.condition(TYPE);
    let is_same = |it: &Value| it["status"] == status && it["reason"] == reason && it["message"] == message;
    if old.is_some_and(|it| is_same(it) || it["status"] == "True") {
        return None;
    }
    let condition = json!({
        "type": TYPE,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": group.metadata.generation,
        "lastTransitionTime": transition_time(old, status, now),
    });
    let patch = json!({ "metadata": { "uid": group.metadata.uid }, "status": { "conditions": [condition] } });
    Some(Effect::PatchGroup { group: group.metadata.key(), patch })
}

/// The condition, where it says something new, and the event.
fn not_scheduled(entry: &Entry, reason: &str, message: &str, now: Time) -> Vec<Effect> {
    let info = &entry.info;
    let mut effects = Vec::new();
    if entry.told.as_deref() != Some(message) || entry.nominated != entry.told_nominated {
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
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": null,
        "lastTransitionTime": transition_time(old, "False", now),
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
    let mut status = json!({ "conditions": conditions });
    if entry.nominated != entry.told_nominated {
        let nominated = Some(&entry.nominated).filter(|it| !it.is_empty());
        status["nominatedNodeName"] = json!(nominated);
    }
    json!({ "metadata": metadata, "status": status })
}

/// One wait for each reason: first what the nearest node lacks, which is the least that must change, then the one that turned most nodes
/// down; then that node.
pub(crate) fn waits(info: &PodInfo, failure: &Failure, snapshot: &Snapshot, profile: &Profile) -> Vec<Wait> {
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
    let nearest = nearest::of(info, failure, snapshot, profile);
    let mut rejections: Vec<_> = failure.rejections.iter().collect();
    let is_nearest = |plugin_idx| nearest.as_ref().is_some_and(|it| it.plugin_idx == plugin_idx);
    rejections.sort_by_key(|it| (!is_nearest(it.plugin_idx), std::cmp::Reverse(it.n_nodes)));
    let mut waits: Vec<Wait> = rejections
        .into_iter()
        .take(WAITS_MAX)
        .map(|it| {
            let message = format!("{} of {} nodes: {}", it.n_nodes, failure.n_nodes, it.reason);
            let plugin = &PLUGINS[it.plugin_idx];
            match &it.extender {
                None => Wait::new(plugin.wait, message, plugin.actor),
                Some(url) => Wait::new("ExtenderRefused", format!("{message} (extender {url})"), Actor::External),
            }
        })
        .collect();
    if let Some(nearest) = &nearest {
        let (plugin, row) = (&PLUGINS[nearest.plugin_idx], snapshot.row_at(nearest.node_idx));
        let shortfall = plugin
            .shortfall
            .as_ref()
            .map(|it| (it.text)(info, &row, &profile.arguments))
            // It lacks nothing where what was assumed on it has been taken back.
            .filter(|it| !it.is_empty())
            .map(|it| format!(", which {}", shortened(&it)))
            .unwrap_or_default();
        let message = format!("the nearest node is {}{shortfall}", row.name);
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
