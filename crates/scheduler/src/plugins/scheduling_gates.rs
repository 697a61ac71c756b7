//! A pod with scheduling gates stays out of the queue until their owners have removed them all.

use corten_reconcile::Actor;

use crate::{Plugin, PodInfo, pod_groups::PodGroups};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "SchedulingGates",
    pre_enqueue: Some(pre_enqueue),
    actor: Actor::External,
    wait: "SchedulingGated",
    ..Plugin::NONE
};

fn pre_enqueue(pod: &PodInfo, _: &PodGroups) -> Option<String> {
    (!pod.gates.is_empty()).then(|| format!("waiting for scheduling gates: {}", pod.gates.join(", ")))
}
