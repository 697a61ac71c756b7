//! A class of attributes a volume may be given, and given anew while it is used.

use corten_api::resources::VOLUME_ATTRIBUTES_CLASSES;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{fill::means_the_same, read::text};
use serde_json::{Value, json};

use super::parameters;
use crate::{
    BuiltIn, Policy, UpdateRules, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: VOLUME_ATTRIBUTES_CLASSES,
    singular: "volumeattributesclass",
    short_names: &["vac"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.storage.v1.VolumeAttributesClass",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Name", "Its name.", |object, _| json!(text(object, "/metadata/name"))),
        column("DriverName", "Which driver knows its parameters.", |object, _| json!(text(object, "/driverName"))),
        AGE,
    ],
    policy: &VolumeAttributesClass,
};

struct VolumeAttributesClass;

impl Policy for VolumeAttributesClass {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |class| {
            parameters::provisioner(class.at("driverName"));
            if class.at("parameters").is_empty() {
                class.at("parameters").missing("must contain at least one key/value pair");
            }
            parameters::validate(class.at("parameters"));
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |class| {
            for field in ["driverName", "parameters"] {
                if !means_the_same(class.at(field).value(), &old[field]) {
                    class.at(field).forbidden(&format!("updates to {field} are forbidden."));
                }
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn update_rules(&self) -> UpdateRules {
        UpdateRules::ChangeThenWhole
    }
}
