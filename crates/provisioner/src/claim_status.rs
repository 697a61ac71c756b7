//! The status of a claim as far as its growth goes.

use corten_api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimCondition, PersistentVolumeClaimStatus};
use corten_meta::{Key, Quantity};
use serde_json::{Value, json};

/// The conditions that say how far a growth has come.
const CONDITIONS: [&str; 4] = ["Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"];
/// Those that say how far a change of its VolumeAttributesClass has come.
pub(crate) const OF_MODIFICATION: [&str; 2] = ["ModifyingVolume", "ModifyVolumeError"];
/// What stands for the driver's words in a status.
pub const MESSAGE: &str = "{message}";

/// Is a condition of this type one that is written here? All others belong to somebody else.
pub fn is_own_condition(kind: &str) -> bool {
    CONDITIONS.iter().chain(&OF_MODIFICATION).any(|it| *it == kind)
}

pub(crate) fn size(quantity: Option<&corten_api::apimachinery::pkg::api::resource::Quantity>) -> Option<Quantity> {
    quantity.and_then(|it| it.0.parse().ok())
}

pub(crate) fn key(claim: &PersistentVolumeClaim) -> Key {
    let of = |it: &Option<String>| it.clone().unwrap_or_default();
    Key::new(of(&claim.metadata.namespace), of(&claim.metadata.name))
}

/// A claim of which no growth is under way.
pub(crate) fn settled(status: &PersistentVolumeClaimStatus, size: Quantity) -> Value {
    json!({
        "capacity": { "storage": size.to_string() },
        "allocatedResources": null,
        "allocatedResourceStatuses": null,
        "conditions": conditions(status, None),
    })
}

/// Those of others stay.
pub(crate) fn conditions(status: &PersistentVolumeClaimStatus, own: Option<Value>) -> Vec<Value> {
    conditions_but(status, &CONDITIONS).chain(own).collect()
}

pub(crate) fn conditions_but(status: &PersistentVolumeClaimStatus, own: &[&str]) -> impl Iterator<Item = Value> {
    let others = status.conditions.iter().flatten().filter(|it| !own.contains(&it.type_.as_str()));
    others.filter_map(|it| serde_json::to_value(it).ok())
}

/// Does it say that the node's part is to be done?
pub(crate) fn pending(condition: &PersistentVolumeClaimCondition) -> bool {
    condition.type_ == "FileSystemResizePending" && condition.status == "True"
}
