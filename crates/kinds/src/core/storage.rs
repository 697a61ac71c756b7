//! What volumes and claims have in common.

use corten_validation::read::{items, text};
use serde_json::Value;

/// `RWO,ROX`, always in this order.
pub(super) fn modes_text(object: &Value, pointer: &str) -> String {
    let given = items(object, pointer);
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let shown = short.iter().filter(|(mode, _)| given.iter().any(|it| it == mode)).map(|it| it.1);
    shown.collect::<Vec<_>>().join(",")
}

/// The class in the field, or in the annotation that was there before the field.
pub(super) fn class_of(object: &Value) -> &str {
    match object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str() {
        Some(class) => class,
        None => text(object, "/spec/storageClassName"),
    }
}

pub(super) fn phase(object: &Value) -> &str {
    if object["metadata"]["deletionTimestamp"].is_null() { text(object, "/status/phase") } else { "Terminating" }
}
