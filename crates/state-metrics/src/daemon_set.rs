//! What is told of DaemonSets.

use corten_api::resources::DAEMON_SETS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static DAEMON_SETS_AT: Resource = RESOURCE;

pub(crate) static DAEMON_SETS: KindMetrics<DaemonSet> = KindMetrics {
    resource: &DAEMON_SETS_AT,
    labels: &["namespace", "daemonset"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DaemonSet {
    metadata: ObjectMeta,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    current_number_scheduled: i32,
    desired_number_scheduled: i32,
    number_available: i32,
    number_misscheduled: i32,
    number_ready: i32,
    number_unavailable: i32,
    observed_generation: i64,
    updated_number_scheduled: i32,
}

const FAMILIES: &[Family<DaemonSet>] = &[
    Family::gauge("kube_daemonset_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_daemonset_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_daemonset_metadata_generation",
        "Sequence number representing a specific generation of the desired state.",
        &[],
        |it, out| out.one(it.metadata.generation),
    ),
    Family::gauge(
        "kube_daemonset_status_current_number_scheduled",
        "The number of nodes running at least one daemon pod and are supposed to.",
        &[],
        |it, out| out.one(it.status.current_number_scheduled),
    ),
    Family::gauge(
        "kube_daemonset_status_desired_number_scheduled",
        "The number of nodes that should be running the daemon pod.",
        &[],
        |it, out| out.one(it.status.desired_number_scheduled),
    ),
    Family::gauge(
        "kube_daemonset_status_number_available",
        "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and available",
        &[],
        |it, out| out.one(it.status.number_available),
    ),
    Family::gauge(
        "kube_daemonset_status_number_misscheduled",
        "The number of nodes running a daemon pod but are not supposed to.",
        &[],
        |it, out| out.one(it.status.number_misscheduled),
    ),
    Family::gauge(
        "kube_daemonset_status_number_ready",
        "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and ready.",
        &[],
        |it, out| out.one(it.status.number_ready),
    ),
    Family::gauge(
        "kube_daemonset_status_number_unavailable",
        "The number of nodes that should be running the daemon pod and have none of the daemon pod running and available",
        &[],
        |it, out| out.one(it.status.number_unavailable),
    ),
    Family::gauge(
        "kube_daemonset_status_observed_generation",
        "The most recent generation observed by the daemon set controller.",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge(
        "kube_daemonset_status_updated_number_scheduled",
        "The total number of nodes that are running updated daemon pod",
        &[],
        |it, out| out.one(it.status.updated_number_scheduled),
    ),
];
