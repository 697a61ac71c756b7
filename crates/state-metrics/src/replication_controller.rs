//! What is told of ReplicationControllers.

use corten_api::resources::REPLICATION_CONTROLLERS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    owners,
};

static REPLICATION_CONTROLLERS_AT: Resource = RESOURCE;

pub(crate) static REPLICATION_CONTROLLERS: KindMetrics<ReplicationController> = KindMetrics {
    resource: &REPLICATION_CONTROLLERS_AT,
    labels: &["namespace", "replicationcontroller"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplicationController {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    replicas: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    available_replicas: i32,
    fully_labeled_replicas: i32,
    observed_generation: i64,
    ready_replicas: i32,
    replicas: i32,
}

const FAMILIES: &[Family<ReplicationController>] = &[
    Family::gauge("kube_replicationcontroller_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_replicationcontroller_metadata_generation",
        "Sequence number representing a specific generation of the desired state.",
        &[],
        |it, out| out.one(it.metadata.generation),
    ),
    Family::gauge(
        "kube_replicationcontroller_owner",
        "Information about the ReplicationController's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
    Family::gauge(
        "kube_replicationcontroller_spec_replicas",
        "Number of desired pods for a ReplicationController.",
        &[],
        |it, out| out.one(it.spec.replicas),
    ),
    Family::gauge(
        "kube_replicationcontroller_status_available_replicas",
        "The number of available replicas per ReplicationController.",
        &[],
        |it, out| out.one(it.status.available_replicas),
    ),
    Family::gauge(
        "kube_replicationcontroller_status_fully_labeled_replicas",
        "The number of fully labeled replicas per ReplicationController.",
        &[],
        |it, out| out.one(it.status.fully_labeled_replicas),
    ),
    Family::gauge(
        "kube_replicationcontroller_status_observed_generation",
        "The generation observed by the ReplicationController controller.",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge(
        "kube_replicationcontroller_status_ready_replicas",
        "The number of ready replicas per ReplicationController.",
        &[],
        |it, out| out.one(it.status.ready_replicas),
    ),
    Family::gauge(
        "kube_replicationcontroller_status_replicas",
        "The number of replicas per ReplicationController.",
        &[],
        |it, out| out.one(it.status.replicas),
    ),
];
