//! A new size while nothing is rolled out, or amid a rollout: then every set keeps its share of the pods.

use corten_reconcile::Plan;

use super::{progress, revision, rollout::Rollout};
use crate::projections::ReplicaSet;

pub(super) fn run(mut rollout: Rollout<'_>) -> Plan {
    // A patched set has another version: sizing begins from that.
    if !rollout.adopt_revision() {
        resize(&mut rollout);
        if rollout.deployment.spec.paused {
            rollout.clean_up();
        }
    }
    progress::sized(rollout)
}

fn resize(rollout: &mut Rollout<'_>) {
    let active: Vec<_> = rollout.active().collect();
    let newest = rollout.new.or_else(|| rollout.old.last().copied());
    match (&*active, newest) {
        ([], None) => {}
        (&[only], _) | ([], Some(only)) => {
            rollout.resize(only, rollout.replicas());
        }
        _ if is_saturated(rollout) => {
            let old: Vec<_> = rollout.old.iter().copied().filter(|it| it.spec.replicas > 0).collect();
            for set in old {
                rollout.resize(set, 0);
            }
        }
        _ if rollout.deployment.spec.strategy.r#type == "Recreate" => {}
        _ => resize_in_proportion(rollout, active),
    }
}

/// Has the new set all the pods the deployment wants?
fn is_saturated(rollout: &Rollout<'_>) -> bool {
    rollout.new.is_some_and(|it| {
        revision::desired(it) == Some(rollout.replicas())
            && it.spec.replicas == rollout.replicas()
            && it.status.available_replicas == rollout.replicas()
    })
}

/// Each set's part of the change is as large as its part of the pods; the largest takes what rounding leaves.
fn resize_in_proportion(rollout: &mut Rollout<'_>, mut sets: Vec<&ReplicaSet>) {
    let n_pods: i64 = sets.iter().map(|it| it.spec.replicas).sum();
    let n_allowed = if rollout.replicas() > 0 { rollout.replicas() + rollout.surge_max() } else { 0 };
    let to_add = n_allowed - n_pods;
    // Growing favours the newer of two equal sets, shrinking takes from the older.
    sets.sort_by_key(|it| it.metadata.creation_timestamp);
    if to_add > 0 {
        sets.reverse();
    }
    sets.sort_by_key(|it| std::cmp::Reverse(it.spec.replicas));

    let mut added = 0;
    let mut sizes = Vec::with_capacity(sets.len());
    for set in &sets {
        let part = proportion(rollout, set, to_add, added);
        added += part;
        sizes.push(set.spec.replicas + part);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    for (set, replicas) in sets.into_iter().zip(sizes) {
        rollout.resize(set, replicas);
    }
}

fn proportion(rollout: &Rollout<'_>, set: &ReplicaSet, to_add: i64, added: i64) -> i64 {
    let left = to_add - added;
    if set.spec.replicas == 0 || to_add == 0 || left == 0 {
        return 0;
    }
    let part = fraction(rollout, set);
    if to_add > 0 { part.min(left) } else { part.max(left) }
}

/// How much a set would change if it kept its share exactly, rounded to the nearest.
fn fraction(rollout: &Rollout<'_>, set: &ReplicaSet) -> i64 {
    if rollout.replicas() == 0 {
        return -set.spec.replicas;
    }
    let max_now = rollout.replicas() + rollout.surge_max();
    let max_before = revision::max(set).filter(|it| *it > 0).unwrap_or(rollout.deployment.status.replicas);
    if max_before <= 0 {
        return 0;
    }
    let (replicas, max_now, max_before) = (i128::from(set.spec.replicas), i128::from(max_now), i128::from(max_before));
    let scaled = (2 * replicas * max_now + max_before).div_euclid(2 * max_before);
    // Anybody may have written the annotation: no set can have more pods than the API can write.
    i64::from(i32::try_from(scaled - replicas).unwrap_or(if scaled < replicas { i32::MIN } else { i32::MAX }))
}
