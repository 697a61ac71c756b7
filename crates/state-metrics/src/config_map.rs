//! What is told of ConfigMaps.

use corten_api::resources::CONFIG_MAPS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    resource_version,
};

static CONFIG_MAPS_AT: Resource = RESOURCE;

pub(crate) static CONFIG_MAPS: KindMetrics<ConfigMap> = KindMetrics {
    resource: &CONFIG_MAPS_AT,
    labels: &["namespace", "configmap"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ConfigMap {
    metadata: ObjectMeta,
}

const FAMILIES: &[Family<ConfigMap>] = &[
    Family::gauge("kube_configmap_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_configmap_info", "Information about configmap.", &[], |_, out| out.one(true)),
    Family::gauge(
        "kube_configmap_metadata_resource_version",
        "Resource version representing a specific version of the configmap.",
        &[],
        |it, out| resource_version::of(&it.metadata, out),
    ),
];
