//! What is told of Leases.

use corten_api::resources::LEASES as RESOURCE;
use corten_meta::{ObjectMeta, Resource, Time};
use serde::Deserialize;

use crate::{
    exposition::Samples,
    family::{Family, KindMetrics},
};

static LEASES_AT: Resource = RESOURCE;

pub(crate) static LEASES: KindMetrics<Lease> = KindMetrics {
    resource: &LEASES_AT,
    labels: &["namespace", "lease"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lease {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: String,
    renew_time: Option<Time>,
}

const FAMILIES: &[Family<Lease>] = &[
    Family::gauge(
        "kube_lease_owner",
        "Information about the Lease's owner.",
        &["owner_kind", "owner_name", "lease_holder"],
        owners,
    ),
    Family::gauge("kube_lease_renew_time", "Kube lease renew time.", &[], |it, out| out.one(it.spec.renew_time)),
];

/// Who holds it stands beside each owner, and alone where nobody owns it.
fn owners(lease: &Lease, out: &mut Samples<'_>) {
    let (owners, holder) = (&lease.metadata.owner_references, &*lease.spec.holder_identity);
    if owners.is_empty() {
        out.add(&["", "", holder], 1.0);
    }
    owners.iter().for_each(|owner| out.add(&[&owner.kind, &owner.name, holder], 1.0));
}
