//! Makes pods leave nodes with taints of `NoExecute` that they do not tolerate, or no longer.
//!
//! How long a pod has tolerated a taint follows from the taint's own time. One that came without is given its time here,
//! so that a restart does not begin the count anew.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{
    resources,
    scheduling::{self, Stay},
};
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Actor, Controller, EFFECTS_MAX, Effect, EventType, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write,
    status::exact_patch,
};
use serde_json::{Value, json};

use crate::projections::{Node, Pod, Taint, reference};

const NO_EXECUTE: &str = "NoExecute";

pub struct TaintEviction;

impl Controller for TaintEviction {
    fn name(&self) -> &'static str {
        "taint-eviction"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Node>(Wake::Itself), Watch::new::<Pod>(Wake::With(tainted_node_of))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Patch, resource: resources::NODES, fields: &["spec.taints"] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["status.conditions"] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(node) = view.get::<Node>(key) else { return Plan::default() };
        let taints: Vec<&Taint> = node.spec.taints.iter().filter(|it| it.effect == NO_EXECUTE).collect();
        let mut plan = Plan::default();
        let (mut now_leaving, mut leaving_later) = (BTreeSet::new(), BTreeMap::new());
        if taints.is_empty() {
            call_off(view, key, &now_leaving, &leaving_later, &mut plan);
            return plan;
        }
        for pod in view.on_node::<Pod>(&key.name).filter(|it| !it.metadata.is_deleting()) {
            match leaves_at(pod, &taints, view.since(), now) {
                None => {}
                Some(at) if at > now => {
                    leaving_later.insert(pod.metadata.key().to_string(), &*pod.metadata.uid);
                    plan.wake_at = Some(plan.wake_at.map_or(at, |it| it.min(at)));
                }
                Some(_) => {
                    now_leaving.insert(&*pod.metadata.uid);
                    // The rest of a very full node goes once these have gone.
                    if now_leaving.len() <= EFFECTS_MAX {
                        evict(pod, now, &mut plan);
                    }
                }
            }
        }
        let n_later = leaving_later.len();
        if n_later > 0 && taints.iter().any(|it| it.time_added.is_none()) {
            plan.effects.push(with_times(node, now));
        }
        if let (1.., Some(at)) = (n_later, plan.wake_at) {
            let message = format!("{n_later} pods tolerate its taints for a time, the first until {at}");
            plan.waits.push(Wait::new("PodsTolerateTaints", message, Actor::Cluster));
        }
        call_off(view, key, &now_leaving, &leaving_later, &mut plan);
        plan
    }
}

/// As in `cancelWorkWithEvent`: tells of pods that were to leave at some time and are no longer. The note is which these
/// were, with their uids.
fn call_off(
    view: &View,
    key: &Key,
    now_leaving: &BTreeSet<&str>,
    leaving_later: &BTreeMap<String, &str>,
    plan: &mut Plan,
) {
    let note = view.note(key).and_then(|it| serde_json::from_value(it.clone()).ok());
    let before: BTreeMap<String, String> = note.unwrap_or_default();
    if before.iter().map(|(pod, uid)| (pod, &**uid)).eq(leaving_later.iter().map(|(pod, uid)| (pod, *uid))) {
        return;
    }
    for pod in view.on_node::<Pod>(&key.name).filter(|it| !it.metadata.is_deleting()) {
        let (name, uid) = (pod.metadata.key().to_string(), &pod.metadata.uid);
        let was_leaving = before.get(&name) == Some(uid);
        if was_leaving && !now_leaving.contains(&**uid) && !leaving_later.contains_key(&name) {
            plan.effects.push(tell(pod, format!("Cancelling deletion of Pod {name}")));
        }
    }
    plan.effects.push(Effect::Remember { note: json!(leaving_later) });
}

fn tell(pod: &Pod, message: String) -> Effect {
    Effect::Event { about: reference(pod), event_type: EventType::Normal, reason: "TaintManagerEviction", message }
}

fn tainted_node_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let node = view.get::<Pod>(&pod.key()).map(|it| Key::cluster(&*it.spec.node_name));
    let node = node
        .filter(|it| view.get::<Node>(it).is_some_and(|it| it.spec.taints.iter().any(|it| it.effect == NO_EXECUTE)));
    node.into_iter().collect()
}

/// When a pod must leave, if it must.
fn leaves_at(pod: &Pod, taints: &[&Taint], since: Option<Time>, now: Time) -> Option<Time> {
    let tolerations = pod.spec.tolerations.iter().map(|it| (it.rule(), it.toleration_seconds));
    let stay = match scheduling::stay(taints.iter().map(|it| it.rule()), tolerations) {
        Stay::Forever => return None,
        Stay::Ended => return Some(now),
        Stay::For(stay) => stay,
    };
    let tainted = taints.iter().map(|it| it.time_added.unwrap_or(now)).max().unwrap_or(now);
    // What came to the node when it was tainted already tolerates that from then on.
    let came = pod.condition("PodScheduled").and_then(|it| it.last_transition_time);
    // As in `processPodOnNode`: nobody is sent away for the time in which nobody was there to take the taint back.
    let begun = [Some(tainted), came, since].into_iter().flatten().max()?;
    Some(begun.after(stay))
}

fn evict(pod: &Pod, now: Time, plan: &mut Plan) {
    let (resource, key) = (resources::PODS, pod.metadata.key());
    let text = "Taint manager: deleting due to NoExecute taint";
    plan.effects.extend(disrupted(pod, "DeletionByTaintManager", text, now));
    let message = format!("Marking for deletion Pod {key}");
    let (uid, propagation) = (pod.metadata.uid.clone(), Propagation::Background);
    plan.effects.push(Effect::Delete { resource, key, uid, propagation, grace_seconds: None });
    plan.effects.push(tell(pod, message));
}

/// Says on the pod who ends it, unless that is said already.
pub(crate) fn disrupted(pod: &Pod, reason: &str, message: &str, now: Time) -> Option<Effect> {
    let told = pod.condition("DisruptionTarget");
    if told.is_some_and(|it| it.status == "True" && it.reason == reason) {
        return None;
    }
    let since = told.filter(|it| it.status == "True").and_then(|it| it.last_transition_time).unwrap_or(now);
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    });
    if pod.metadata.generation > 0 {
        condition["observedGeneration"] = json!(pod.metadata.generation);
    }
    let patch = json!({ "metadata": { "uid": pod.metadata.uid }, "status": { "conditions": [condition] } });
    let (resource, key) = (resources::PODS, pod.metadata.key());
    Some(Effect::StrategicPatch { resource, key, subresource: Some("status"), patch })
}

fn with_times(node: &Node, now: Time) -> Effect {
    let timed = |it: &Taint| match (&*it.effect, it.time_added) {
        (NO_EXECUTE, None) => Taint { time_added: Some(now), ..it.clone() },
        _ => it.clone(),
    };
    let taints: Vec<Taint> = node.spec.taints.iter().map(timed).collect();
    let taints: Value = json!(taints);
    exact_patch(resources::NODES, &node.metadata, json!({ "spec": { "taints": taints } }))
}
