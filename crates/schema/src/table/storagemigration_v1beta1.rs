//! The types of `io.k8s.api.storagemigration.v1beta1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static STORAGE_VERSION_MIGRATION: Type = Type {
    name: "io.k8s.api.storagemigration.v1beta1.StorageVersionMigration",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::storagemigration_v1beta1::STORAGE_VERSION_MIGRATION_SPEC))
            .zero()
            .at(&[2])
            .always(),
        field("status", Object(&super::storagemigration_v1beta1::STORAGE_VERSION_MIGRATION_STATUS))
            .zero()
            .at(&[3])
            .always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static STORAGE_VERSION_MIGRATION_SPEC: Type = Type {
    name: "io.k8s.api.storagemigration.v1beta1.StorageVersionMigrationSpec",
    atomic: false,
    fields: &[field("resource", Object(&super::meta_v1::GROUP_RESOURCE)).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static STORAGE_VERSION_MIGRATION_STATUS: Type = Type {
    name: "io.k8s.api.storagemigration.v1beta1.StorageVersionMigrationStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[1]),
        field("resourceVersion", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};
