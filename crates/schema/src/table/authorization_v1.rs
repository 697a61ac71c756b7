//! The types of `io.k8s.api.authorization.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static FIELD_SELECTOR_ATTRIBUTES: Type = Type {
    name: "io.k8s.api.authorization.v1.FieldSelectorAttributes",
    atomic: false,
    fields: &[
        field("rawSelector", String).omitted().at(&[1]).always(),
        field("requirements", List(&Object(&super::meta_v1::FIELD_SELECTOR_REQUIREMENT))).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static LABEL_SELECTOR_ATTRIBUTES: Type = Type {
    name: "io.k8s.api.authorization.v1.LabelSelectorAttributes",
    atomic: false,
    fields: &[
        field("rawSelector", String).omitted().at(&[1]).always(),
        field("requirements", List(&Object(&super::meta_v1::LABEL_SELECTOR_REQUIREMENT))).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static LOCAL_SUBJECT_ACCESS_REVIEW: Type = Type {
    name: "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::authorization_v1::SUBJECT_ACCESS_REVIEW_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::authorization_v1::SUBJECT_ACCESS_REVIEW_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static NON_RESOURCE_ATTRIBUTES: Type = Type {
    name: "io.k8s.api.authorization.v1.NonResourceAttributes",
    atomic: false,
    fields: &[field("path", String).omitted().at(&[1]).always(), field("verb", String).omitted().at(&[2]).always()],
    wire: &[0, 1],
};

pub(super) static NON_RESOURCE_RULE: Type = Type {
    name: "io.k8s.api.authorization.v1.NonResourceRule",
    atomic: false,
    fields: &[field("nonResourceURLs", List(&String)).at(&[2]), field("verbs", List(&String)).required().at(&[1])],
    wire: &[1, 0],
};

pub(super) static RESOURCE_ATTRIBUTES: Type = Type {
    name: "io.k8s.api.authorization.v1.ResourceAttributes",
    atomic: false,
    fields: &[
        field("fieldSelector", Object(&super::authorization_v1::FIELD_SELECTOR_ATTRIBUTES)).at(&[8]),
        field("group", String).omitted().at(&[3]).always(),
        field("labelSelector", Object(&super::authorization_v1::LABEL_SELECTOR_ATTRIBUTES)).at(&[9]),
        field("name", String).omitted().at(&[7]).always(),
        field("namespace", String).omitted().at(&[1]).always(),
        field("resource", String).omitted().at(&[5]).always(),
        field("subresource", String).omitted().at(&[6]).always(),
        field("verb", String).omitted().at(&[2]).always(),
        field("version", String).omitted().at(&[4]).always(),
    ],
    wire: &[4, 7, 1, 8, 5, 6, 3, 0, 2],
};

pub(super) static RESOURCE_RULE: Type = Type {
    name: "io.k8s.api.authorization.v1.ResourceRule",
    atomic: false,
    fields: &[
        field("apiGroups", List(&String)).at(&[2]),
        field("resourceNames", List(&String)).at(&[4]),
        field("resources", List(&String)).at(&[3]),
        field("verbs", List(&String)).required().at(&[1]),
    ],
    wire: &[3, 0, 2, 1],
};

pub(super) static SELF_SUBJECT_ACCESS_REVIEW: Type = Type {
    name: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::authorization_v1::SELF_SUBJECT_ACCESS_REVIEW_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::authorization_v1::SUBJECT_ACCESS_REVIEW_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Type = Type {
    name: "io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec",
    atomic: false,
    fields: &[
        field("nonResourceAttributes", Object(&super::authorization_v1::NON_RESOURCE_ATTRIBUTES)).at(&[2]),
        field("resourceAttributes", Object(&super::authorization_v1::RESOURCE_ATTRIBUTES)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static SELF_SUBJECT_RULES_REVIEW: Type = Type {
    name: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::authorization_v1::SELF_SUBJECT_RULES_REVIEW_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::authorization_v1::SUBJECT_RULES_REVIEW_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static SELF_SUBJECT_RULES_REVIEW_SPEC: Type = Type {
    name: "io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec",
    atomic: false,
    fields: &[field("namespace", String).omitted().at(&[1]).always()],
    wire: &[0],
};

pub(super) static SUBJECT_ACCESS_REVIEW: Type = Type {
    name: "io.k8s.api.authorization.v1.SubjectAccessReview",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::authorization_v1::SUBJECT_ACCESS_REVIEW_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::authorization_v1::SUBJECT_ACCESS_REVIEW_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static SUBJECT_ACCESS_REVIEW_SPEC: Type = Type {
    name: "io.k8s.api.authorization.v1.SubjectAccessReviewSpec",
    atomic: false,
    fields: &[
        field("extra", Map(&List(&String))).at(&[5]),
        field("groups", List(&String)).at(&[4]),
        field("nonResourceAttributes", Object(&super::authorization_v1::NON_RESOURCE_ATTRIBUTES)).at(&[2]),
        field("resourceAttributes", Object(&super::authorization_v1::RESOURCE_ATTRIBUTES)).at(&[1]),
        field("uid", String).omitted().at(&[6]).always(),
        field("user", String).omitted().at(&[3]).always(),
    ],
    wire: &[3, 2, 5, 1, 0, 4],
};

pub(super) static SUBJECT_ACCESS_REVIEW_STATUS: Type = Type {
    name: "io.k8s.api.authorization.v1.SubjectAccessReviewStatus",
    atomic: false,
    fields: &[
        field("allowed", Boolean).zero().required().at(&[1]).always(),
        field("denied", Boolean).omitted().at(&[4]).always(),
        field("evaluationError", String).omitted().at(&[3]).always(),
        field("reason", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 3, 2, 1],
};

pub(super) static SUBJECT_RULES_REVIEW_STATUS: Type = Type {
    name: "io.k8s.api.authorization.v1.SubjectRulesReviewStatus",
    atomic: false,
    fields: &[
        field("evaluationError", String).omitted().at(&[4]).always(),
        field("incomplete", Boolean).zero().required().at(&[3]).always(),
        field("nonResourceRules", List(&Object(&super::authorization_v1::NON_RESOURCE_RULE))).required().at(&[2]),
        field("resourceRules", List(&Object(&super::authorization_v1::RESOURCE_RULE))).required().at(&[1]),
    ],
    wire: &[3, 2, 1, 0],
};
