//! The types of `io.k8s.api.storage.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CSI_DRIVER: Type = Type {
    name: "io.k8s.api.storage.v1.CSIDriver",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::storage_v1::CSI_DRIVER_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static CSI_DRIVER_SPEC: Type = Type {
    name: "io.k8s.api.storage.v1.CSIDriverSpec",
    atomic: false,
    fields: &[
        field("attachRequired", Boolean).at(&[1]),
        field("fsGroupPolicy", String).at(&[5]),
        field("nodeAllocatableUpdatePeriodSeconds", Int64).at(&[9]),
        field("podInfoOnMount", Boolean).at(&[2]),
        field("preventPodSchedulingIfMissing", Boolean).at(&[11]),
        field("requiresRepublish", Boolean).at(&[7]),
        field("seLinuxMount", Boolean).at(&[8]),
        field("serviceAccountTokenInSecrets", Boolean).at(&[10]),
        field("storageCapacity", Boolean).at(&[4]),
        field("tokenRequests", List(&Object(&super::storage_v1::TOKEN_REQUEST))).at(&[6]),
        field("volumeLifecycleModes", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[3]),
    ],
    wire: &[0, 3, 10, 8, 1, 9, 5, 6, 2, 7, 4],
};

pub(super) static CSI_NODE: Type = Type {
    name: "io.k8s.api.storage.v1.CSINode",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::storage_v1::CSI_NODE_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::storage_v1::CSI_NODE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static CSI_NODE_DRIVER: Type = Type {
    name: "io.k8s.api.storage.v1.CSINodeDriver",
    atomic: false,
    fields: &[
        field("allocatable", Object(&super::storage_v1::VOLUME_NODE_RESOURCES)).at(&[4]),
        field("name", String).zero().required().at(&[1]).always(),
        field("nodeID", String).zero().required().at(&[2]).always(),
        field("topologyKeys", List(&String)).at(&[3]),
    ],
    wire: &[1, 2, 3, 0],
};

pub(super) static CSI_NODE_SPEC: Type = Type {
    name: "io.k8s.api.storage.v1.CSINodeSpec",
    atomic: false,
    fields: &[field("drivers", List(&Object(&super::storage_v1::CSI_NODE_DRIVER)))
        .required()
        .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
        .at(&[1])],
    wire: &[0],
};

pub(super) static CSI_NODE_STATUS: Type = Type {
    name: "io.k8s.api.storage.v1.CSINodeStatus",
    atomic: false,
    fields: &[field("storageHealth", List(&Object(&super::storage_v1::STORAGE_HEALTH))).at(&[1])],
    wire: &[0],
};

pub(super) static CSI_STORAGE_CAPACITY: Type = Type {
    name: "io.k8s.api.storage.v1.CSIStorageCapacity",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("capacity", Quantity).at(&[4]),
        field("kind", String),
        field("maximumVolumeSize", Quantity).at(&[5]),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("nodeTopology", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[2]),
        field("storageClassName", String).zero().required().at(&[3]).always(),
    ],
    wire: &[4, 5, 6, 1, 3],
};

pub(super) static STORAGE_CLASS: Type = Type {
    name: "io.k8s.api.storage.v1.StorageClass",
    atomic: false,
    fields: &[
        field("allowVolumeExpansion", Boolean).at(&[6]),
        field("allowedTopologies", List(&Object(&super::core_v1::TOPOLOGY_SELECTOR_TERM))).at(&[8]),
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("mountOptions", List(&String)).at(&[5]),
        field("parameters", Map(&String)).at(&[3]),
        field("provisioner", String).zero().required().at(&[2]).always(),
        field("reclaimPolicy", String).at(&[4]),
        field("volumeBindingMode", String).at(&[7]),
    ],
    wire: &[4, 7, 6, 8, 5, 0, 9, 1],
};

pub(super) static STORAGE_HEALTH: Type = Type {
    name: "io.k8s.api.storage.v1.StorageHealth",
    atomic: false,
    fields: &[
        field("healthConditions", List(&Object(&super::storage_v1::STORAGE_HEALTH_CONDITION))).at(&[2]),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static STORAGE_HEALTH_CONDITION: Type = Type {
    name: "io.k8s.api.storage.v1.StorageHealthCondition",
    atomic: false,
    fields: &[
        field("accessMode", String).at(&[4]),
        field("lastTransitionTime", Time).at(&[6]),
        field("message", String).omitted().at(&[3]).always(),
        field("reason", String).zero().required().at(&[2]).always(),
        field("status", String).zero().required().at(&[1]).always(),
        field("volumeMode", String).at(&[5]),
    ],
    wire: &[4, 3, 2, 0, 5, 1],
};

pub(super) static TOKEN_REQUEST: Type = Type {
    name: "io.k8s.api.storage.v1.TokenRequest",
    atomic: false,
    fields: &[
        field("audience", String).zero().required().at(&[1]).always(),
        field("expirationSeconds", Int64).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static VOLUME_ATTACHMENT: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeAttachment",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::storage_v1::VOLUME_ATTACHMENT_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::storage_v1::VOLUME_ATTACHMENT_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static VOLUME_ATTACHMENT_SOURCE: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeAttachmentSource",
    atomic: false,
    fields: &[
        field("inlineVolumeSpec", Object(&super::core_v1::PERSISTENT_VOLUME_SPEC)).at(&[2]),
        field("persistentVolumeName", String).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static VOLUME_ATTACHMENT_SPEC: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeAttachmentSpec",
    atomic: false,
    fields: &[
        field("attacher", String).zero().required().at(&[1]).always(),
        field("nodeName", String).zero().required().at(&[3]).always(),
        field("source", Object(&super::storage_v1::VOLUME_ATTACHMENT_SOURCE)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 2, 1],
};

pub(super) static VOLUME_ATTACHMENT_STATUS: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeAttachmentStatus",
    atomic: false,
    fields: &[
        field("attachError", Object(&super::storage_v1::VOLUME_ERROR)).at(&[3]),
        field("attached", Boolean).zero().required().at(&[1]).always(),
        field("attachmentMetadata", Map(&String)).at(&[2]),
        field("detachError", Object(&super::storage_v1::VOLUME_ERROR)).at(&[4]),
    ],
    wire: &[1, 2, 0, 3],
};

pub(super) static VOLUME_ATTRIBUTES_CLASS: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeAttributesClass",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("driverName", String).zero().required().at(&[2]).always(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("parameters", Map(&String)).at(&[3]),
    ],
    wire: &[3, 1, 4],
};

pub(super) static VOLUME_ERROR: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeError",
    atomic: false,
    fields: &[
        field("errorCode", Int32).at(&[3]),
        field("message", String).omitted().at(&[2]).always(),
        field("time", Time).at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static VOLUME_NODE_RESOURCES: Type = Type {
    name: "io.k8s.api.storage.v1.VolumeNodeResources",
    atomic: false,
    fields: &[field("count", Int32).at(&[1])],
    wire: &[0],
};
