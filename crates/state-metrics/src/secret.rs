//! What is told of Secrets: their names and types, never what they hold.

use corten_api::resources::SECRETS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    owners, resource_version,
};

static SECRETS_AT: Resource = RESOURCE;

pub(crate) static SECRETS: KindMetrics<Secret> = KindMetrics {
    resource: &SECRETS_AT,
    labels: &["namespace", "secret"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Secret {
    metadata: ObjectMeta,
    #[serde(rename = "type")]
    of: String,
}

const FAMILIES: &[Family<Secret>] = &[
    Family::gauge("kube_secret_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_secret_info", "Information about secret.", &[], |_, out| out.one(true)),
    Family::gauge(
        "kube_secret_metadata_resource_version",
        "Resource version representing a specific version of secret.",
        &[],
        |it, out| resource_version::of(&it.metadata, out),
    ),
    Family::gauge(
        "kube_secret_owner",
        "Information about the Secret's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
    Family::gauge("kube_secret_type", "Type about secret.", &["type"], |it, out| out.add(&[&it.of], 1.0)),
];
