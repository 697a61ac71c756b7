//! A pod with `resourceClaims` asks for devices, which the server does not know yet: it stays unschedulable.
//!
//! Placed, it would run without its devices.

use corten_reconcile::Actor;

use crate::{Plugin, PodInfo, framework::Refusal, snapshot::Snapshot};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "DynamicResources",
    pre_filter: Some(pre_filter),
    actor: Actor::Author,
    wait: "UnsupportedResourceClaims",
    ..Plugin::NONE
};

fn pre_filter(pod: &PodInfo, _snapshot: &Snapshot) -> Option<Refusal> {
    let claims = &pod.resource_claims;
    let message = "spec.resourceClaims is not supported yet, remove it to run the pod without the devices of";
    (!claims.is_empty()).then(|| Refusal { message: format!("{message} {}", claims.join(", ")), claim: None })
}
