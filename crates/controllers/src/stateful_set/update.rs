//! The rolling update: pods of another version go, highest ordinal first, and come back as the new one.

use super::{identity, rollout::Rollout};
use crate::{int_or_percent, projections::Pod};

pub(super) fn run(rollout: &mut Rollout<'_>) {
    let rule = rollout.set.spec.update_strategy.rolling_update.as_ref();
    let partition = rule.map_or(0, |it| it.partition);
    let wanted = rollout.set.spec.replicas;
    // As in `getStatefulSetMaxUnavailable`: a small percentage of few pods still lets one go.
    let unavailable_max = rule.filter(|it| !it.max_unavailable.is_null());
    let unavailable_max =
        unavailable_max.map_or(1, |it| int_or_percent::rounded_down(&it.max_unavailable, wanted).max(1));
    let budget = unavailable_max - n_unavailable(rollout);

    // As in `updateStatefulSet`: the partition counts pods from the first one, whatever its ordinal.
    let first = rollout.set.spec.ordinals.start + partition;
    let old: Vec<&Pod> =
        rollout.replicas.range(first..).rev().map(|it| *it.1).filter(|it| is_old(rollout, it)).collect();
    if old.is_empty() {
        return;
    }
    let chosen = if rollout.is_ordered() { old } else { worst_first(rollout, old) };
    let mut left = budget;
    for pod in chosen {
        // Where nothing has to be in order, a pod that serves nobody costs nothing.
        let is_free = !rollout.is_ordered() && rollout.is_unavailable(pod);
        if !is_free && left <= 0 {
            rollout.wait_for("PodNotUpdated", "has an older version and waits for others to be available", pod);
            break;
        }
        left -= i64::from(!is_free);
        rollout.delete(pod);
        rollout.wait_for("PodNotUpdated", "has an older version and is replaced", pod);
        if identity::revision(pod) == rollout.current.name {
            rollout.n_replaced += 1;
        }
    }
}

fn n_unavailable(rollout: &Rollout<'_>) -> i64 {
    let present = i64::try_from(rollout.replicas.len()).unwrap_or(i64::MAX);
    let unavailable = rollout.replicas.values().filter(|it| rollout.is_unavailable(it)).count();
    rollout.set.spec.replicas - present + i64::try_from(unavailable).unwrap_or(i64::MAX)
}

fn is_old(rollout: &Rollout<'_>, pod: &Pod) -> bool {
    // Whoever has finished is replaced already.
    identity::revision(pod) != rollout.update.name && !pod.metadata.is_deleting() && !pod.is_finished()
}

fn worst_first<'a>(rollout: &Rollout<'_>, pods: Vec<&'a Pod>) -> Vec<&'a Pod> {
    let (bad, good): (Vec<_>, Vec<_>) = pods.into_iter().partition(|it| rollout.is_unavailable(it));
    bad.into_iter().chain(good).collect()
}
