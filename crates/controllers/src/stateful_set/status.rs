//! What a set tells of itself.

use super::{
    identity,
    rollout::{Rollout, is_running},
};
use crate::projections::StatefulSetStatus;

pub(super) fn of(rollout: &Rollout<'_>) -> StatefulSetStatus {
    let set = rollout.set;
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        current_revision: rollout.current.name.clone(),
        update_revision: rollout.update.name.clone(),
        collision_count: Some(set.status.collision_count.unwrap_or(0)),
        available_replicas: Some(0),
        ..StatefulSetStatus::default()
    };
    let pods = rollout.replicas.values().chain(rollout.condemned.iter().map(|it| &it.1));
    for pod in pods {
        status.replicas += 1;
        status.ready_replicas += i64::from(is_running(pod));
        if rollout.is_running_and_available(pod) {
            status.available_replicas = status.available_replicas.map(|it| it + 1);
        }
        if !pod.metadata.is_deleting() {
            status.current_replicas += i64::from(identity::revision(pod) == rollout.current.name);
            status.updated_replicas += i64::from(identity::revision(pod) == rollout.update.name);
        }
    }
    status.current_replicas -= rollout.n_replaced;
    let wanted = set.spec.replicas;
    let is_complete = [status.updated_replicas, status.ready_replicas, status.replicas].iter().all(|it| *it == wanted);
    if set.spec.update_strategy.r#type == "RollingUpdate" && is_complete {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status
}
