//! Gives a ClusterRole to subjects, everywhere.

use corten_api::resources::CLUSTER_ROLE_BINDINGS;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::fill::means_the_same;
use serde_json::Value;

use super::subjects;
use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CLUSTER_ROLE_BINDINGS,
    singular: "clusterrolebinding",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.rbac.v1.ClusterRoleBinding",
    view_of: None,
    selectable_fields: &[],
    columns: &[subjects::ROLE, AGE, subjects::USERS, subjects::GROUPS, subjects::SERVICE_ACCOUNTS],
    policy: &ClusterRoleBinding,
};

struct ClusterRoleBinding;

impl Policy for ClusterRoleBinding {
    fn default(&self, object: &mut Value) {
        subjects::default(object);
    }

    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |binding| subjects::validate(binding, &["ClusterRole"]))
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
