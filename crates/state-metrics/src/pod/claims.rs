//! What Pods claim: volumes, and devices.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};

use crate::{exposition::Samples, family::Family, pod::Pod};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Volume {
    name: String,
    ephemeral: Option<IgnoredAny>,
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    claim_name: String,
    read_only: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceClaim {
    name: String,
    resource_claim_name: String,
    resource_claim_template_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceClaimStatus {
    name: String,
    resource_claim_name: String,
}

const VOLUME: &[&str] = &["volume", "persistentvolumeclaim"];

pub(crate) const RESOURCE_CLAIMS: Family<Pod> = Family::gauge(
    "kube_pod_resourceclaim_info",
    "Information about a DRA ResourceClaim referenced by a pod, one series per pod.spec.resourceClaims entry; claim_name is the pod-local reference and resourceclaim_name is the resolved ResourceClaim object name.",
    &["claim_name", "resourceclaim_name", "resourceclaim_template_name"],
    resource_claims,
);
pub(crate) const VOLUMES: Family<Pod> = Family::gauge(
    "kube_pod_spec_volumes_persistentvolumeclaims_info",
    "Information about persistentvolumeclaim and ephemeral volumes in a pod.",
    VOLUME,
    |it, out| volumes(it, out, |_| 1.0),
);
pub(crate) const VOLUMES_READ_ONLY: Family<Pod> = Family::gauge(
    "kube_pod_spec_volumes_persistentvolumeclaims_readonly",
    "Describes whether a persistentvolumeclaim is mounted read only. Ephemeral volumes always report 0 since the ephemeral volume source does not support a read-only flag.",
    VOLUME,
    |it, out| volumes(it, out, |claim| f64::from(u8::from(claim.is_some_and(|it| it.read_only)))),
);

/// A sample for each volume that is a claim's, also one that was made for the Pod, which has no source but its name.
fn volumes(pod: &Pod, out: &mut Samples<'_>, number: fn(Option<&ClaimSource>) -> f64) {
    for Volume { name, ephemeral, persistent_volume_claim: claim } in &pod.spec.volumes {
        let number = number(claim.as_ref());
        match claim {
            Some(claim) => out.add(&[name, &claim.claim_name], number),
            None if ephemeral.is_some() => out.add(&[name, &format!("{}-{name}", pod.metadata.name)], number),
            None => {}
        }
    }
}

/// The claim that a template became stands in the Pod's status, once there is one.
fn resource_claims(pod: &Pod, out: &mut Samples<'_>) {
    let made = pod.status.resource_claim_statuses.iter().map(|it| (&*it.name, &*it.resource_claim_name));
    let made: BTreeMap<&str, &str> = made.collect();
    for ResourceClaim { name, resource_claim_name, resource_claim_template_name: template } in &pod.spec.resource_claims
    {
        if resource_claim_name.is_empty() && template.is_empty() {
            continue;
        }
        let claim = match &**resource_claim_name {
            "" => made.get(&**name).copied().unwrap_or_default(),
            claim => claim,
        };
        out.add(&[name, claim, template], 1.0);
    }
}
