//! What a deployment writes on its ReplicaSets: their place in its history, and the size it had when they were sized.

use serde_json::{Map, Value, json};

use crate::projections::{Deployment, ReplicaSet};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Those of a deployment's annotations that say nothing about a set.
const NOT_COPIED: &[&str] = &[
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deprecated.deployment.rollback.to",
    "kubectl.kubernetes.io/last-applied-configuration",
];
/// A longer history loses its oldest entries.
const HISTORY_LEN_MAX: usize = 2000;

pub(super) fn of(set: &ReplicaSet) -> i64 {
    set.metadata.annotations.get(REVISION).and_then(|it| it.parse().ok()).unwrap_or(0)
}

pub(super) fn newest(sets: &[&ReplicaSet]) -> i64 {
    sets.iter().map(|it| of(it)).max().unwrap_or(0)
}

/// The size of the deployment when the set was last sized.
pub(super) fn desired(set: &ReplicaSet) -> Option<i64> {
    number(set, DESIRED)
}

/// The most pods the deployment could have then.
pub(super) fn max(set: &ReplicaSet) -> Option<i64> {
    number(set, MAX)
}

/// A number of pods has 32 bits in Kubernetes.
fn number(set: &ReplicaSet, name: &str) -> Option<i64> {
    set.metadata.annotations.get(name)?.parse::<i32>().ok().map(i64::from)
}

/// The number of a revision that comes after these.
pub(super) fn next(sets: &[&ReplicaSet]) -> i64 {
    newest(sets).saturating_add(1)
}

pub(super) fn sizes(replicas: i64, surge: i64) -> Map<String, Value> {
    let text = |it: i64| json!(it.to_string());
    [(DESIRED.to_owned(), text(replicas)), (MAX.to_owned(), text(replicas.saturating_add(surge)))].into_iter().collect()
}

/// The deployment's own annotations, as its sets carry them.
pub(super) fn copied(deployment: &Deployment) -> Map<String, Value> {
    let own = deployment.metadata.annotations.iter().filter(|it| !NOT_COPIED.contains(&it.0.as_str()));
    own.map(|(name, value)| (name.clone(), json!(value))).collect()
}

/// Those annotations of the new set that have to change for it to be revision `next` (if it is older).
pub(super) fn annotations(deployment: &Deployment, set: &ReplicaSet, next: i64) -> Map<String, Value> {
    let mut changes = copied(deployment);
    changes.retain(|name, value| set.metadata.annotations.get(name).map(String::as_str) != value.as_str());
    let current = set.metadata.annotations.get(REVISION);
    if of(set) < next {
        changes.insert(REVISION.into(), json!(next.to_string()));
        if let Some(current) = current {
            let history = set.metadata.annotations.get(HISTORY).map(String::as_str);
            changes.insert(HISTORY.into(), json!(extended(history.unwrap_or_default(), current)));
        }
    }
    changes
}

fn extended(history: &str, entry: &str) -> String {
    let mut entries: Vec<&str> = history.split(',').filter(|it| !it.is_empty()).chain([entry]).collect();
    while entries.len() > 1 && entries.iter().map(|it| it.len() + 1).sum::<usize>() > HISTORY_LEN_MAX {
        entries.remove(0);
    }
    entries.join(",")
}
