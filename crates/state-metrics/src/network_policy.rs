//! What is told of NetworkPolicies.

use corten_api::resources::NETWORK_POLICIES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::{Deserialize, de::IgnoredAny};

use crate::family::{Family, KindMetrics};

static NETWORK_POLICIES_AT: Resource = RESOURCE;

pub(crate) static NETWORK_POLICIES: KindMetrics<NetworkPolicy> = KindMetrics {
    resource: &NETWORK_POLICIES_AT,
    labels: &["namespace", "networkpolicy"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NetworkPolicy {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    egress: Vec<IgnoredAny>,
    ingress: Vec<IgnoredAny>,
}

const FAMILIES: &[Family<NetworkPolicy>] = &[
    Family::gauge("kube_networkpolicy_created", "Unix creation timestamp of network policy", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_networkpolicy_spec_egress_rules",
        "Number of egress rules on the networkpolicy",
        &[],
        |it, out| out.one(i64::try_from(it.spec.egress.len()).ok()),
    ),
    Family::gauge(
        "kube_networkpolicy_spec_ingress_rules",
        "Number of ingress rules on the networkpolicy",
        &[],
        |it, out| out.one(i64::try_from(it.spec.ingress.len()).ok()),
    ),
];
