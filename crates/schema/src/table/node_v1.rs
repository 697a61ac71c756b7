//! The types of `io.k8s.api.node.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static OVERHEAD: Type = Type {
    name: "io.k8s.api.node.v1.Overhead",
    atomic: false,
    fields: &[field("podFixed", Map(&Quantity)).at(&[1])],
    wire: &[0],
};

pub(super) static RUNTIME_CLASS: Type = Type {
    name: "io.k8s.api.node.v1.RuntimeClass",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("handler", String).zero().required().at(&[2]).always(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("overhead", Object(&super::node_v1::OVERHEAD)).at(&[3]),
        field("scheduling", Object(&super::node_v1::SCHEDULING)).at(&[4]),
    ],
    wire: &[3, 1, 4, 5],
};

pub(super) static SCHEDULING: Type = Type {
    name: "io.k8s.api.node.v1.Scheduling",
    atomic: false,
    fields: &[
        field("nodeSelector", Map(&String))
            .merged(&Merge { apply: Atomic, patch: Patch::Deep, retain_keys: false })
            .at(&[1]),
        field("tolerations", List(&Object(&super::core_v1::TOLERATION))).at(&[2]),
    ],
    wire: &[0, 1],
};
