//! What is told of Namespaces.

use corten_api::resources::NAMESPACES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    conditions::{self, Condition},
    family::{Family, KindMetrics},
};

static NAMESPACES_AT: Resource = RESOURCE;

pub(crate) static NAMESPACES: KindMetrics<Namespace> = KindMetrics {
    resource: &NAMESPACES_AT,
    labels: &["namespace"],
    identity: |it| vec![&it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Namespace {
    metadata: ObjectMeta,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
}

const FAMILIES: &[Family<Namespace>] = &[
    Family::gauge("kube_namespace_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_namespace_status_condition",
        "The condition of a namespace.",
        &["condition", "status"],
        |it, out| conditions::of_each(&it.status.conditions, out),
    ),
    Family::gauge("kube_namespace_status_phase", "kubernetes namespace status phase.", &["phase"], |it, out| {
        out.one_of(&["Active", "Terminating"], &it.status.phase)
    }),
];
