//! The types of `io.k8s.api.admissionregistration.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static APPLY_CONFIGURATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ApplyConfiguration",
    atomic: false,
    fields: &[field("expression", String).omitted().at(&[1]).always()],
    wire: &[0],
};

pub(super) static AUDIT_ANNOTATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.AuditAnnotation",
    atomic: false,
    fields: &[
        field("key", String).zero().required().at(&[1]).always(),
        field("valueExpression", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EXPRESSION_WARNING: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ExpressionWarning",
    atomic: false,
    fields: &[
        field("fieldRef", String).zero().required().at(&[2]).always(),
        field("warning", String).zero().required().at(&[3]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static JSON_PATCH: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.JSONPatch",
    atomic: false,
    fields: &[field("expression", String).omitted().at(&[1]).always()],
    wire: &[0],
};

pub(super) static MATCH_CONDITION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MatchCondition",
    atomic: false,
    fields: &[
        field("expression", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static MATCH_RESOURCES: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MatchResources",
    atomic: true,
    fields: &[
        field("excludeResourceRules", List(&Object(&super::admissionregistration_v1::NAMED_RULE_WITH_OPERATIONS)))
            .at(&[4]),
        field("matchPolicy", String).at(&[7]),
        field("namespaceSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[1]),
        field("objectSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[2]),
        field("resourceRules", List(&Object(&super::admissionregistration_v1::NAMED_RULE_WITH_OPERATIONS))).at(&[3]),
    ],
    wire: &[2, 3, 4, 0, 1],
};

pub(super) static MUTATING_ADMISSION_POLICY: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::admissionregistration_v1::MUTATING_ADMISSION_POLICY_SPEC))
            .zero()
            .at(&[2])
            .always(),
    ],
    wire: &[2, 3],
};

pub(super) static MUTATING_ADMISSION_POLICY_BINDING: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::admissionregistration_v1::MUTATING_ADMISSION_POLICY_BINDING_SPEC))
            .zero()
            .at(&[2])
            .always(),
    ],
    wire: &[2, 3],
};

pub(super) static MUTATING_ADMISSION_POLICY_BINDING_SPEC: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBindingSpec",
    atomic: false,
    fields: &[
        field("matchResources", Object(&super::admissionregistration_v1::MATCH_RESOURCES)).at(&[3]),
        field("paramRef", Object(&super::admissionregistration_v1::PARAM_REF)).at(&[2]),
        field("policyName", String).at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static MUTATING_ADMISSION_POLICY_SPEC: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicySpec",
    atomic: false,
    fields: &[
        field("failurePolicy", String).at(&[5]),
        field("matchConditions", List(&Object(&super::admissionregistration_v1::MATCH_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[6]),
        field("matchConstraints", Object(&super::admissionregistration_v1::MATCH_RESOURCES)).at(&[2]),
        field("mutations", List(&Object(&super::admissionregistration_v1::MUTATION))).at(&[4]),
        field("paramKind", Object(&super::admissionregistration_v1::PARAM_KIND)).at(&[1]),
        field("reinvocationPolicy", String).at(&[7]).always(),
        field("variables", List(&Object(&super::admissionregistration_v1::VARIABLE))).at(&[3]),
    ],
    wire: &[4, 2, 6, 3, 0, 1, 5],
};

pub(super) static MUTATING_WEBHOOK: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MutatingWebhook",
    atomic: false,
    fields: &[
        field("admissionReviewVersions", List(&String)).required().at(&[8]),
        field("clientConfig", Object(&super::admissionregistration_v1::WEBHOOK_CLIENT_CONFIG))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("failurePolicy", String).at(&[4]),
        field("matchConditions", List(&Object(&super::admissionregistration_v1::MATCH_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[12]),
        field("matchPolicy", String).at(&[9]),
        field("name", String).zero().required().at(&[1]).always(),
        field("namespaceSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[5]),
        field("objectSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[11]),
        field("reinvocationPolicy", String).at(&[10]),
        field("rules", List(&Object(&super::admissionregistration_v1::RULE_WITH_OPERATIONS))).at(&[3]),
        field("sideEffects", String).required().at(&[6]),
        field("timeoutSeconds", Int32).at(&[7]),
    ],
    wire: &[5, 1, 9, 2, 6, 10, 11, 0, 4, 8, 7, 3],
};

pub(super) static MUTATING_WEBHOOK_CONFIGURATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("webhooks", List(&Object(&super::admissionregistration_v1::MUTATING_WEBHOOK)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[2]),
    ],
    wire: &[2, 3],
};

pub(super) static MUTATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.Mutation",
    atomic: false,
    fields: &[
        field("applyConfiguration", Object(&super::admissionregistration_v1::APPLY_CONFIGURATION)).at(&[3]),
        field("jsonPatch", Object(&super::admissionregistration_v1::JSON_PATCH)).at(&[4]),
        field("patchType", String).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static NAMED_RULE_WITH_OPERATIONS: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations",
    atomic: true,
    fields: &[
        field("apiGroups", List(&String)).at(&[2, 2, 1]),
        field("apiVersions", List(&String)).at(&[2, 2, 2]),
        field("operations", List(&String)).at(&[2, 1]),
        field("resourceNames", List(&String)).at(&[1]),
        field("resources", List(&String)).at(&[2, 2, 3]),
        field("scope", String).at(&[2, 2, 4]),
    ],
    wire: &[3, 2, 0, 1, 4, 5],
};

pub(super) static PARAM_KIND: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ParamKind",
    atomic: true,
    fields: &[
        field("apiVersion", String).omitted().at(&[1]).always(),
        field("kind", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static PARAM_REF: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ParamRef",
    atomic: true,
    fields: &[
        field("name", String).omitted().at(&[1]).always(),
        field("namespace", String).omitted().at(&[2]).always(),
        field("parameterNotFoundAction", String).at(&[4]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[3]),
    ],
    wire: &[0, 1, 3, 2],
};

pub(super) static RULE_WITH_OPERATIONS: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.RuleWithOperations",
    atomic: false,
    fields: &[
        field("apiGroups", List(&String)).at(&[2, 1]),
        field("apiVersions", List(&String)).at(&[2, 2]),
        field("operations", List(&String)).at(&[1]),
        field("resources", List(&String)).at(&[2, 3]),
        field("scope", String).at(&[2, 4]),
    ],
    wire: &[2, 0, 1, 3, 4],
};

pub(super) static SERVICE_REFERENCE: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ServiceReference",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[2]).always(),
        field("namespace", String).zero().required().at(&[1]).always(),
        field("path", String).at(&[3]),
        field("port", Int32).at(&[4]),
    ],
    wire: &[1, 0, 2, 3],
};

pub(super) static TYPE_CHECKING: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.TypeChecking",
    atomic: false,
    fields: &[field("expressionWarnings", List(&Object(&super::admissionregistration_v1::EXPRESSION_WARNING))).at(&[1])],
    wire: &[0],
};

pub(super) static VALIDATING_ADMISSION_POLICY: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::admissionregistration_v1::VALIDATING_ADMISSION_POLICY_SPEC))
            .zero()
            .at(&[2])
            .always(),
        field("status", Object(&super::admissionregistration_v1::VALIDATING_ADMISSION_POLICY_STATUS))
            .zero()
            .at(&[3])
            .always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static VALIDATING_ADMISSION_POLICY_BINDING: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::admissionregistration_v1::VALIDATING_ADMISSION_POLICY_BINDING_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
    ],
    wire: &[2, 3],
};

