//! The strategy for pods that do not bear company: the last old one is gone before the first new one comes.

use corten_reconcile::Plan;

use super::{progress, rollout::Rollout};
use crate::projections::Pod;

pub(super) fn run(mut rollout: Rollout<'_>) -> Plan {
    let has_stopped = stop_old(&mut rollout);
    if !has_stopped && !has_old_pods(&rollout) {
        start_new(&mut rollout);
    }
    progress::roll_out(rollout)
}

fn stop_old(rollout: &mut Rollout<'_>) -> bool {
    let running: Vec<_> = rollout.old.iter().copied().filter(|it| it.spec.replicas > 0).collect();
    let mut has_moved = false;
    for set in running {
        has_moved |= rollout.resize(set, 0);
    }
    has_moved
}

/// As in `oldPodsRunning`: a finished pod runs nothing any more, one that is being deleted still may.
fn has_old_pods(rollout: &Rollout<'_>) -> bool {
    rollout.old.iter().any(|it| it.status.replicas > 0) || old_pod(rollout).is_some()
}

/// A pod of an older version that has not finished.
pub(super) fn old_pod<'a>(rollout: &Rollout<'a>) -> Option<&'a Pod> {
    rollout.old.iter().find_map(|set| {
        let controls = |it: &&Pod| it.metadata.controller().is_some_and(|owner| owner.uid == set.metadata.uid);
        rollout.view.owned_by::<Pod>(&set.metadata.uid).find(|it| controls(it) && !it.is_finished())
    })
}

fn start_new(rollout: &mut Rollout<'_>) {
    let Some(new) = rollout.new else {
        rollout.create_new_set();
        return;
    };
    if rollout.adopt_revision() {
        return;
    }
    let wanted = rollout.replicas();
    if new.spec.replicas != wanted {
        rollout.resize(new, wanted);
    } else if progress::is_complete(rollout.deployment, &rollout.deployment.status) {
        rollout.clean_up();
    }
}
