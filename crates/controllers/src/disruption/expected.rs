//! How many pods a budget counts on: what its pods' controllers are to have, or just the pods that there are.

use std::collections::BTreeMap;

use corten_meta::{Key, ObjectMeta, OwnerReference};
use corten_reconcile::View;
use serde_json::Value;

use crate::{
    int_or_percent::rounded_up,
    projections::{Deployment, DisruptionBudget, Pod, ReplicaSet, ReplicationController, StatefulSet},
};

pub(super) struct Expected {
    pub(super) n_pods: i64,
    pub(super) desired_healthy: i64,
    /// Pods without a controller, where a controller's scale is what counts.
    pub(super) n_unmanaged: usize,
}

/// # Errors
/// A pod's controller has no scale, or is not there.
pub(super) fn expected(view: &View, budget: &DisruptionBudget, pods: &[&Pod]) -> Result<Expected, String> {
    let n_there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    if let Some(unavailable) = &budget.spec.max_unavailable {
        let (n_pods, n_unmanaged) = scale(view, pods)?;
        let desired_healthy = (n_pods - rounded_up(unavailable, n_pods)).max(0);
        return Ok(Expected { n_pods, desired_healthy, n_unmanaged });
    }
    match &budget.spec.min_available {
        Some(percentage @ Value::String(_)) => {
            let (n_pods, n_unmanaged) = scale(view, pods)?;
            Ok(Expected { n_pods, desired_healthy: rounded_up(percentage, n_pods), n_unmanaged })
        }
        Some(number) => Ok(Expected { n_pods: n_there, desired_healthy: number.as_i64().unwrap_or(0), n_unmanaged: 0 }),
        None => Ok(Expected { n_pods: 0, desired_healthy: 0, n_unmanaged: 0 }),
    }
}

/// The sum of what the pods' controllers are to have, each counted once; and how many pods have none.
fn scale(view: &View, pods: &[&Pod]) -> Result<(i64, usize), String> {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    let mut n_unmanaged = 0;
    for pod in pods {
        let Some(owner) = pod.metadata.controller() else {
            n_unmanaged += 1;
            continue;
        };
        if !scales.contains_key(&owner.uid) {
            let (uid, replicas) = of(view, &pod.metadata, owner)?;
            // A deployment counts once, however many replica sets it has.
            scales.insert(uid.clone(), replicas);
            if uid != owner.uid {
                scales.insert(owner.uid.clone(), 0);
            }
        }
    }
    Ok((scales.values().sum(), n_unmanaged))
}

/// The scale of a pod's controller, under the uid it counts as.
fn of(view: &View, pod: &ObjectMeta, owner: &OwnerReference) -> Result<(String, i64), String> {
    let key = Key::new(&*pod.namespace, &*owner.name);
    let group = owner.api_version.split_once('/').map_or("", |it| it.0);
    let found = match (group, &*owner.kind) {
        ("apps", "ReplicaSet") => return of_replica_set(view, pod, owner, &key),
        ("apps", "StatefulSet") => view.get::<StatefulSet>(&key).map(|it| (&it.metadata, it.spec.replicas)),
        ("", "ReplicationController") => {
            view.get::<ReplicationController>(&key).map(|it| (&it.metadata, it.spec.replicas))
        }
        _ => {
            let resource = format!("{}s.{group}", owner.kind.to_lowercase());
            return Err(format!("{resource} does not implement the scale subresource"));
        }
    };
    let found = found.filter(|it| it.0.uid == owner.uid);
    found.map(|(meta, replicas)| (meta.uid.clone(), replicas)).ok_or_else(|| missing(pod))
}

fn of_replica_set(view: &View, pod: &ObjectMeta, owner: &OwnerReference, key: &Key) -> Result<(String, i64), String> {
    let set = view.get::<ReplicaSet>(key).filter(|it| it.metadata.uid == owner.uid).ok_or_else(|| missing(pod))?;
    let Some(deployment) = set.metadata.controller().filter(|it| it.kind == "Deployment") else {
        return Ok((set.metadata.uid.clone(), set.spec.replicas));
    };
    let found = view.get::<Deployment>(&Key::new(&*pod.namespace, &*deployment.name));
    let found = found.filter(|it| it.metadata.uid == deployment.uid).ok_or_else(|| missing(pod))?;
    Ok((found.metadata.uid.clone(), found.spec.replicas))
}

fn missing(pod: &ObjectMeta) -> String {
    format!("found no controllers for pod \"{}\"", pod.name)
}
