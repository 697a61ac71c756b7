//! Rules of what may be done, in all namespaces or outside of any.

use corten_api::resources::CLUSTER_ROLES;

use corten_meta::{Violation, field};
use corten_schema::violations;
use serde_json::Value;

use super::rules;
use crate::{BuiltIn, Policy, Verb, columns::CREATED_AT};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CLUSTER_ROLES,
    singular: "clusterrole",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.rbac.v1.ClusterRole",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &ClusterRole,
};

struct ClusterRole;

impl Policy for ClusterRole {
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, rules::in_cluster)
    }

    fn has_generation(&self) -> bool {
        false
    }
}