pub(super) static VALIDATING_ADMISSION_POLICY_BINDING_SPEC: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
    atomic: false,
    fields: &[
        field("matchResources", Object(&super::admissionregistration_v1::MATCH_RESOURCES)).at(&[3]),
        field("paramRef", Object(&super::admissionregistration_v1::PARAM_REF)).at(&[2]),
        field("policyName", String).required().at(&[1]).always(),
        field("validationActions", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[4]),
    ],
    wire: &[2, 1, 0, 3],
};

pub(super) static VALIDATING_ADMISSION_POLICY_SPEC: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec",
    atomic: false,
    fields: &[
        field("auditAnnotations", List(&Object(&super::admissionregistration_v1::AUDIT_ANNOTATION))).at(&[5]),
        field("failurePolicy", String).at(&[4]),
        field("matchConditions", List(&Object(&super::admissionregistration_v1::MATCH_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[6]),
        field("matchConstraints", Object(&super::admissionregistration_v1::MATCH_RESOURCES)).at(&[2]),
        field("paramKind", Object(&super::admissionregistration_v1::PARAM_KIND)).at(&[1]),
        field("validations", List(&Object(&super::admissionregistration_v1::VALIDATION))).at(&[3]),
        field("variables", List(&Object(&super::admissionregistration_v1::VARIABLE)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[7]),
    ],
    wire: &[4, 3, 5, 1, 0, 2, 6],
};

pub(super) static VALIDATING_ADMISSION_POLICY_STATUS: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: Replace, retain_keys: false })
            .at(&[3]),
        field("observedGeneration", Int64).omitted().at(&[1]).always(),
        field("typeChecking", Object(&super::admissionregistration_v1::TYPE_CHECKING)).at(&[2]),
    ],
    wire: &[1, 2, 0],
};

pub(super) static VALIDATING_WEBHOOK: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingWebhook",
    atomic: false,
    fields: &[
        field("admissionReviewVersions", List(&String)).required().at(&[8]),
        field("clientConfig", Object(&super::admissionregistration_v1::WEBHOOK_CLIENT_CONFIG))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("failurePolicy", String).at(&[4]),
        field("matchConditions", List(&Object(&super::admissionregistration_v1::MATCH_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[11]),
        field("matchPolicy", String).at(&[9]),
        field("name", String).zero().required().at(&[1]).always(),
        field("namespaceSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[5]),
        field("objectSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[10]),
        field("rules", List(&Object(&super::admissionregistration_v1::RULE_WITH_OPERATIONS))).at(&[3]),
        field("sideEffects", String).required().at(&[6]),
        field("timeoutSeconds", Int32).at(&[7]),
    ],
    wire: &[5, 1, 8, 2, 6, 9, 10, 0, 4, 7, 3],
};

pub(super) static VALIDATING_WEBHOOK_CONFIGURATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("webhooks", List(&Object(&super::admissionregistration_v1::VALIDATING_WEBHOOK)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[2]),
    ],
    wire: &[2, 3],
};

pub(super) static VALIDATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.Validation",
    atomic: false,
    fields: &[
        field("expression", String).zero().required().at(&[1]).always(),
        field("message", String).omitted().at(&[2]).always(),
        field("messageExpression", String).omitted().at(&[4]).always(),
        field("reason", String).at(&[3]),
    ],
    wire: &[0, 1, 3, 2],
};

pub(super) static VARIABLE: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.Variable",
    atomic: true,
    fields: &[
        field("expression", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static WEBHOOK_CLIENT_CONFIG: Type = Type {
    name: "io.k8s.api.admissionregistration.v1.WebhookClientConfig",
    atomic: false,
    fields: &[
        field("caBundle", Bytes).omitted().at(&[2]),
        field("service", Object(&super::admissionregistration_v1::SERVICE_REFERENCE)).at(&[1]),
        field("url", String).at(&[3]),
    ],
    wire: &[1, 0, 2],
};
