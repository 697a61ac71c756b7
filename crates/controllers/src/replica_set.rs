//! Keeps `spec.replicas` pods alive for each ReplicaSet and each ReplicationController: one mind, two kinds.
//!
//! Surplus pods go in the order users miss them least: not ready first. Names are chosen here rather than by the server,
//! so that the event can say them and a create that is repeated cannot make two.

mod surplus;

use std::cmp::Ordering;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Selector, Time};
use corten_reconcile::{
    Actor, Controller, EFFECTS_MAX, Effect, EventType, Plan, Projection, Verb, View, Wait, Wake, Watch, Write,
    status::status_patch,
};
use serde_json::Value;

pub(crate) use surplus::sort_active;

use crate::{
    names,
    ownership::claim,
    pod_template::{delete_pod, pod_of},
    projections::{Condition, Pod, ReplicaSet, ReplicaSetStatus, ReplicationController, reference},
};

/// What the two kinds have in common.
trait Replicated: Projection {
    /// As in ReplicationController's adapter: the older kind does not tell of pods that are on their way out.
    const COUNTS_TERMINATING: bool;
    fn replicas(&self) -> i64;
    fn selector(&self) -> &Selector;
    fn template(&self) -> &Value;
    fn min_ready_seconds(&self) -> i64;
    fn status(&self) -> &ReplicaSetStatus;
}

impl Replicated for ReplicaSet {
    const COUNTS_TERMINATING: bool = true;

    fn replicas(&self) -> i64 {
        self.spec.replicas
    }

    fn selector(&self) -> &Selector {
        &self.spec.selector
    }

    fn template(&self) -> &Value {
        &self.spec.template
    }

    fn min_ready_seconds(&self) -> i64 {
        self.spec.min_ready_seconds
    }

    fn status(&self) -> &ReplicaSetStatus {
        &self.status
    }
}

impl Replicated for ReplicationController {
    const COUNTS_TERMINATING: bool = false;

    fn replicas(&self) -> i64 {
        self.spec.replicas
    }

    fn selector(&self) -> &Selector {
        &self.spec.selector
    }

    fn template(&self) -> &Value {
        &self.spec.template
    }

    fn min_ready_seconds(&self) -> i64 {
        self.spec.min_ready_seconds
    }

    fn status(&self) -> &ReplicaSetStatus {
        &self.status
    }
}

pub struct ReplicaSets;

pub struct ReplicationControllers;

impl Controller for ReplicationControllers {
    fn name(&self) -> &'static str {
        "replication"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<ReplicationController>(Wake::Itself),
            Watch::new::<Pod>(Wake::With(owners_of::<ReplicationController>)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["metadata.ownerReferences"] },
                Write { verb: Verb::Patch, resource: resources::REPLICATION_CONTROLLERS, fields: &["status"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        view.get::<ReplicationController>(key).map(|it| keep(view, key, it, now)).unwrap_or_default()
    }
}

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<ReplicaSet>(Wake::Itself), Watch::new::<Pod>(Wake::With(owners_of::<ReplicaSet>))]
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
        view.get::<ReplicaSet>(key).map(|it| keep(view, key, it, now)).unwrap_or_default()
    }
}

fn keep<T: Replicated>(view: &View, key: &Key, set: &T, now: Time) -> Plan {
    let claim = claim::<T, Pod>(view, set, set.selector(), Pod::is_active);
    if !claim.effects.is_empty() {
        // Counting begins when the view shows who belongs here.
        return Plan { effects: claim.effects, ..Plan::default() };
    }
    let n_terminating = claim.owned.iter().filter(|it| it.is_terminating()).count();
    let pods: Vec<&Pod> = claim.owned.into_iter().filter(|it| it.is_active()).collect();

    let mut plan = Plan { waits: waits(view, key, set, &pods, now), ..Plan::default() };
    let mut status = status(view, key, set, &pods, now);
    if T::COUNTS_TERMINATING {
        status.terminating_replicas = Some(i64::try_from(n_terminating).unwrap_or(i64::MAX));
    }
    plan.effects.extend(status_patch(T::RESOURCE, set.meta(), set.status(), &status));
    plan.effects.extend(failure_event(view, key, set));
    if !set.meta().is_deleting() {
        plan.effects.extend(missing(view, set, pods.len(), now));
        plan.effects.extend(surplus_of(view, set, &pods, now));
    }
    plan.wake_at = pods.iter().filter_map(|it| it.available_at(set.min_ready_seconds())).filter(|it| *it > now).min();
    plan
}

