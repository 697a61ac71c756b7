//! Names a priority for Pods.

use corten_api::resources::PRIORITY_CLASSES;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{
    fill::{fill, fill_pointer},
    read::{number, text},
    rules,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, UpdateRules, Verb,
    columns::{AGE, column, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: PRIORITY_CLASSES,
    singular: "priorityclass",
    short_names: &["pc"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.scheduling.v1.PriorityClass",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Value", "The priority of its Pods.", |object, _| json!(number(object, "/value"))),
        crate::Column {
            column_type: crate::ColumnType::Boolean,
            ..column("Global-Default", "Whether Pods without a class get it.", |object, _| {
                json!(object["globalDefault"] == true)
            })
        },
        AGE,
        column("PreemptionPolicy", "Whether its Pods may push others out.", |object, _| {
            json!(text(object, "/preemptionPolicy"))
        }),
    ],
    policy: &PriorityClass,
};

struct PriorityClass;

/// Higher ones are for what the cluster itself cannot do without.
const USER_VALUE_MAX: i64 = 1_000_000_000;
const SYSTEM: [(&str, i64); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

impl Policy for PriorityClass {
    fn default(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            fill_pointer(object, "preemptionPolicy", "PreemptLowerPriority");
            // Go's type does not leave it out.
            fill(object, "value", 0);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |class| {
            let (name, value) = (class.at("metadata").at("name"), class.at("value"));
            let known = SYSTEM.iter().find(|it| it.0 == name.str());
            if name.str().starts_with("system-") {
                if known.is_none_or(|it| it.1 != value.int()) {
                    let detail = match known {
                        Some((known, wanted)) => format!("value of {known} PriorityClass must be {wanted}"),
                        None => format!("{} is not a known system priority class", name.str()),
                    };
                    name.forbidden(&format!(
                        "priority class names with 'system-' prefix are reserved for system use only. error: {detail}"
                    ));
                }
            } else if value.int() > USER_VALUE_MAX {
                value.forbidden(&format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}"));
            }
            rules::required_one_of(class.at("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |class| {
            if class.at("value").int() != old["value"].as_i64().unwrap_or_default() {
                class.at("value").forbidden("may not be changed in an update.");
            }
            if class.at("preemptionPolicy").value() != &old["preemptionPolicy"] {
                class.at("preemptionPolicy").invalid("field is immutable");
            }
        })
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }

    fn update_rules(&self) -> UpdateRules {
        UpdateRules::Change
    }

    fn counts_changes(&self) -> bool {
        false
    }
}
