//! MutatingAdmissionPolicyBinding.

use corten_api::resources::{
    MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICY_BINDINGS_V1ALPHA1,
    MUTATING_ADMISSION_POLICY_BINDINGS_V1BETA1,
};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::read::text;
use serde_json::{Value, json};

use super::{binding, params::param_ref};
use crate::{
    BuiltIn, Policy, Verb, ViewOf,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: MUTATING_ADMISSION_POLICY_BINDINGS,
    singular: "mutatingadmissionpolicybinding",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("PolicyName", "The policy it applies.", |object, _| json!(text(object, "/spec/policyName"))),
        column("ParamRef", "Where its parameters are.", |object, _| json!(param_ref(object))),
        AGE,
    ],
    policy: &MutatingAdmissionPolicyBinding,
};

pub(crate) const V1ALPHA1: BuiltIn = BuiltIn::view(
    MUTATING_ADMISSION_POLICY_BINDINGS_V1ALPHA1,
    "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicyBinding",
    ViewOf::same(MUTATING_ADMISSION_POLICY_BINDINGS),
    KIND,
);

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    MUTATING_ADMISSION_POLICY_BINDINGS_V1BETA1,
    "io.k8s.api.admissionregistration.v1beta1.MutatingAdmissionPolicyBinding",
    ViewOf::same(MUTATING_ADMISSION_POLICY_BINDINGS),
    KIND,
);

struct MutatingAdmissionPolicyBinding;

impl Policy for MutatingAdmissionPolicyBinding {
    fn default(&self, object: &mut Value) {
        binding::default(object);
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |it| binding::validate(it.at("spec")))
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
