//! What is told of PersistentVolumes.

use corten_api::resources::PERSISTENT_VOLUMES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    quantities::Amounts,
};

static PERSISTENT_VOLUMES_AT: Resource = RESOURCE;

pub(crate) static PERSISTENT_VOLUMES: KindMetrics<PersistentVolume> = KindMetrics {
    resource: &PERSISTENT_VOLUMES_AT,
    labels: &["persistentvolume"],
    identity: |it| vec![&it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PersistentVolume {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    capacity: Amounts,
    claim_ref: Option<ClaimRef>,
    csi: Option<Csi>,
    persistent_volume_reclaim_policy: String,
    storage_class_name: String,
    volume_mode: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimRef {
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Csi {
    driver: String,
    volume_handle: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
}

const FAMILIES: &[Family<PersistentVolume>] = &[
    Family::gauge("kube_persistentvolume_capacity_bytes", "Persistentvolume capacity in bytes.", &[], |it, out| {
        out.one(it.spec.capacity.get("storage").copied())
    }),
    Family::gauge(
        "kube_persistentvolume_claim_ref",
        "Information about the Persistent Volume Claim Reference.",
        &["name", "claim_namespace"],
        |it, out| {
            if let Some(claim) = &it.spec.claim_ref {
                out.add(&[&claim.name, &claim.namespace], 1.0);
            }
        },
    ),
    Family::gauge("kube_persistentvolume_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_persistentvolume_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_persistentvolume_info",
        "Information about persistentvolume.",
        &["storageclass", "csi_driver", "csi_volume_handle", "reclaim_policy", "volume_mode"],
        |it, out| {
            let (driver, handle) = it.spec.csi.as_ref().map_or(("", ""), |it| (&*it.driver, &*it.volume_handle));
            let spec = &it.spec;
            let (policy, mode) = (&*spec.persistent_volume_reclaim_policy, &*spec.volume_mode);
            out.add(&[&*spec.storage_class_name, driver, handle, policy, mode], 1.0);
        },
    ),
    Family::gauge(
        "kube_persistentvolume_status_phase",
        "The phase indicates if a volume is available, bound to a claim, or released by a claim.",
        &["phase"],
        |it, out| out.one_of(&["Pending", "Available", "Bound", "Released", "Failed"], &it.status.phase),
    ),
];
