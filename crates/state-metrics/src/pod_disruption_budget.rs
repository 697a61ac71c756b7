//! What is told of PodDisruptionBudgets.

use corten_api::resources::POD_DISRUPTION_BUDGETS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static POD_DISRUPTION_BUDGETS_AT: Resource = RESOURCE;

pub(crate) static POD_DISRUPTION_BUDGETS: KindMetrics<PodDisruptionBudget> = KindMetrics {
    resource: &POD_DISRUPTION_BUDGETS_AT,
    labels: &["namespace", "poddisruptionbudget"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodDisruptionBudget {
    metadata: ObjectMeta,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    current_healthy: i32,
    desired_healthy: i32,
    disruptions_allowed: i32,
    expected_pods: i32,
    observed_generation: i64,
}

const FAMILIES: &[Family<PodDisruptionBudget>] = &[
    Family::gauge("kube_poddisruptionbudget_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_poddisruptionbudget_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_poddisruptionbudget_status_current_healthy",
        "Current number of healthy pods",
        &[],
        |it, out| out.one(it.status.current_healthy),
    ),
    Family::gauge(
        "kube_poddisruptionbudget_status_desired_healthy",
        "Minimum desired number of healthy pods",
        &[],
        |it, out| out.one(it.status.desired_healthy),
    ),
    Family::gauge(
        "kube_poddisruptionbudget_status_expected_pods",
        "Total number of pods counted by this disruption budget",
        &[],
        |it, out| out.one(it.status.expected_pods),
    ),
    Family::gauge(
        "kube_poddisruptionbudget_status_observed_generation",
        "Most recent generation observed when updating this PDB status",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge(
        "kube_poddisruptionbudget_status_pod_disruptions_allowed",
        "Number of pod disruptions that are currently allowed",
        &[],
        |it, out| out.one(it.status.disruptions_allowed),
    ),
];
