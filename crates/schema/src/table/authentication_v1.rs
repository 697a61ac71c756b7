//! The types of `io.k8s.api.authentication.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static BOUND_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.authentication.v1.BoundObjectReference",
    atomic: false,
    fields: &[
        field("apiVersion", String).at(&[2]).always(),
        field("kind", String).at(&[1]).always(),
        field("name", String).omitted().at(&[3]).always(),
        field("uid", String).omitted().at(&[4]).always(),
    ],
    wire: &[1, 0, 2, 3],
};

pub(super) static SELF_SUBJECT_REVIEW: Type = Type {
    name: "io.k8s.api.authentication.v1.SelfSubjectReview",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("status", Object(&super::authentication_v1::SELF_SUBJECT_REVIEW_STATUS)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static SELF_SUBJECT_REVIEW_STATUS: Type = Type {
    name: "io.k8s.api.authentication.v1.SelfSubjectReviewStatus",
    atomic: false,
    fields: &[field("userInfo", Object(&super::authentication_v1::USER_INFO)).zero().at(&[1]).always()],
    wire: &[0],
};

pub(super) static TOKEN_REQUEST: Type = Type {
    name: "io.k8s.api.authentication.v1.TokenRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::authentication_v1::TOKEN_REQUEST_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::authentication_v1::TOKEN_REQUEST_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static TOKEN_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.authentication.v1.TokenRequestSpec",
    atomic: false,
    fields: &[
        field("attestations", Map(&List(&String))).at(&[5]),
        field("audiences", List(&String)).at(&[1]),
        field("boundObjectRef", Object(&super::authentication_v1::BOUND_OBJECT_REFERENCE)).at(&[3]),
        field("expirationSeconds", Int64).at(&[4]),
    ],
    wire: &[1, 2, 3, 0],
};

pub(super) static TOKEN_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.authentication.v1.TokenRequestStatus",
    atomic: false,
    fields: &[field("expirationTimestamp", Time).at(&[2]).always(), field("token", String).zero().at(&[1]).always()],
    wire: &[1, 0],
};

pub(super) static TOKEN_REVIEW: Type = Type {
    name: "io.k8s.api.authentication.v1.TokenReview",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::authentication_v1::TOKEN_REVIEW_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::authentication_v1::TOKEN_REVIEW_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static TOKEN_REVIEW_SPEC: Type = Type {
    name: "io.k8s.api.authentication.v1.TokenReviewSpec",
    atomic: false,
    fields: &[field("audiences", List(&String)).at(&[2]), field("token", String).required().at(&[1]).always()],
    wire: &[1, 0],
};

pub(super) static TOKEN_REVIEW_STATUS: Type = Type {
    name: "io.k8s.api.authentication.v1.TokenReviewStatus",
    atomic: false,
    fields: &[
        field("audiences", List(&String)).at(&[4]),
        field("authenticated", Boolean).omitted().at(&[1]).always(),
        field("error", String).omitted().at(&[3]).always(),
        field("user", Object(&super::authentication_v1::USER_INFO)).zero().at(&[2]).always(),
    ],
    wire: &[1, 3, 2, 0],
};

pub(super) static USER_INFO: Type = Type {
    name: "io.k8s.api.authentication.v1.UserInfo",
    atomic: false,
    fields: &[
        field("extra", Map(&List(&String))).at(&[4]),
        field("groups", List(&String)).at(&[3]),
        field("uid", String).omitted().at(&[2]).always(),
        field("username", String).omitted().at(&[1]).always(),
    ],
    wire: &[3, 2, 1, 0],
};