/// A pod's controller, or those that may adopt it.
fn owners_of<T: Replicated>(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    if let Some(owner) = pod.controller() {
        let is_one = owner.kind == T::RESOURCE.kind;
        return if is_one { vec![Key::new(&*pod.namespace, &*owner.name)] } else { Vec::new() };
    }
    let sets = view.in_namespace::<T>(&pod.namespace);
    sets.filter(|it| it.selector().matches(&pod.labels)).map(|it| it.meta().key()).collect()
}

fn missing<T: Replicated>(view: &View, set: &T, n_active: usize, now: Time) -> Vec<Effect> {
    let meta = set.meta();
    let n_missing = usize::try_from(set.replicas()).unwrap_or(0).saturating_sub(n_active).min(EFFECTS_MAX);
    let prefix = names::prefix(&meta.name);
    let names = names::untaken(view, meta, &prefix, now).take(n_missing);
    names
        .flat_map(|name| {
            let created = event(set, EventType::Normal, "SuccessfulCreate", format!("Created pod: {name}"));
            let object = pod_of::<T>(set.template(), meta, &name, &prefix);
            [Effect::Create { resource: resources::PODS, object }, created]
        })
        .collect()
}

fn surplus_of<T: Replicated>(view: &View, set: &T, pods: &[&Pod], now: Time) -> Vec<Effect> {
    let n_wanted = usize::try_from(set.replicas()).unwrap_or(0);
    let n_surplus = pods.len().saturating_sub(n_wanted).min(EFFECTS_MAX);
    if n_surplus == 0 {
        return Vec::new();
    }
    let chosen = surplus::choose(view, set, pods, n_surplus, now);
    chosen
        .into_iter()
        .flat_map(|pod| {
            let message = format!("Deleted pod: {}", pod.metadata.name);
            [delete_pod(pod), event(set, EventType::Normal, "SuccessfulDelete", message)]
        })
        .collect()
}

fn event<T: Replicated>(set: &T, event_type: EventType, reason: &'static str, message: String) -> Effect {
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

fn failure_event<T: Replicated>(view: &View, key: &Key, set: &T) -> Option<Effect> {
    let (reason, words, error) = failed(view, key)?;
    Some(event(set, EventType::Warning, reason, format!("{words}: {error}")))
}

fn status<T: Replicated>(view: &View, key: &Key, set: &T, pods: &[&Pod], now: Time) -> ReplicaSetStatus {
    let count = |is: &dyn Fn(&Pod) -> bool| i64::try_from(pods.iter().filter(|it| is(it)).count()).unwrap_or(i64::MAX);
    let labels = set.template()["metadata"]["labels"].as_object();
    let has_label = |pod: &Pod, (name, value): (&String, &Value)| {
        pod.metadata.labels.get(name).map(String::as_str) == value.as_str()
    };
    ReplicaSetStatus {
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&|pod| labels.into_iter().flatten().all(|it| has_label(pod, it))),
        ready_replicas: count(&Pod::is_ready),
        available_replicas: count(&|it| it.is_available(set.min_ready_seconds(), now)),
        observed_generation: set.meta().generation,
        conditions: conditions(view, key, set.status(), now),
        ..ReplicaSetStatus::default()
    }
}

fn conditions(view: &View, key: &Key, status: &ReplicaSetStatus, now: Time) -> Vec<Condition> {
    const TYPE: &str = "ReplicaFailure";
    let mut conditions = status.conditions.clone();
    let Some((reason, _, error)) = failed(view, key) else {
        conditions.retain(|it| it.r#type != TYPE);
        return conditions;
    };
    // As in `calculateStatus`: the first failure's words stay until there is none.
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

/// Why there are not yet as many available pods as wanted.
fn waits<T: Replicated>(view: &View, key: &Key, set: &T, pods: &[&Pod], now: Time) -> Vec<Wait> {
    let mut waits = Vec::new();
    if let Some((reason, words, error)) = failed(view, key) {
        let words = words.to_lowercase();
        waits.push(Wait::new(reason, format!("{words}: {error}"), Actor::Operator));
    }
    let n_wanted = usize::try_from(set.replicas()).unwrap_or(0);
    let reason = match pods.len().cmp(&n_wanted) {
        Ordering::Less => Some("PodsMissing"),
        Ordering::Equal => None,
        Ordering::Greater => Some("PodsSurplus"),
    };
    let message = || format!("{} of {n_wanted} pods are there", pods.len());
    waits.extend(reason.map(|it| Wait::new(it, message(), Actor::Cluster)));
    let mut unavailable: Vec<&&Pod> = pods.iter().filter(|it| !it.is_available(set.min_ready_seconds(), now)).collect();
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
