//! A kind of storage that claims may ask for, and who makes it.

use std::collections::BTreeSet;

use corten_api::resources::STORAGE_CLASSES;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, Ordered, violations};
use corten_validation::{fill::fill_pointer, read::text, rules, warnings};
use serde_json::{Value, json};

use super::parameters;
use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: STORAGE_CLASSES,
    singular: "storageclass",
    short_names: &["sc"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.storage.v1.StorageClass",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Name", "Its name, and whether it is the default.", |object, _| json!(name(object))),
        column("Provisioner", "Who makes its volumes.", |object, _| json!(text(object, "/provisioner"))),
        column("ReclaimPolicy", "What becomes of a volume when its claim is gone.", |object, _| {
            json!(object["reclaimPolicy"].as_str().unwrap_or("Delete"))
        }),
        column("VolumeBindingMode", "When a volume is made.", |object, _| {
            json!(object["volumeBindingMode"].as_str().unwrap_or("Immediate"))
        }),
        column("AllowVolumeExpansion", "May its volumes grow?", |object, _| {
            json!(object["allowVolumeExpansion"].as_bool().unwrap_or_default())
        }),
        AGE,
    ],
    policy: &StorageClass,
};

struct StorageClass;

fn name(class: &Value) -> String {
    let is_default =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|it| class["metadata"]["annotations"][*it] == "true");
    format!("{}{}", text(class, "/metadata/name"), if is_default { " (default)" } else { "" })
}

impl Policy for StorageClass {
    fn default(&self, object: &mut Value) {
        let Some(class) = object.as_object_mut() else { return };
        fill_pointer(class, "reclaimPolicy", "Delete");
        fill_pointer(class, "volumeBindingMode", "Immediate");
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |class| {
            parameters::provisioner(class.at("provisioner"));
            parameters::validate(class.at("parameters"));
            if !class.at("reclaimPolicy").is_empty() {
                class.at("reclaimPolicy").one_of(&["Delete", "Retain"]);
            }
            class.at("volumeBindingMode").one_of(&["Immediate", "WaitForFirstConsumer"]);
            topologies(class.at("allowedTopologies"));
        })
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::storage_class(new)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |class| {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                rules::immutable(class.at(field), &old[field]);
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}

fn topologies(terms: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for term in terms.each() {
        let is_blank = term.at("matchLabelExpressions").is_empty();
        if is_blank || !seen.insert(Ordered(term.value())) {
            // Upstream finds a term without expressions equal to the zero value that its set begins with.
            let path = term.at("matchLabelExpressions").path();
            term.report(Violation::duplicate(path, json!("")));
        }
        let mut keys = BTreeSet::new();
        for requirement in term.list("matchLabelExpressions") {
            let (key, values) = (requirement.at("key"), requirement.at("values"));
            if !keys.insert(key.str()) {
                key.duplicate();
            }
            if values.is_empty() {
                values.missing("");
            }
            rules::unique(values, |it| it);
            key.follows(field::qualified_name);
        }
    }
}
