//! The types of `io.k8s.api.apiserverinternal.v1alpha1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static SERVER_STORAGE_VERSION: Type = Type {
    name: "io.k8s.api.apiserverinternal.v1alpha1.ServerStorageVersion",
    atomic: false,
    fields: &[
        field("apiServerID", String).required().at(&[1]).always(),
        field("decodableVersions", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[3]),
        field("encodingVersion", String).required().at(&[2]).always(),
        field("servedVersions", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[4]),
    ],
    wire: &[0, 2, 1, 3],
};

pub(super) static STORAGE_VERSION: Type = Type {
    name: "io.k8s.api.apiserverinternal.v1alpha1.StorageVersion",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apiserverinternal_v1alpha1::STORAGE_VERSION_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::apiserverinternal_v1alpha1::STORAGE_VERSION_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static STORAGE_VERSION_CONDITION: Type = Type {
    name: "io.k8s.api.apiserverinternal.v1alpha1.StorageVersionCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[4]).always(),
        field("message", String).required().at(&[6]).always(),
        field("observedGeneration", Int64).omitted().at(&[3]).always(),
        field("reason", String).zero().required().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 2, 0, 3, 1],
};

pub(super) static STORAGE_VERSION_SPEC: Type =
    Type { name: "io.k8s.api.apiserverinternal.v1alpha1.StorageVersionSpec", atomic: false, fields: &[], wire: &[] };

pub(super) static STORAGE_VERSION_STATUS: Type = Type {
    name: "io.k8s.api.apiserverinternal.v1alpha1.StorageVersionStatus",
    atomic: false,
    fields: &[
        field("commonEncodingVersion", String).at(&[2]),
        field("conditions", List(&Object(&super::apiserverinternal_v1alpha1::STORAGE_VERSION_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: Replace, retain_keys: false })
            .at(&[3]),
        field("storageVersions", List(&Object(&super::apiserverinternal_v1alpha1::SERVER_STORAGE_VERSION)))
            .merged(&Merge { apply: ByKeys(&["apiServerID"]), patch: Replace, retain_keys: false })
            .at(&[1]),
    ],
    wire: &[2, 0, 1],
};
