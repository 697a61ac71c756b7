//! What is told of PersistentVolumeClaims.

use corten_api::resources::PERSISTENT_VOLUME_CLAIMS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    conditions::{self, Condition},
    family::{Family, KindMetrics},
    quantities::Amounts,
};

static PERSISTENT_VOLUME_CLAIMS_AT: Resource = RESOURCE;

pub(crate) static PERSISTENT_VOLUME_CLAIMS: KindMetrics<PersistentVolumeClaim> = KindMetrics {
    resource: &PERSISTENT_VOLUME_CLAIMS_AT,
    labels: &["namespace", "persistentvolumeclaim"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PersistentVolumeClaim {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    access_modes: Vec<String>,
    resources: Resources,
    storage_class_name: Option<String>,
    volume_mode: String,
    volume_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resources {
    requests: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Vec<Condition>,
    phase: String,
}

impl PersistentVolumeClaim {
    /// The annotation is older than the field and goes before it.
    fn storage_class(&self) -> &str {
        let annotated = self.metadata.annotations.get("volume.beta.kubernetes.io/storage-class");
        annotated.or(self.spec.storage_class_name.as_ref()).map_or("<none>", |it| &**it)
    }
}

const FAMILIES: &[Family<PersistentVolumeClaim>] = &[
    Family::gauge(
        "kube_persistentvolumeclaim_access_mode",
        "The access mode(s) specified by the persistent volume claim.",
        &["access_mode"],
        |it, out| it.spec.access_modes.iter().for_each(|mode| out.add(&[mode], 1.0)),
    ),
    Family::gauge("kube_persistentvolumeclaim_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_persistentvolumeclaim_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_persistentvolumeclaim_info",
        "Information about persistent volume claim.",
        &["storageclass", "volumename", "volumemode"],
        |it, out| out.add(&[it.storage_class(), &it.spec.volume_name, &it.spec.volume_mode], 1.0),
    ),
    Family::gauge(
        "kube_persistentvolumeclaim_labels",
        "The label by which alerts leave claims out, where a claim has it.",
        &["label_excluded_from_alerts"],
        |it, out| {
            if let Some(value) = it.metadata.labels.get("excluded_from_alerts") {
                out.add(&[value], 1.0);
            }
        },
    ),
    Family::gauge(
        "kube_persistentvolumeclaim_resource_requests_storage_bytes",
        "The capacity of storage requested by the persistent volume claim.",
        &[],
        |it, out| out.one(it.spec.resources.requests.get("storage").copied()),
    ),
    Family::gauge(
        "kube_persistentvolumeclaim_status_condition",
        "Information about status of different conditions of persistent volume claim.",
        &["condition", "status"],
        |it, out| conditions::of_each(&it.status.conditions, out),
    ),
    Family::gauge(
        "kube_persistentvolumeclaim_status_phase",
        "The phase the persistent volume claim is currently in.",
        &["phase"],
        |it, out| out.one_of(&["Lost", "Bound", "Pending"], &it.status.phase),
    ),
];
