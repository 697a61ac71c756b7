//! ValidatingAdmissionPolicy.

use corten_api::resources::VALIDATING_ADMISSION_POLICIES;
use corten_cel::Type;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{read::items, rules};
use serde_json::{Value, json};

use super::{expressions::Checker, matching, params, params::param_kind, variables};
use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: VALIDATING_ADMISSION_POLICIES,
    singular: "validatingadmissionpolicy",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Validations", "How many validations it has.", |object, _| {
            json!(items(object, "/spec/validations").len())
        }),
        column("ParamKind", "The kind of its parameters.", |object, _| json!(param_kind(object))),
        AGE,
    ],
    policy: &ValidatingAdmissionPolicy,
};

struct ValidatingAdmissionPolicy;

const ANNOTATIONS_MAX: usize = 20;
const VALUE_EXPRESSION_BYTES_MAX: usize = 5 * 1024;

impl Policy for ValidatingAdmissionPolicy {
    fn default(&self, object: &mut Value) {
        matching::default_policy(object);
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |policy| {
            let spec = policy.at("spec");
            matched(spec);
            let mut checker = Checker::of_policy(spec, false);
            variables::validate(spec.at("variables"), &mut checker);
            let (validations, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
            if validations.is_empty() && annotations.is_empty() {
                for list in [validations, annotations] {
                    list.missing("validations or auditAnnotations must contain at least one item");
                }
                return;
            }
            validations.each().for_each(|it| validation(it, &checker));
            audit_annotations(annotations, policy.at("metadata").at("name").str(), &checker);
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |policy| {
            let status = policy.at("status");
            for warning in status.at("typeChecking").list("expressionWarnings") {
                warning.at("warning").required();
                warning.at("fieldRef").required();
            }
            rules::conditions(status.at("conditions"));
        })
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

/// What policies that check and policies that change say alike: which requests they are about.
pub(super) fn matched(spec: Cursor<'_>) {
    let failure = spec.at("failurePolicy");
    failure.one_of(&["Fail", "Ignore"]);
    if spec.at("paramKind").exists() {
        params::kind(spec.at("paramKind"));
    }
    let constraints = spec.at("matchConstraints");
    if constraints.exists() {
        matching::resources(constraints);
        constraints.at("resourceRules").required();
    } else {
        constraints.missing("");
    }
    matching::conditions(spec.at("matchConditions"), spec.at("paramKind").exists());
}

fn validation(validation: Cursor<'_>, checker: &Checker) {
    let expression = validation.at("expression");
    if expression.str().trim().is_empty() {
        expression.missing("expression is not specified");
    } else {
        checker.expression(expression, &[Type::Bool]);
    }
    let (message_expression, message) = (validation.at("messageExpression"), validation.at("message"));
    if !message_expression.is_empty() && message_expression.str().trim().is_empty() {
        message_expression.invalid("must be non-empty if specified");
    } else if !message_expression.is_empty() {
        checker.message(message_expression);
    }
    let trimmed = message.str().trim();
    if !message.is_empty() && trimmed.is_empty() {
        message.invalid("message must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        message.invalid("message must not contain line breaks");
    }
    if validation.at("reason").exists() {
        validation.at("reason").one_of(&["Forbidden", "Invalid", "RequestEntityTooLarge"]);
    }
}

fn audit_annotations(annotations: Cursor<'_>, policy: &str, checker: &Checker) {
    if annotations.items().len() > ANNOTATIONS_MAX {
        annotations.invalid(&format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations"));
    }
    let mut keys = std::collections::BTreeSet::new();
    for annotation in annotations.each() {
        let (key, value) = (annotation.at("key"), annotation.at("valueExpression"));
        if policy.is_empty() {
            key.invalid("requires metadata.name be non-empty");
        } else {
            let name = format!("{policy}/{}", key.str());
            corten_meta::field::qualified_name(&name).iter().for_each(|it| key.invalid_as(&name, it));
        }
        if value.str().trim().is_empty() {
            value.missing("valueExpression is not specified");
        } else if value.str().trim().len() > VALUE_EXPRESSION_BYTES_MAX {
            value.missing(&format!("must not exceed {VALUE_EXPRESSION_BYTES_MAX} bytes in length"));
        } else {
            checker.expression(value, &[Type::String, Type::Null]);
        }
        if !keys.insert(key.str()) {
            key.duplicate();
        }
    }
}
