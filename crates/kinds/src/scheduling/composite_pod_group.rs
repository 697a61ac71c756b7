//! Groups of Pods that are scheduled together. Stored; the scheduler places Pods one by one.

use corten_api::resources::COMPOSITE_POD_GROUPS;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::rules;
use serde_json::Value;

use super::group;
use crate::{BuiltIn, Policy, Subresource, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: COMPOSITE_POD_GROUPS,
    singular: "compositepodgroup",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.scheduling.v1alpha3.CompositePodGroup",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &CompositePodGroup,
};

struct CompositePodGroup;

impl Policy for CompositePodGroup {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |it| {
            group::origin(it.at("spec"));
            group::validate(it.at("spec"), "minGroupCount");
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |it| rules::immutable(it.at("spec"), &old["spec"]))
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |it| rules::conditions(it.at("status").at("conditions")))
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}
