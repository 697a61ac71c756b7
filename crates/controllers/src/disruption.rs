//! Keeps every PodDisruptionBudget's status: how many of its pods are healthy, and how many may be disrupted now.

mod expected;

use std::{collections::BTreeMap, time::Duration};

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, Verb, View, Wait, Wake, Watch, Write};

use serde_json::{Value, json};

use crate::projections::{
    Deployment, DisruptionBudget, DisruptionCondition, DisruptionStatus, Pod, ReplicaSet, ReplicationController,
    StatefulSet, reference,
};
use expected::{Expected, expected};

/// How long a pod whose eviction was allowed counts as gone.
const DELETION_TIMEOUT: Duration = Duration::from_secs(120);

pub struct Disruption;

impl Controller for Disruption {
    fn name(&self) -> &'static str {
        "disruption"
    }

    fn component(&self) -> String {
        "controllermanager".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<DisruptionBudget>(Wake::Itself),
            Watch::new::<Pod>(Wake::With(budgets_of)),
            Watch::new::<Deployment>(Wake::With(all_of_namespace)),
            Watch::new::<ReplicaSet>(Wake::With(all_of_namespace)),
            Watch::new::<ReplicationController>(Wake::With(all_of_namespace)),
            Watch::new::<StatefulSet>(Wake::With(all_of_namespace)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::POD_DISRUPTION_BUDGETS, fields: &["status"] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(budget) = view.get::<DisruptionBudget>(key) else { return Plan::default() };
        let pods: Vec<&Pod> = pods_of(view, budget).collect();
        let mut plan = Plan::default();
        let mut status = budget.status.clone();
        match expected(view, budget, &pods) {
            Ok(expected) => count(budget, &pods, &expected, now, &mut status, &mut plan),
            Err(error) => {
                let message = format!("Failed to calculate the number of expected pods: {error}");
                plan.effects.push(warn(budget, "CalculateExpectedPodCountFailed", message));
                status.disruptions_allowed = 0;
                set(&mut status.conditions, "False", "SyncFailed", error, status.observed_generation, now);
            }
        }
        if status == budget.status {
            // What was said when it came about is not said again.
            plan.effects.clear();
        } else {
            plan.effects.insert(0, patch(budget, &status));
        }
        if status.disruptions_allowed == 0 && !budget.metadata.is_deleting() {
            plan.waits.push(none_allowed(&status, &pods));
        }
        plan
    }
}

/// Where all its pods are well and still none may go, no waiting helps: the budget itself asks for it.
fn none_allowed(status: &DisruptionStatus, pods: &[&Pod]) -> Wait {
    let (healthy, desired, n_pods) = (status.current_healthy, status.desired_healthy, status.expected_pods);
    let message = format!("no pod may be evicted: {healthy} of {n_pods} pods are healthy, and {desired} must be");
    let actor = if n_pods > 0 && healthy >= n_pods { Actor::Author } else { Actor::Cluster };
    let wait = Wait::new("NoDisruptionsAllowed", message, actor);
    match pods.iter().find(|it| !it.is_ready()) {
        Some(pod) => wait.on("Pod", &pod.metadata.name),
        None => wait,
    }
}

/// The whole status, and only onto what was seen: evictions count down what is allowed in the meantime.
fn patch(budget: &DisruptionBudget, status: &DisruptionStatus) -> Effect {
    let meta = &budget.metadata;
    let mut status_patch = json!(status);
    for name in budget.status.disrupted_pods.keys().filter(|it| !status.disrupted_pods.contains_key(*it)) {
        status_patch["disruptedPods"][name] = Value::Null;
    }
    let patch =
        json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version }, "status": status_patch });
    let (resource, key) = (resources::POD_DISRUPTION_BUDGETS, meta.key());
    Effect::Patch { resource, key, subresource: Some("status"), patch }
}

/// The budgets a pod counts in.
fn budgets_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let budgets = view.in_namespace::<DisruptionBudget>(&pod.namespace);
    budgets.filter(|it| it.selects(&pod.labels)).map(|it| it.metadata.key()).collect()
}

/// A scale has changed: which pods are meant by it would have to be found out for each, and budgets are few.
fn all_of_namespace(view: &View, owner: &ObjectMeta) -> Vec<Key> {
    view.in_namespace::<DisruptionBudget>(&owner.namespace).map(|it| it.metadata.key()).collect()
}

