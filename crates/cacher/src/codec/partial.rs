//! `PartialObjectMetadata`: an object's metadata alone.

use serde_json::{Value, json};

/// Takes the metadata out of a whole object.
pub fn of(object: &Value) -> Value {
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] })
}
