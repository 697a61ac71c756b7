//! ValidatingAdmissionPolicyBinding.

use std::collections::BTreeSet;

use corten_api::resources::VALIDATING_ADMISSION_POLICY_BINDINGS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::read::text;
use serde_json::{Value, json};

use super::{binding, params::param_ref};
use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: VALIDATING_ADMISSION_POLICY_BINDINGS,
    singular: "validatingadmissionpolicybinding",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("PolicyName", "The policy it applies.", |object, _| json!(text(object, "/spec/policyName"))),
        column("ParamRef", "Where its parameters are.", |object, _| json!(param_ref(object))),
        AGE,
    ],
    policy: &ValidatingAdmissionPolicyBinding,
};

struct ValidatingAdmissionPolicyBinding;

impl Policy for ValidatingAdmissionPolicyBinding {
    fn default(&self, object: &mut Value) {
        binding::default(object);
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |binding| {
            let spec = binding.at("spec");
            binding::validate(spec);
            actions(spec.at("validationActions"));
        })
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn actions(actions: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for action in actions.each() {
        action.one_of(&["Audit", "Deny", "Warn"]);
        if !seen.insert(action.str()) {
            action.duplicate();
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        actions.invalid("must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
    }
    if seen.is_empty() {
        actions.missing("at least one validation action is required");
    }
}
