//! What is told of LimitRanges.

use corten_api::resources::LIMIT_RANGES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    exposition::Samples,
    family::{Family, KindMetrics},
    quantities::Amounts,
};

static LIMIT_RANGES_AT: Resource = RESOURCE;

pub(crate) static LIMIT_RANGES: KindMetrics<LimitRange> = KindMetrics {
    resource: &LIMIT_RANGES_AT,
    labels: &["namespace", "limitrange"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LimitRange {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    limits: Vec<Limit>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    #[serde(rename = "type")]
    of: String,
    min: Amounts,
    max: Amounts,
    default: Amounts,
    default_request: Amounts,
    max_limit_request_ratio: Amounts,
}

const FAMILIES: &[Family<LimitRange>] = &[
    Family::gauge("kube_limitrange", "Information about limit range.", &["resource", "type", "constraint"], limits),
    Family::gauge("kube_limitrange_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
];

fn limits(range: &LimitRange, out: &mut Samples<'_>) {
    for limit in &range.spec.limits {
        let constraints = [
            ("min", &limit.min),
            ("max", &limit.max),
            ("default", &limit.default),
            ("defaultRequest", &limit.default_request),
            ("maxLimitRequestRatio", &limit.max_limit_request_ratio),
        ];
        for (constraint, amounts) in constraints {
            amounts.iter().for_each(|it| out.add(&[it.0, &limit.of, constraint], it.1.approximate()));
        }
    }
}
