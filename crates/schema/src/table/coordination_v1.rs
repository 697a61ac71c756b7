//! The types of `io.k8s.api.coordination.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static LEASE: Type = Type {
    name: "io.k8s.api.coordination.v1.Lease",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::coordination_v1::LEASE_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static LEASE_SPEC: Type = Type {
    name: "io.k8s.api.coordination.v1.LeaseSpec",
    atomic: false,
    fields: &[
        field("acquireTime", MicroTime).at(&[3]),
        field("holderIdentity", String).at(&[1]),
        field("leaseDurationSeconds", Int32).at(&[2]),
        field("leaseTransitions", Int32).at(&[5]),
        field("preferredHolder", String).at(&[7]),
        field("renewTime", MicroTime).at(&[4]),
        field("strategy", String).at(&[6]),
    ],
    wire: &[1, 2, 0, 5, 3, 6, 4],
};
