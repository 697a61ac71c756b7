//! What a set tells of itself.

use super::{daemons::Daemons, eligible::Verdict};
use crate::projections::DaemonSetStatus;

pub(super) fn of(daemons: &Daemons<'_>) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: daemons.set.metadata.generation,
        collision_count: daemons.set.status.collision_count,
        ..DaemonSetStatus::default()
    };
    for (node, verdict) in &daemons.nodes {
        let oldest = daemons.on_node.get(&*node.metadata.name).and_then(|it| it.first());
        match (verdict, oldest) {
            (Verdict::ShouldRun, None) => status.desired_number_scheduled += 1,
            (Verdict::ShouldRun, Some(pod)) => {
                status.desired_number_scheduled += 1;
                status.current_number_scheduled += 1;
                status.number_ready += i64::from(pod.is_ready());
                status.number_available += i64::from(daemons.is_available(pod));
                status.updated_number_scheduled += i64::from(daemons.is_updated(pod));
            }
            (_, Some(_)) => status.number_misscheduled += 1,
            (_, None) => {}
        }
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}
