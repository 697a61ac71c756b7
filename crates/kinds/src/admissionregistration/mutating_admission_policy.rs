//! MutatingAdmissionPolicy.

use corten_api::resources::{
    MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICIES_V1ALPHA1, MUTATING_ADMISSION_POLICIES_V1BETA1,
};
use corten_cel::Type;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::read::items;
use serde_json::{Value, json};

use super::{expressions::Checker, matching, params::param_kind, validating_admission_policy::matched, variables};
use crate::{
    BuiltIn, Policy, Verb, ViewOf,
    columns::{AGE, column, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: MUTATING_ADMISSION_POLICIES,
    singular: "mutatingadmissionpolicy",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Mutations", "How many mutations it has.", |object, _| json!(items(object, "/spec/mutations").len())),
        column("ParamKind", "The kind of its parameters.", |object, _| json!(param_kind(object))),
        AGE,
    ],
    policy: &MutatingAdmissionPolicy,
};

pub(crate) const V1ALPHA1: BuiltIn = BuiltIn::view(
    MUTATING_ADMISSION_POLICIES_V1ALPHA1,
    "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicy",
    ViewOf::same(MUTATING_ADMISSION_POLICIES),
    KIND,
);

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    MUTATING_ADMISSION_POLICIES_V1BETA1,
    "io.k8s.api.admissionregistration.v1beta1.MutatingAdmissionPolicy",
    ViewOf::same(MUTATING_ADMISSION_POLICIES),
    KIND,
);

struct MutatingAdmissionPolicy;

impl Policy for MutatingAdmissionPolicy {
    fn default(&self, object: &mut Value) {
        matching::default_policy(object);
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |policy| {
            let spec = policy.at("spec");
            matched(spec);
            let mut checker = Checker::of_policy(spec, true);
            variables::validate(spec.at("variables"), &mut checker);
            let mutations = spec.at("mutations");
            if mutations.is_empty() {
                mutations.missing("mutations must contain at least one item");
            }
            mutations.each().for_each(|it| mutation(it, &checker));
            let reinvocation = spec.at("reinvocationPolicy");
            if reinvocation.required() {
                reinvocation.one_of(&["IfNeeded", "Never"]);
            }
        })
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn mutation(mutation: Cursor<'_>, checker: &Checker) {
    let kind = mutation.at("patchType");
    let fields = [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")];
    if !kind.required() || !kind.one_of(&fields.map(|it| it.0)) {
        return;
    }
    for (name, field) in fields {
        let patch = mutation.at(field);
        if name != kind.str() && patch.exists() {
            patch.invalid_as(
                &format!("{{{field}}}"),
                &format!("must not be specified when patchType is {}", kind.str()),
            );
        } else if name == kind.str() && !patch.exists() {
            patch.missing(&format!("must be specified when patchType is {name}"));
        } else if name == kind.str() && patch.at("expression").str().trim().is_empty() {
            patch.at("expression").missing("expression is not specified");
        } else if name == kind.str() {
            let returns = if name == "JSONPatch" { patches() } else { Type::Open("Object".into()) };
            checker.expression(patch.at("expression"), &[returns]);
        }
    }
}

/// What a JSON patch is made of.
fn patches() -> Type {
    Type::list(Type::Open("JSONPatch".into()))
}
