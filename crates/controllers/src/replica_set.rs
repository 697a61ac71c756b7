//! Keeps `spec.replicas` pods alive for each ReplicaSet.
//!
//! Surplus pods go in the order users miss them least: not ready first. Names are chosen here rather than by the server,
//! so that the event can say them and a create that is repeated cannot make two.

mod names;
mod surplus;

use std::{cmp::Ordering, time::Duration};

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write};
use serde_json::{Value, json};

use crate::{
    EFFECTS_MAX,
    ownership::{claim, controller_reference},
    seen::{Condition, Pod, ReplicaSet, ReplicaSetStatus, reference},
    status::status_patch,
};

pub struct ReplicaSets;

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<ReplicaSet>(Wake::Itself), Watch::new::<Pod>(Wake::With(sets_of))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["metadata.ownerReferences"] },
                Write { verb: Verb::Patch, resource: resources::REPLICA_SETS, fields: &["status"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(set) = view.get::<ReplicaSet>(key) else { return Plan::default() };
        let claim = claim::<ReplicaSet, Pod>(view, set, &set.spec.selector.selector(), Pod::is_active);
        if !claim.effects.is_empty() {
            // Counting begins when the view shows who belongs here.
            return Plan { effects: claim.effects, ..Plan::default() };
        }
        let pods: Vec<&Pod> = claim.owned.into_iter().filter(|it| it.is_active()).collect();

        let mut plan = Plan { waits: waits(view, key, set, &pods, now), ..Plan::default() };
        plan.effects.extend(status_patch(
            resources::REPLICA_SETS,
            &set.metadata,
            &set.status,
            &status(view, key, set, &pods, now),
        ));
        plan.effects.extend(failure_event(view, key, set));
        if !set.metadata.is_deleting() {
            plan.effects.extend(missing(view, set, pods.len(), now));
            plan.effects.extend(surplus_of(view, set, &pods, now));
        }
        plan.wake_at =
            pods.iter().filter_map(|it| available_at(it, set.spec.min_ready_seconds)).filter(|it| *it > now).min();
        plan
    }
}

/// A pod's controller, or the sets that may adopt it.
fn sets_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    if let Some(owner) = pod.controller() {
        let is_set = owner.kind == "ReplicaSet";
        return if is_set { vec![Key::new(&*pod.namespace, &*owner.name)] } else { Vec::new() };
    }
    let sets = view.in_namespace::<ReplicaSet>(&pod.namespace);
    sets.filter(|it| it.spec.selector.matches(&pod.labels)).map(|it| it.metadata.key()).collect()
}

fn missing(view: &View, set: &ReplicaSet, n_active: usize, now: Time) -> Vec<Effect> {
    let n_missing = usize::try_from(set.spec.replicas).unwrap_or(0).saturating_sub(n_active).min(EFFECTS_MAX);
    let is_taken = |name: &str| view.meta(&resources::PODS, &Key::new(&*set.metadata.namespace, name)).is_some();
    let prefix = names::prefix(&set.metadata.name);
    let names = names::fresh(&prefix, &set.metadata.uid, now).filter(|it| !is_taken(it)).take(n_missing);
    names
        .flat_map(|name| {
            let created = event(set, EventType::Normal, "SuccessfulCreate", format!("Created pod: {name}"));
            [Effect::Create { resource: resources::PODS, object: pod(set, &prefix, &name) }, created]
        })
        .collect()
}

fn pod(set: &ReplicaSet, prefix: &str, name: &str) -> Value {
    let template = &set.spec.template;
    let mut metadata = json!({
        "name": name,
        "generateName": prefix,
        "namespace": set.metadata.namespace,
        "ownerReferences": [controller_reference::<ReplicaSet>(&set.metadata)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if !template["metadata"][field].is_null() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] })
}

fn surplus_of(view: &View, set: &ReplicaSet, pods: &[&Pod], now: Time) -> Vec<Effect> {
    let n_wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    let n_surplus = pods.len().saturating_sub(n_wanted).min(EFFECTS_MAX);
    if n_surplus == 0 {
        return Vec::new();
    }
    let chosen = surplus::choose(view, set, pods, n_surplus, now);
    chosen
        .into_iter()
        .flat_map(|pod| {
            let deleted =
                event(set, EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {}", pod.metadata.name));
            let delete = Effect::Delete {
                resource: resources::PODS,
                key: pod.metadata.key(),
                uid: pod.metadata.uid.clone(),
                propagation: Propagation::Background,
                grace_seconds: None,
            };
            [delete, deleted]
        })
        .collect()
}

fn event(set: &ReplicaSet, event_type: EventType, reason: &'static str, message: String) -> Effect {
    Effect::Event { about: reference(set), event_type, reason, message }
}

/// What the last try to create or delete a pod failed with: the condition's reason, the event's words, the error.
fn failed<'a>(view: &'a View, key: &Key) -> Option<(&'static str, &'static str, &'a str)> {
    let failure = view.failure(key)?;
    match failure.effect {
        Effect::Create { .. } => Some(("FailedCreate", "Error creating", &failure.message)),
        Effect::Delete { .. } => Some(("FailedDelete", "Error deleting", &failure.message)),
        _ => None,
    }
}

