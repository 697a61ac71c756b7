//! What is told of Deployments.

use corten_api::resources::DEPLOYMENTS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    conditions::{self, Condition},
    family::{Family, KindMetrics},
    owners,
    rollouts::{IntOrPercent, rounded},
};

static DEPLOYMENTS_AT: Resource = RESOURCE;

pub(crate) static DEPLOYMENTS: KindMetrics<Deployment> = KindMetrics {
    resource: &DEPLOYMENTS_AT,
    labels: &["namespace", "deployment"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Deployment {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    paused: bool,
    replicas: Option<i32>,
    strategy: Strategy,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Strategy {
    #[serde(rename = "type")]
    of: String,
    rolling_update: RollingUpdate,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RollingUpdate {
    max_surge: Option<IntOrPercent>,
    max_unavailable: Option<IntOrPercent>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    available_replicas: i32,
    conditions: Vec<Condition>,
    observed_generation: i64,
    ready_replicas: i32,
    replicas: i32,
    terminating_replicas: Option<i32>,
    unavailable_replicas: i32,
    updated_replicas: i32,
}

const FAMILIES: &[Family<Deployment>] = &[
    Family::gauge("kube_deployment_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_deployment_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_deployment_metadata_generation",
        "Sequence number representing a specific generation of the desired state.",
        &[],
        |it, out| out.one(it.metadata.generation),
    ),
    Family::gauge(
        "kube_deployment_owner",
        "Information about the Deployment's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
    Family::gauge(
        "kube_deployment_spec_paused",
        "Whether the deployment is paused and will not be processed by the deployment controller.",
        &[],
        |it, out| out.one(it.spec.paused),
    ),
    Family::gauge("kube_deployment_spec_replicas", "Number of desired pods for a deployment.", &[], |it, out| {
        out.one(it.spec.replicas)
    }),
    Family::gauge(
        "kube_deployment_spec_strategy_rollingupdate_max_surge",
        "Maximum number of replicas that can be scheduled above the desired number of replicas during a rolling update of a deployment.",
        &[],
        |it, out| out.one(rolling(it, &it.spec.strategy.rolling_update.max_surge, f64::ceil)),
    ),
    Family::gauge(
        "kube_deployment_spec_strategy_rollingupdate_max_unavailable",
        "Maximum number of unavailable replicas during a rolling update of a deployment.",
        &[],
        |it, out| out.one(rolling(it, &it.spec.strategy.rolling_update.max_unavailable, f64::floor)),
    ),
    Family::gauge(
        "kube_deployment_status_condition",
        "The current status conditions of a deployment.",
        &["reason", "condition", "status"],
        |it, out| conditions::of_each_with_reason(&it.status.conditions, out),
    ),
    Family::gauge(
        "kube_deployment_status_observed_generation",
        "The generation observed by the deployment controller.",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge("kube_deployment_status_replicas", "The number of replicas per deployment.", &[], |it, out| {
        out.one(it.status.replicas)
    }),
    Family::gauge(
        "kube_deployment_status_replicas_available",
        "The number of available replicas per deployment.",
        &[],
        |it, out| out.one(it.status.available_replicas),
    ),
    Family::gauge(
        "kube_deployment_status_replicas_ready",
        "The number of ready replicas per deployment.",
        &[],
        |it, out| out.one(it.status.ready_replicas),
    ),
    Family::gauge(
        "kube_deployment_status_replicas_terminating",
        "The number of terminating replicas per deployment.",
        &[],
        |it, out| out.one(it.status.terminating_replicas),
    ),
    Family::gauge(
        "kube_deployment_status_replicas_unavailable",
        "The number of unavailable replicas per deployment.",
        &[],
        |it, out| out.one(it.status.unavailable_replicas),
    ),
    Family::gauge(
        "kube_deployment_status_replicas_updated",
        "The number of updated replicas per deployment.",
        &[],
        |it, out| out.one(it.status.updated_replicas),
    ),
];

fn rolling(deployment: &Deployment, at_most: &Option<IntOrPercent>, round: fn(f64) -> f64) -> Option<f64> {
    let is_rolling = deployment.spec.strategy.of == "RollingUpdate";
    let at_most = at_most.as_ref().filter(|_| is_rolling)?;
    rounded(at_most, deployment.spec.replicas.unwrap_or(1), round)
}
