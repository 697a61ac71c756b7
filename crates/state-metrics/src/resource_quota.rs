//! What is told of ResourceQuotas.

use corten_api::resources::RESOURCE_QUOTAS as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    quantities::Amounts,
};

static RESOURCE_QUOTAS_AT: Resource = RESOURCE;

pub(crate) static RESOURCE_QUOTAS: KindMetrics<ResourceQuota> = KindMetrics {
    resource: &RESOURCE_QUOTAS_AT,
    labels: &["namespace", "resourcequota"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceQuota {
    metadata: ObjectMeta,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    hard: Amounts,
    used: Amounts,
}

const FAMILIES: &[Family<ResourceQuota>] = &[
    Family::gauge("kube_resourcequota", "Information about resource quota.", &["resource", "type"], |it, out| {
        for (of, amounts) in [("hard", &it.status.hard), ("used", &it.status.used)] {
            amounts.iter().for_each(|(resource, amount)| out.add(&[resource, of], amount.approximate()));
        }
    }),
    Family::gauge("kube_resourcequota_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
];
