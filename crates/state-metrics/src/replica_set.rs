//! What is told of ReplicaSets.

use corten_api::resources::REPLICA_SETS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    owners,
};

static REPLICA_SETS_AT: Resource = RESOURCE;

pub(crate) static REPLICA_SETS: KindMetrics<ReplicaSet> = KindMetrics {
    resource: &REPLICA_SETS_AT,
    labels: &["namespace", "replicaset"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplicaSet {
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
    fully_labeled_replicas: i32,
    observed_generation: i64,
    ready_replicas: i32,
    replicas: i32,
    terminating_replicas: Option<i32>,
}

const FAMILIES: &[Family<ReplicaSet>] = &[
    Family::gauge("kube_replicaset_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_replicaset_metadata_generation",
        "Sequence number representing a specific generation of the desired state.",
        &[],
        |it, out| out.one(it.metadata.generation),
    ),
    Family::gauge(
        "kube_replicaset_owner",
        "Information about the ReplicaSet's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
    Family::gauge("kube_replicaset_spec_replicas", "Number of desired pods for a ReplicaSet.", &[], |it, out| {
        out.one(it.spec.replicas)
    }),
    Family::gauge(
        "kube_replicaset_status_fully_labeled_replicas",
        "The number of fully labeled replicas per ReplicaSet.",
        &[],
        |it, out| out.one(it.status.fully_labeled_replicas),
    ),
    Family::gauge(
        "kube_replicaset_status_observed_generation",
        "The generation observed by the ReplicaSet controller.",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge(
        "kube_replicaset_status_ready_replicas",
        "The number of ready replicas per ReplicaSet.",
        &[],
        |it, out| out.one(it.status.ready_replicas),
    ),
    Family::gauge("kube_replicaset_status_replicas", "The number of replicas per ReplicaSet.", &[], |it, out| {
        out.one(it.status.replicas)
    }),
    Family::gauge(
        "kube_replicaset_status_terminating_replicas",
        "The number of terminating replicas per ReplicaSet.",
        &[],
        |it, out| out.one(it.status.terminating_replicas),
    ),
];
