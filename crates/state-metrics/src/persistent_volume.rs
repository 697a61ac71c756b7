//! What is told of PersistentVolumes.

mod sources;

use corten_api::resources::PERSISTENT_VOLUMES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use self::sources::{
    AwsElasticBlockStore, AzureDisk, Csi, FibreChannel, GcePersistentDisk, HostPath, Iscsi, Local, Nfs,
};

use crate::{
    exposition::Samples,
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
    access_modes: Vec<String>,
    aws_elastic_block_store: AwsElasticBlockStore,
    azure_disk: AzureDisk,
    capacity: Amounts,
    claim_ref: Option<ClaimRef>,
    csi: Csi,
    fc: FibreChannel,
    gce_persistent_disk: GcePersistentDisk,
    host_path: HostPath,
    iscsi: Iscsi,
    local: Local,
    nfs: Nfs,
    persistent_volume_reclaim_policy: String,
    storage_class_name: String,
    volume_mode: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimRef {
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
}

const FAMILIES: &[Family<PersistentVolume>] = &[
    Family::gauge(
        "kube_persistentvolume_access_mode",
        "Access modes of the PersistentVolume.",
        &["access_mode"],
        |it, out| it.spec.access_modes.iter().for_each(|mode| out.add(&[mode], 1.0)),
    ),
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
    Family::gauge("kube_persistentvolume_info", "Information about persistentvolume.", INFO_LABELS, info),
    Family::gauge(
        "kube_persistentvolume_status_phase",
        "The phase indicates if a volume is available, bound to a claim, or released by a claim.",
        &["phase"],
        |it, out| out.one_of(&["Pending", "Available", "Bound", "Released", "Failed"], &it.status.phase),
    ),
    Family::gauge(
        "kube_persistentvolume_volume_mode",
        "Volume Mode information for the PersistentVolume.",
        &["volumemode"],
        |it, out| out.add(&[it.spec.volume_mode.as_deref().unwrap_or("Filesystem")], 1.0),
    ),
];

const INFO_LABELS: &[&str] = &[
    "storageclass",
    "gce_persistent_disk_name",
    "ebs_volume_id",
    "azure_disk_name",
    "fc_wwids",
    "fc_lun",
    "fc_target_wwns",
    "iscsi_target_portal",
    "iscsi_iqn",
    "iscsi_lun",
    "iscsi_initiator_name",
    "nfs_server",
    "nfs_path",
    "csi_driver",
    "csi_volume_handle",
    "local_path",
    "local_fs",
    "host_path",
    "host_path_type",
    "reclaim_policy",
];

fn info(volume: &PersistentVolume, out: &mut Samples<'_>) {
    let spec = &volume.spec;
    let Spec { csi, fc, host_path, iscsi, local, nfs, .. } = spec;
    let (wwids, target_wwns) = (fc.wwids.join(","), fc.target_wwns.join(","));
    let (fc_lun, iscsi_lun) = (written(fc.lun), written(iscsi.lun));
    let values = [
        &spec.storage_class_name,
        &spec.gce_persistent_disk.pd_name,
        &spec.aws_elastic_block_store.volume_id,
        &spec.azure_disk.disk_name,
        &wwids,
        &fc_lun,
        &target_wwns,
        &iscsi.target_portal,
        &iscsi.iqn,
        &iscsi_lun,
        &iscsi.initiator_name,
        &nfs.server,
        &nfs.path,
        &csi.driver,
        &csi.volume_handle,
        &local.path,
        &local.fs_type,
        &host_path.path,
        &host_path.of,
        &spec.persistent_volume_reclaim_policy,
    ];
    out.add(&values.map(|it| &**it), 1.0);
}

/// Empty where there is none.
fn written(lun: Option<i32>) -> String {
    lun.map_or_else(String::new, |it| it.to_string())
}