fn pods_of<'a>(view: &'a View, budget: &'a DisruptionBudget) -> impl Iterator<Item = &'a Pod> {
    let pods = view.in_namespace::<Pod>(&budget.metadata.namespace);
    pods.filter(|it| budget.selects(&it.metadata.labels))
}

fn count(
    budget: &DisruptionBudget,
    pods: &[&Pod],
    expected: &Expected,
    now: Time,
    status: &mut DisruptionStatus,
    plan: &mut Plan,
) {
    if pods.is_empty() {
        let message = "No matching pods found".into();
        let (about, event_type) = (reference(budget), EventType::Normal);
        plan.effects.push(Effect::Event { about, event_type, reason: "NoPods", message });
    }
    if expected.n_unmanaged > 0 {
        plan.effects.push(warn(budget, "UnmanagedPods", unmanaged(budget)));
    }
    let disrupted = still_disrupted(budget, pods, now, plan);
    let is_counted = |it: &&&Pod| !it.metadata.is_deleting() && !disrupted.contains_key(&it.metadata.name);
    let n_healthy = pods.iter().filter(is_counted).filter(|it| it.is_ready()).count();

    status.current_healthy = i64::try_from(n_healthy).unwrap_or(i64::MAX);
    status.desired_healthy = expected.desired_healthy;
    status.expected_pods = expected.n_pods;
    // Nothing is allowed where nothing is expected: its first pods may be there before they are counted.
    let surplus = if expected.n_pods > 0 { status.current_healthy - status.desired_healthy } else { 0 };
    status.disruptions_allowed = surplus.max(0);
    status.disrupted_pods = disrupted;
    status.observed_generation = budget.metadata.generation;
    let (value, reason) =
        if status.disruptions_allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    set(&mut status.conditions, value, reason, String::new(), status.observed_generation, now);
}

/// The pods whose eviction was allowed a short while ago and that are still there.
fn still_disrupted(budget: &DisruptionBudget, pods: &[&Pod], now: Time, plan: &mut Plan) -> BTreeMap<String, Time> {
    let mut still = BTreeMap::new();
    for pod in pods.iter().filter(|it| !it.metadata.is_deleting()) {
        let Some(at) = budget.status.disrupted_pods.get(&pod.metadata.name) else { continue };
        let until = at.after(DELETION_TIMEOUT);
        if until < now {
            let (namespace, name) = (&budget.metadata.namespace, &budget.metadata.name);
            let message = format!("Pod was expected by PDB {namespace}/{name} to be deleted but it wasn't");
            let (about, event_type) = (reference(*pod), EventType::Warning);
            plan.effects.push(Effect::Event { about, event_type, reason: "NotDeleted", message });
        } else {
            plan.wake_at =
                Some(plan.wake_at.map_or(until, |it| it.min(until)).max(now.after(Duration::from_millis(1))));
            still.insert(pod.metadata.name.clone(), *at);
        }
    }
    still
}

fn set(
    conditions: &mut Vec<DisruptionCondition>,
    status: &str,
    reason: &str,
    message: String,
    generation: i64,
    now: Time,
) {
    const TYPE: &str = "DisruptionAllowed";
    let held = conditions.iter().find(|it| it.r#type == TYPE);
    let since = held.filter(|it| it.status == status).and_then(|it| it.last_transition_time);
    let new = DisruptionCondition {
        r#type: TYPE.into(),
        status: status.into(),
        observed_generation: generation,
        last_transition_time: Some(since.unwrap_or(now)),
        reason: reason.into(),
        message,
    };
    match conditions.iter_mut().find(|it| it.r#type == TYPE) {
        Some(held) => *held = new,
        None => conditions.push(new),
    }
}

fn warn(budget: &DisruptionBudget, reason: &'static str, message: String) -> Effect {
    Effect::Event { about: reference(budget), event_type: EventType::Warning, reason, message }
}

fn unmanaged(budget: &DisruptionBudget) -> String {
    let labels = budget.spec.selector.iter().flat_map(|it| &it.written.match_labels);
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}: {value}")).collect();
    format!(
        "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{{MatchLabels:map[string]string{{{},}},MatchExpressions:[]LabelSelectorRequirement{{}},}}) were found \
         to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined \
         behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
        labels.join(",")
    )
}
