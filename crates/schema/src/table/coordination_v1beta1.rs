//! The types of `io.k8s.api.coordination.v1beta1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static LEASE_CANDIDATE: Type = Type {
    name: "io.k8s.api.coordination.v1beta1.LeaseCandidate",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::coordination_v1beta1::LEASE_CANDIDATE_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static LEASE_CANDIDATE_SPEC: Type = Type {
    name: "io.k8s.api.coordination.v1beta1.LeaseCandidateSpec",
    atomic: false,
    fields: &[
        field("binaryVersion", String).zero().required().at(&[4]).always(),
        field("emulationVersion", String).at(&[5]).always(),
        field("leaseName", String).zero().required().at(&[1]).always(),
        field("pingTime", MicroTime).at(&[2]),
        field("renewTime", MicroTime).at(&[3]),
        field("strategy", String).required().at(&[6]).always(),
    ],
    wire: &[2, 3, 4, 0, 1, 5],
};
