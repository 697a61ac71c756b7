//! Why a Pod is as it is. A reason that is not among those that are known is told as `Other`, so that there are few of them.

use crate::{
    family::Family,
    pod::{Pod, containers::ContainerStatus},
};

const OF_STATUS: [&str; 8] = [
    "Evicted",
    "NodeAffinity",
    "NodeLost",
    "PreemptionByScheduler",
    "SchedulingGated",
    "Shutdown",
    "TerminationByKubelet",
    "UnexpectedAdmissionError",
];
const OF_DISRUPTIONS: [&str; 5] = [
    "DeletionByPodGC",
    "DeletionByTaintManager",
    "EvictionByEvictionAPI",
    "PreemptionByScheduler",
    "TerminationByKubelet",
];

pub(crate) const DISRUPTION: Family<Pod> = Family::gauge(
    "kube_pod_status_disruption_reason",
    "The pod disruption condition reason",
    &["reason"],
    |it, out| {
        if let Some(disruption) = it.condition("DisruptionTarget").filter(|it| it.is_true()) {
            out.add(&[known_or_other(&OF_DISRUPTIONS, &disruption.reason)], 1.0);
        }
    },
);
pub(crate) const STATUS: Family<Pod> =
    Family::gauge("kube_pod_status_reason", "The pod status reasons", &["reason"], |it, out| {
        if let Some(reason) = of_status(it) {
            out.add(&[reason], 1.0);
        }
    });

/// The Pod's own reason, else that of a condition, else that for which one of its containers ended.
fn of_status(pod: &Pod) -> Option<&str> {
    let status = &pod.status;
    if !status.reason.is_empty() {
        return Some(known_or_other(&OF_STATUS, &status.reason));
    }
    let of_conditions = status.conditions.iter().map(|it| &*it.reason);
    let of_containers = status.container_statuses.iter().filter_map(ContainerStatus::terminated_reason);
    of_conditions.chain(of_containers).find(|it| OF_STATUS.contains(it))
}

fn known_or_other<'r>(known: &[&str], reason: &'r str) -> &'r str {
    if known.contains(&reason) { reason } else { "Other" }
}
