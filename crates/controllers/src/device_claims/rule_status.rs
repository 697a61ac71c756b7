//! Says in a DeviceTaintRule's status which pods must still go because of it, or would go (upstream's
//! `device-taint-eviction-controller`, KEP-5055).
//!
//! What was evicted is not counted: nobody remembers it over a restart. What a rule without effect would do is looked at once
//! for each of its generations.

use std::{collections::BTreeSet, time::Duration};

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Effect, Plan, Verb, View, Wake, Watch, Write};
use serde_json::json;

use super::{
    projections::{Claim, DeviceSlice, RuleCondition, TaintRule},
    tainted::{NO_EXECUTE, eviction, offered, users},
};
use crate::projections::Pod;

const IN_PROGRESS: &str = "EvictionInProgress";
/// As upstream's `ruleStatusPeriod`: with many pods it is not said of each.
const PERIOD: Duration = Duration::from_secs(10);

pub struct DeviceTaintRuleStatus;

impl Controller for DeviceTaintRuleStatus {
    fn name(&self) -> &'static str {
        "device-taint-rule-status"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<TaintRule>(Wake::Itself),
            Watch::new::<Pod>(Wake::With(rules_of_pod)),
            Watch::new::<Claim>(Wake::With(evicting_rules)),
            Watch::new::<DeviceSlice>(Wake::Nobody),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::DEVICE_TAINT_RULES, fields: &["status.conditions"] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let mut plan = Plan::default();
        let Some(rule) = view.get::<TaintRule>(key) else { return plan };
        let told = rule.status.conditions.iter().find(|it| it.r#type == IN_PROGRESS);
        if let Some(told) = told.filter(|it| it.observed_generation == rule.metadata.generation) {
            if rule.spec.taint.effect != NO_EXECUTE {
                return plan;
            }
            let again = told.last_transition_time.map(|it| it.after(PERIOD)).filter(|it| *it > now);
            if again.is_some() {
                plan.wake_at = again;
                return plan;
            }
        }
        let wanted = condition(view, rule, told, now);
        if told.is_some_and(|told| RuleCondition { last_transition_time: None, ..told.clone() } == wanted) {
            return plan;
        }
        let wanted = RuleCondition { last_transition_time: Some(now), ..wanted };
        let patch = json!({ "metadata": { "uid": rule.metadata.uid }, "status": { "conditions": [wanted] } });
        let (resource, key) = (resources::DEVICE_TAINT_RULES, key.clone());
        plan.effects.push(Effect::StrategicPatch { resource, key, subresource: Some("status"), patch });
        plan
    }
}

fn condition(view: &View, rule: &TaintRule, told: Option<&RuleCondition>, now: Time) -> RuleCondition {
    let has_begun = |it: &RuleCondition| matches!(&*it.reason, "PodsPendingEviction" | "Completed");
    let (status, reason, message) = match &*rule.spec.taint.effect {
        NO_EXECUTE => match pending(view, rule, None, now) {
            (0, _) if told.is_some_and(has_begun) => {
                ("False", "Completed", "No pod needs to be evicted any more.".into())
            }
            (0, _) => ("False", "NotStarted", String::new()),
            (pods, namespaces) => {
                let verb = if pods == 1 { "needs" } else { "need" };
                let pods = counted(pods, "pod", "pods");
                let message = format!("{pods} {verb} to be evicted in {}.", of_namespaces(namespaces));
                ("True", "PodsPendingEviction", message)
            }
        },
        "None" => ("False", "NoEffect", simulation(view, rule, now)),
        _ => ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.".into()),
    };
    RuleCondition {
        r#type: IN_PROGRESS.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        observed_generation: rule.metadata.generation,
        last_transition_time: None,
    }
}

/// How many pods must go because of the rule, and in how many namespaces.
fn pending(view: &View, rule: &TaintRule, simulated: Option<&TaintRule>, now: Time) -> (usize, usize) {
    let users: BTreeSet<Key> = view.list::<Claim>().flat_map(users).collect();
    let must_go = |key: &Key| {
        let pod = view.get::<Pod>(key).filter(|it| !it.metadata.is_deleting());
        let eviction = pod.and_then(|it| eviction(view, it, simulated, now));
        eviction.is_some_and(|it| it.rules.contains(&*rule.metadata.name))
    };
    let pods: Vec<&Key> = users.iter().filter(|it| must_go(it)).collect();
    let namespaces: BTreeSet<&str> = pods.iter().map(|it| &*it.namespace).collect();
    (pods.len(), namespaces.len())
}

/// What would happen if its effect were `NoExecute`.
fn simulation(view: &View, rule: &TaintRule, now: Time) -> String {
    let pools: BTreeSet<&str> = view.list::<DeviceSlice>().map(|it| &*it.spec.pool).collect();
    let is_selected = |of: &str, device: &str| {
        let (driver, pool) = of.split_once(' ').unwrap_or_default();
        rule.selects(driver, pool, device)
    };
    let published = pools.iter().flat_map(|of| offered(view, of).filter(|it| is_selected(of, &it.name))).count();
    let allocated = view.list::<Claim>().flat_map(Claim::devices);
    let allocated = allocated.filter(|it| rule.selects(&it.driver, &it.pool, &it.device)).count();
    let (pods, namespaces) = pending(view, rule, Some(rule), now);
    format!(
        "{} selected. {} selected. {} would be evicted in {} if the effect was NoExecute. This information will not be \
         updated again. Recreate the DeviceTaintRule to trigger an update.",
        counted(published, "published device", "published devices"),
        counted(allocated, "allocated device", "allocated devices"),
        counted(pods, "pod", "pods"),
        of_namespaces(namespaces),
    )
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn of_namespaces(n: usize) -> String {
    counted(n, "namespace", "different namespaces")
}

/// A pod without claims for devices has none to lose.
fn rules_of_pod(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let has_claims = view.get::<Pod>(&pod.key()).is_some_and(|it| !it.spec.resource_claims.is_empty());
    if has_claims { evicting_rules(view, pod) } else { Vec::new() }
}

fn evicting_rules(view: &View, _changed: &ObjectMeta) -> Vec<Key> {
    let rules = view.list::<TaintRule>().filter(|it| it.spec.taint.effect == NO_EXECUTE);
    rules.map(|it| it.metadata.key()).collect()
}
