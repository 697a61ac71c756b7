//! The rolling update: the new set grows while old ones shrink, within `maxSurge` above and `maxUnavailable` below.

use corten_reconcile::Plan;

use super::{progress, rollout::Rollout};
use crate::projections::ReplicaSet;

pub(super) fn run(mut rollout: Rollout<'_>) -> Plan {
    let Some(new) = rollout.new else {
        rollout.create_new_set();
        return progress::roll_out(rollout);
    };
    // A patched set has another version: further steps begin from that.
    if !rollout.adopt_revision() {
        let has_moved = size_new(&mut rollout, new) || shrink_old(&mut rollout, new);
        if !has_moved && progress::is_complete(rollout.deployment, &rollout.deployment.status) {
            rollout.clean_up();
        }
    }
    progress::roll_out(rollout)
}

fn size_new(rollout: &mut Rollout<'_>, new: &ReplicaSet) -> bool {
    let wanted = rollout.replicas();
    match new.spec.replicas {
        current if current == wanted => false,
        current if current > wanted => rollout.resize(new, wanted),
        current => {
            let replicas = rollout.new_set_replicas();
            current != replicas && rollout.resize(new, replicas)
        }
    }
}

/// Takes pods from the old sets as far as availability allows, those that are not available first: they are missed by nobody.
fn shrink_old(rollout: &mut Rollout<'_>, new: &ReplicaSet) -> bool {
    let mut sizes: Vec<(&ReplicaSet, i64)> = rollout.old.iter().map(|it| (*it, it.spec.replicas)).collect();
    let n_old: i64 = sizes.iter().map(|it| it.1).sum();
    if n_old == 0 {
        return false;
    }
    let n_available_min = rollout.replicas() - rollout.unavailable_max();
    let n_new_unavailable = new.spec.replicas - new.status.available_replicas;
    let n_removable = n_old + new.spec.replicas - n_available_min - n_new_unavailable;
    if n_removable <= 0 {
        return false;
    }
    remove_unavailable(&mut sizes, n_removable);
    let n_available: i64 = rollout.all().map(|it| it.status.available_replicas).sum();
    remove_available(&mut sizes, n_available - n_available_min);
    let mut has_moved = false;
    for (set, replicas) in sizes {
        if set.spec.replicas != replicas {
            has_moved |= rollout.resize(set, replicas);
        }
    }
    has_moved
}

fn remove_unavailable(sizes: &mut [(&ReplicaSet, i64)], mut budget: i64) {
    for (set, replicas) in sizes {
        let taken = (*replicas - set.status.available_replicas).clamp(0, budget.max(0));
        *replicas -= taken;
        budget -= taken;
    }
}

fn remove_available(sizes: &mut [(&ReplicaSet, i64)], mut budget: i64) {
    for (_, replicas) in sizes {
        let taken = (*replicas).min(budget.max(0));
        *replicas -= taken;
        budget -= taken;
    }
}