fn failure_event(view: &View, key: &Key, set: &ReplicaSet) -> Option<Effect> {
    let (reason, words, error) = failed(view, key)?;
    Some(event(set, EventType::Warning, reason, format!("{words}: {error}")))
}

fn status(view: &View, key: &Key, set: &ReplicaSet, pods: &[&Pod], now: Time) -> ReplicaSetStatus {
    let count = |is: &dyn Fn(&Pod) -> bool| i64::try_from(pods.iter().filter(|it| is(it)).count()).unwrap_or(i64::MAX);
    let labels = set.spec.template["metadata"]["labels"].as_object();
    let has_label = |pod: &Pod, (name, value): (&String, &Value)| {
        pod.metadata.labels.get(name).map(String::as_str) == value.as_str()
    };
    ReplicaSetStatus {
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&|pod| labels.into_iter().flatten().all(|it| has_label(pod, it))),
        ready_replicas: count(&Pod::is_ready),
        available_replicas: count(&|it| is_available(it, set.spec.min_ready_seconds, now)),
        observed_generation: set.metadata.generation,
        conditions: conditions(view, key, set, now),
    }
}

fn conditions(view: &View, key: &Key, set: &ReplicaSet, now: Time) -> Vec<Condition> {
    const TYPE: &str = "ReplicaFailure";
    let mut conditions = set.status.conditions.clone();
    let Some((reason, _, error)) = failed(view, key) else {
        conditions.retain(|it| it.r#type != TYPE);
        return conditions;
    };
    // As upstream: the first failure's words stay until there is none.
    if !conditions.iter().any(|it| it.r#type == TYPE) {
        conditions.push(Condition {
            r#type: TYPE.into(),
            status: "True".into(),
            last_transition_time: Some(now),
            reason: reason.into(),
            message: error.into(),
            ..Condition::default()
        });
    }
    conditions
}

fn is_available(pod: &Pod, min_ready_seconds: i64, now: Time) -> bool {
    pod.is_ready() && (min_ready_seconds <= 0 || available_at(pod, min_ready_seconds).is_some_and(|it| it <= now))
}

/// When a ready pod has been ready long enough, where there is such a rule.
fn available_at(pod: &Pod, min_ready_seconds: i64) -> Option<Time> {
    let seconds = u64::try_from(min_ready_seconds).ok().filter(|it| *it > 0)?;
    Some(pod.ready_since()?.after(Duration::from_secs(seconds)))
}

/// Why there are not yet as many available pods as wanted.
fn waits(view: &View, key: &Key, set: &ReplicaSet, pods: &[&Pod], now: Time) -> Vec<Wait> {
    let mut waits = Vec::new();
    if let Some((reason, words, error)) = failed(view, key) {
        let words = words.to_lowercase();
        waits.push(Wait::new(reason, format!("{words}: {error}"), Actor::Operator));
    }
    let n_wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    let reason = match pods.len().cmp(&n_wanted) {
        Ordering::Less => Some("PodsMissing"),
        Ordering::Equal => None,
        Ordering::Greater => Some("PodsSurplus"),
    };
    let message = || format!("{} of {n_wanted} pods are there", pods.len());
    waits.extend(reason.map(|it| Wait::new(it, message(), Actor::Cluster)));
    let mut unavailable: Vec<&&Pod> =
        pods.iter().filter(|it| !is_available(it, set.spec.min_ready_seconds, now)).collect();
    // The worst one explains the others: not ready before not ready for long enough, then the one that has tried longest.
    unavailable.sort_by_key(|it| (it.is_ready(), it.metadata.creation_timestamp));
    if let Some(worst) = unavailable.first() {
        let reason = if worst.is_ready() { "PodsNotAvailable" } else { "PodsNotReady" };
        let what = if worst.is_ready() { "not ready for long enough" } else { "not ready" };
        let message = format!("{} of {} pods are {what}", unavailable.len(), pods.len());
        waits.push(Wait::new(reason, message, Actor::Cluster).on("Pod", &worst.metadata.name));
    }
    waits
}
