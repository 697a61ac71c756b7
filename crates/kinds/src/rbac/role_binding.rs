//! Gives a role to subjects in one namespace.

use corten_api::resources::ROLE_BINDINGS;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::fill::means_the_same;
use serde_json::Value;

use super::subjects;
use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: ROLE_BINDINGS,
    singular: "rolebinding",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.rbac.v1.RoleBinding",
    view_of: None,
    selectable_fields: &[],
    columns: &[subjects::ROLE, AGE, subjects::USERS, subjects::GROUPS, subjects::SERVICE_ACCOUNTS],
    policy: &RoleBinding,
};

struct RoleBinding;

impl Policy for RoleBinding {
    fn default(&self, object: &mut Value) {
        subjects::default(object);
    }

    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |binding| subjects::validate(binding, &["Role", "ClusterRole"]))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |binding| {
            if !means_the_same(binding.at("roleRef").value(), &old["roleRef"]) {
                binding.at("roleRef").invalid("cannot change roleRef");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}
