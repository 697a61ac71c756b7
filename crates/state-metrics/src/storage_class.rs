//! What is told of StorageClasses.

use corten_api::resources::STORAGE_CLASSES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static STORAGE_CLASSES_AT: Resource = RESOURCE;

pub(crate) static STORAGE_CLASSES: KindMetrics<StorageClass> = KindMetrics {
    resource: &STORAGE_CLASSES_AT,
    labels: &["storageclass"],
    identity: |it| vec![&it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StorageClass {
    metadata: ObjectMeta,
    provisioner: String,
    reclaim_policy: String,
    volume_binding_mode: String,
}

const FAMILIES: &[Family<StorageClass>] = &[
    Family::gauge("kube_storageclass_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_storageclass_info",
        "Information about storageclass.",
        &["provisioner", "reclaim_policy", "volume_binding_mode"],
        |it, out| out.add(&[&it.provisioner, &it.reclaim_policy, &it.volume_binding_mode], 1.0),
    ),
];
