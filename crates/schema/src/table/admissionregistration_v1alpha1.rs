//! The types of `io.k8s.api.admissionregistration.v1alpha1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static APPLY_CONFIGURATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.ApplyConfiguration",
    atomic: false,
    fields: &[field("expression", String).omitted().at(&[1]).always()],
    wire: &[0],
};

pub(super) static JSON_PATCH: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.JSONPatch",
    atomic: false,
    fields: &[field("expression", String).omitted().at(&[1]).always()],
    wire: &[0],
};

pub(super) static MATCH_CONDITION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.MatchCondition",
    atomic: false,
    fields: &[
        field("expression", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static MATCH_RESOURCES: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.MatchResources",
    atomic: true,
    fields: &[
        field(
            "excludeResourceRules",
            List(&Object(&super::admissionregistration_v1alpha1::NAMED_RULE_WITH_OPERATIONS)),
        )
        .at(&[4]),
        field("matchPolicy", String).at(&[7]),
        field("namespaceSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[1]),
        field("objectSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[2]),
        field("resourceRules", List(&Object(&super::admissionregistration_v1alpha1::NAMED_RULE_WITH_OPERATIONS)))
            .at(&[3]),
    ],
    wire: &[2, 3, 4, 0, 1],
};

pub(super) static MUTATING_ADMISSION_POLICY: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicy",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::admissionregistration_v1alpha1::MUTATING_ADMISSION_POLICY_SPEC))
            .zero()
            .at(&[2])
            .always(),
    ],
    wire: &[2, 3],
};

pub(super) static MUTATING_ADMISSION_POLICY_BINDING: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicyBinding",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::admissionregistration_v1alpha1::MUTATING_ADMISSION_POLICY_BINDING_SPEC))
            .zero()
            .at(&[2])
            .always(),
    ],
    wire: &[2, 3],
};

pub(super) static MUTATING_ADMISSION_POLICY_BINDING_SPEC: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicyBindingSpec",
    atomic: false,
    fields: &[
        field("matchResources", Object(&super::admissionregistration_v1alpha1::MATCH_RESOURCES)).at(&[3]),
        field("paramRef", Object(&super::admissionregistration_v1alpha1::PARAM_REF)).at(&[2]),
        field("policyName", String).at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static MUTATING_ADMISSION_POLICY_SPEC: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicySpec",
    atomic: false,
    fields: &[
        field("failurePolicy", String).at(&[5]),
        field("matchConditions", List(&Object(&super::admissionregistration_v1alpha1::MATCH_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[6]),
        field("matchConstraints", Object(&super::admissionregistration_v1alpha1::MATCH_RESOURCES)).at(&[2]),
        field("mutations", List(&Object(&super::admissionregistration_v1alpha1::MUTATION))).at(&[4]),
        field("paramKind", Object(&super::admissionregistration_v1alpha1::PARAM_KIND)).at(&[1]),
        field("reinvocationPolicy", String).at(&[7]).always(),
        field("variables", List(&Object(&super::admissionregistration_v1alpha1::VARIABLE))).at(&[3]),
    ],
    wire: &[4, 2, 6, 3, 0, 1, 5],
};

pub(super) static MUTATION: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.Mutation",
    atomic: false,
    fields: &[
        field("applyConfiguration", Object(&super::admissionregistration_v1alpha1::APPLY_CONFIGURATION)).at(&[3]),
        field("jsonPatch", Object(&super::admissionregistration_v1alpha1::JSON_PATCH)).at(&[4]),
        field("patchType", String).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static NAMED_RULE_WITH_OPERATIONS: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.NamedRuleWithOperations",
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
    name: "io.k8s.api.admissionregistration.v1alpha1.ParamKind",
    atomic: true,
    fields: &[
        field("apiVersion", String).omitted().at(&[1]).always(),
        field("kind", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static PARAM_REF: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.ParamRef",
    atomic: true,
    fields: &[
        field("name", String).omitted().at(&[1]).always(),
        field("namespace", String).omitted().at(&[2]).always(),
        field("parameterNotFoundAction", String).at(&[4]),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[3]),
    ],
    wire: &[0, 1, 3, 2],
};

pub(super) static VARIABLE: Type = Type {
    name: "io.k8s.api.admissionregistration.v1alpha1.Variable",
    atomic: false,
    fields: &[
        field("expression", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};
