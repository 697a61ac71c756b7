//! How much room a class of storage has left for some nodes.

use corten_api::resources::CSI_STORAGE_CAPACITIES;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::{labels, read::text, rules, warnings};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{column, or_unset},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CSI_STORAGE_CAPACITIES,
    singular: "csistoragecapacity",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.storage.v1.CSIStorageCapacity",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("StorageClassName", "The class it speaks of.", |object, _| json!(text(object, "/storageClassName"))),
        column("Capacity", "How much room there is.", |object, _| json!(or_unset(object, "/capacity"))),
    ],
    policy: &CsiStorageCapacity,
};

struct CsiStorageCapacity;

impl Policy for CsiStorageCapacity {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |capacity| {
            labels::label_selector(capacity.at("nodeTopology"));
            capacity.at("storageClassName").follows(field::dns1123_subdomain);
            capacity.at("capacity").non_negative_quantity();
            capacity.at("maximumVolumeSize").non_negative_quantity();
        })
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::storage_capacity(new)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |capacity| {
            rules::immutable(capacity.at("nodeTopology"), &old["nodeTopology"]);
            rules::immutable(capacity.at("storageClassName"), &old["storageClassName"]);
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
