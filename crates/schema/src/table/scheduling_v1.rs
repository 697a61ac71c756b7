//! The types of `io.k8s.api.scheduling.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static PRIORITY_CLASS: Type = Type {
    name: "io.k8s.api.scheduling.v1.PriorityClass",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("description", String).omitted().at(&[4]).always(),
        field("globalDefault", Boolean).omitted().at(&[3]).always(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("preemptionPolicy", String).at(&[5]),
        field("value", Int32).zero().at(&[2]).always(),
    ],
    wire: &[4, 6, 2, 1, 5],
};
