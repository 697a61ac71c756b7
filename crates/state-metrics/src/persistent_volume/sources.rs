//! Where a PersistentVolume's bytes are. It has one of these, and the others are empty.

use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AwsElasticBlockStore {
    #[serde(rename = "volumeID")]
    pub(super) volume_id: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AzureDisk {
    pub(super) disk_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Csi {
    pub(super) driver: String,
    pub(super) volume_handle: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FibreChannel {
    pub(super) lun: Option<i32>,
    #[serde(rename = "targetWWNs")]
    pub(super) target_wwns: Vec<String>,
    pub(super) wwids: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GcePersistentDisk {
    pub(super) pd_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HostPath {
    pub(super) path: String,
    #[serde(rename = "type")]
    pub(super) of: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Iscsi {
    pub(super) initiator_name: String,
    pub(super) iqn: String,
    pub(super) lun: Option<i32>,
    pub(super) target_portal: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Local {
    pub(super) fs_type: String,
    pub(super) path: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Nfs {
    pub(super) path: String,
    pub(super) server: String,
}
