//! The types of `io.k8s.api.rbac.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static AGGREGATION_RULE: Type = Type {
    name: "io.k8s.api.rbac.v1.AggregationRule",
    atomic: false,
    fields: &[field("clusterRoleSelectors", List(&Object(&super::meta_v1::LABEL_SELECTOR))).at(&[1])],
    wire: &[0],
};

pub(super) static CLUSTER_ROLE: Type = Type {
    name: "io.k8s.api.rbac.v1.ClusterRole",
    atomic: false,
    fields: &[
        field("aggregationRule", Object(&super::rbac_v1::AGGREGATION_RULE)).at(&[3]),
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("rules", List(&Object(&super::rbac_v1::POLICY_RULE))).at(&[2]),
    ],
    wire: &[3, 4, 0],
};

pub(super) static CLUSTER_ROLE_BINDING: Type = Type {
    name: "io.k8s.api.rbac.v1.ClusterRoleBinding",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("roleRef", Object(&super::rbac_v1::ROLE_REF)).zero().required().at(&[3]).always(),
        field("subjects", List(&Object(&super::rbac_v1::SUBJECT))).at(&[2]),
    ],
    wire: &[2, 4, 3],
};

pub(super) static POLICY_RULE: Type = Type {
    name: "io.k8s.api.rbac.v1.PolicyRule",
    atomic: false,
    fields: &[
        field("apiGroups", List(&String)).at(&[2]),
        field("nonResourceURLs", List(&String)).at(&[5]),
        field("resourceNames", List(&String)).at(&[4]),
        field("resources", List(&String)).at(&[3]),
        field("verbs", List(&String)).required().at(&[1]),
    ],
    wire: &[4, 0, 3, 2, 1],
};

pub(super) static ROLE: Type = Type {
    name: "io.k8s.api.rbac.v1.Role",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("rules", List(&Object(&super::rbac_v1::POLICY_RULE))).at(&[2]),
    ],
    wire: &[2, 3],
};

pub(super) static ROLE_BINDING: Type = Type {
    name: "io.k8s.api.rbac.v1.RoleBinding",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("roleRef", Object(&super::rbac_v1::ROLE_REF)).zero().required().at(&[3]).always(),
        field("subjects", List(&Object(&super::rbac_v1::SUBJECT))).at(&[2]),
    ],
    wire: &[2, 4, 3],
};

pub(super) static ROLE_REF: Type = Type {
    name: "io.k8s.api.rbac.v1.RoleRef",
    atomic: true,
    fields: &[
        field("apiGroup", String).zero().at(&[1]).always(),
        field("kind", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[3]).always(),
    ],
    wire: &[0, 1, 2],
};

pub(super) static SUBJECT: Type = Type {
    name: "io.k8s.api.rbac.v1.Subject",
    atomic: true,
    fields: &[
        field("apiGroup", String).omitted().at(&[2]).always(),
        field("kind", String).zero().required().at(&[1]).always(),
        field("name", String).zero().required().at(&[3]).always(),
        field("namespace", String).omitted().at(&[4]).always(),
    ],
    wire: &[1, 0, 2, 3],
};
