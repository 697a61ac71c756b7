//! Rules of what may be done in one namespace.

use corten_api::resources::ROLES;

use corten_meta::{Violation, field};
use corten_schema::violations;
use serde_json::Value;

use super::rules;
use crate::{BuiltIn, Policy, Verb, columns::CREATED_AT};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: ROLES,
    singular: "role",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.rbac.v1.Role",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &Role,
};

struct Role;

impl Policy for Role {
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, rules::in_namespace)
    }

    fn has_generation(&self) -> bool {
        false
    }
}
