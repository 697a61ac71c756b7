//! Which aggregated roles a ClusterRole's rules flow into, by its labels and by the labels of those in between.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::CLUSTER_ROLES;
use corten_cacher::watch_cache::Caches;
use corten_meta::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::Value;

type Labels = BTreeMap<String, String>;

/// An aggregated role, as far as flowing goes.
struct Sum {
    name: String,
    labels: Labels,
    selectors: Vec<Selector>,
}

impl Sum {
    fn selects(&self, labels: &Labels) -> bool {
        self.selectors.iter().any(|it| it.matches(labels))
    }
}

/// Does it sum up others?
pub(super) fn gathers(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|it| !it.is_empty())
}

/// The aggregated roles that get more by what this write changes: all that the role flows into where it holds or gathers
/// something else, otherwise those into which it did not flow before.
pub(super) fn grown(caches: &Caches, old: Option<&Value>, new: &Value) -> BTreeSet<String> {
    let sums = sums(caches);
    let mut grown = reached(&sums, new);
    let same = |old: &Value| ["rules", "aggregationRule"].iter().all(|it| old[it] == new[it]);
    if let Some(old) = old.filter(|it| same(it)) {
        let before = reached(&sums, old);
        grown.retain(|it| !before.contains(it));
    }
    grown
}

fn sums(caches: &Caches) -> Vec<Sum> {
    let roles = caches.get(&CLUSTER_ROLES).expect("cluster roles are a row of the table").snapshot();
    let sum = |role: Value| {
        gathers(&role).then(|| Sum {
            name: role["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            labels: labels(&role),
            selectors: selectors(&role),
        })
    };
    roles.iter().filter_map(|it| sum(it.parse())).collect()
}

fn reached(sums: &[Sum], role: &Value) -> BTreeSet<String> {
    let name = role["metadata"]["name"].as_str().unwrap_or_default();
    let mut reached = BTreeSet::new();
    let mut next = vec![labels(role)];
    while let Some(labels) = next.pop() {
        for sum in sums.iter().filter(|it| it.name != name && it.selects(&labels)) {
            if reached.insert(sum.name.clone()) {
                next.push(sum.labels.clone());
            }
        }
    }
    reached
}

fn labels(role: &Value) -> Labels {
    Labels::deserialize(&role["metadata"]["labels"]).unwrap_or_default()
}

fn selectors(role: &Value) -> Vec<Selector> {
    let list = Vec::<LabelSelector>::deserialize(&role["aggregationRule"]["clusterRoleSelectors"]).unwrap_or_default();
    list.iter().map(LabelSelector::selector).collect()
}
