//! Gives every ClusterRole with an aggregation rule the rules of the roles it selects.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Resource, Selector, Time};
use corten_reconcile::{Controller, Plan, Verb, View, Wake, Watch, Write, status::exact_patch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::projections::projection;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterRole {
    metadata: ObjectMeta,
    #[serde(default)]
    rules: Option<Vec<Value>>,
    #[serde(default)]
    aggregation_rule: Option<AggregationRule>,
}
projection!(ClusterRole, resources::CLUSTER_ROLES);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    #[serde(default)]
    cluster_role_selectors: Vec<Selector>,
}

pub struct ClusterRoleAggregation;

impl Controller for ClusterRoleAggregation {
    fn name(&self) -> &'static str {
        "clusterrole-aggregation"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<ClusterRole>(Wake::With(aggregating))]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::CLUSTER_ROLES, fields: &["rules"] }] }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::CLUSTER_ROLES)
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(role) = view.get::<ClusterRole>(key) else { return Plan::default() };
        let Some(rule) = &role.aggregation_rule else { return Plan::default() };
        let rules = selected(view, role, &rule.cluster_role_selectors);
        if role.rules.as_deref().unwrap_or_default() == rules {
            return Plan::default();
        }
        let patch = exact_patch(resources::CLUSTER_ROLES, &role.metadata, json!({ "rules": rules }));
        Plan { effects: vec![patch], ..Plan::default() }
    }
}

/// The role itself where it aggregates, and every role that selects it.
fn aggregating(view: &View, role: &ObjectMeta) -> Vec<Key> {
    let is_meant = |it: &&ClusterRole| {
        let Some(rule) = &it.aggregation_rule else { return false };
        it.metadata.name == role.name || is_selected(&rule.cluster_role_selectors, &role.labels)
    };
    view.list::<ClusterRole>().filter(is_meant).map(|it| it.metadata.key()).collect()
}

fn is_selected(selectors: &[Selector], labels: &BTreeMap<String, String>) -> bool {
    selectors.iter().any(|it| it.matches(labels))
}

/// Each rule once, in the order of selectors and of names.
fn selected(view: &View, role: &ClusterRole, selectors: &[Selector]) -> Vec<Value> {
    let (mut rules, mut seen) = (Vec::new(), BTreeSet::new());
    for selector in selectors {
        let others = view.list::<ClusterRole>().filter(|it| it.metadata.name != role.metadata.name);
        for rule in others.filter(|it| selector.matches(&it.metadata.labels)).flat_map(|it| it.rules.iter().flatten()) {
            let mut identity = rule.clone();
            identity.sort_all_objects();
            if seen.insert(identity.to_string()) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}
