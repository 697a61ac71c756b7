//! What volumes are called before there are any.

use corten_api::core::v1::PersistentVolumeClaim;

/// Of the volume that is made for a claim: the same for the same claim.
pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}
