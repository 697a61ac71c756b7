//! PodDisruptionBudgets, as far as preemption keeps to them: it rather evicts pods that none forbids.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{Key, LabelSelector, Named, ObjectMeta, Resource, Selector};
use corten_reconcile::Projection;
use serde::Deserialize;

use crate::PodInfo;

/// The fields of a PodDisruptionBudget that the scheduler reads.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DisruptionBudget {
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: BudgetSpec,
    #[serde(default)]
    status: BudgetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct BudgetSpec {
    selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BudgetStatus {
    disruptions_allowed: i64,
    disrupted_pods: BTreeMap<String, serde_json::Value>,
}

impl Named for DisruptionBudget {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for DisruptionBudget {
    const RESOURCE: Resource = corten_api::resources::POD_DISRUPTION_BUDGETS;
}

/// All budgets there are.
#[derive(Default)]
pub(crate) struct Budgets(BTreeMap<Key, Budget>);

struct Budget {
    selector: Selector,
    allowed: i64,
    /// Pods that the API server has counted already.
    disrupted: BTreeSet<String>,
}

impl Budgets {
    pub(crate) fn set(&mut self, budget: DisruptionBudget) {
        let key = budget.metadata.key();
        let selector = budget.spec.selector.map(|it| it.selector()).unwrap_or_default();
        let BudgetStatus { disruptions_allowed, disrupted_pods } = budget.status;
        let disrupted = disrupted_pods.into_keys().collect();
        self.0.insert(key, Budget { selector, allowed: disruptions_allowed, disrupted });
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Of pods in this order, whose eviction each budget would not allow after those before it
    /// (`filterPodsWithPDBViolation`). A budget without a selector, or with an empty one, is about no pod.
    pub(crate) fn are_violated<'p>(&'p self, pods: impl Iterator<Item = &'p PodInfo>) -> Vec<bool> {
        let mut left: BTreeMap<&Key, i64> = BTreeMap::new();
        let is_violated = |pod: &'p PodInfo| {
            let mut is_violated = false;
            for (key, budget) in self.of_namespace(&pod.key.namespace) {
                let is_about = !budget.selector.is_empty() && budget.selector.matches(&pod.labels);
                if !is_about || pod.labels.is_empty() || budget.disrupted.contains(&pod.key.name) {
                    continue;
                }
                let left = left.entry(key).or_insert(budget.allowed);
                *left -= 1;
                is_violated |= *left < 0;
            }
            is_violated
        };
        pods.map(is_violated).collect()
    }

    fn of_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Budget)> {
        self.0.range(Key::new(namespace, "")..).take_while(move |it| it.0.namespace == namespace)
    }
}
