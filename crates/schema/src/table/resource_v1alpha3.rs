//! The types of `io.k8s.api.resource.v1alpha3`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static DEVICE_TAINT: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaint",
    atomic: false,
    fields: &[
        field("effect", String).zero().required().at(&[3]),
        field("key", String).zero().required().at(&[1]),
        field("timeAdded", Time).at(&[4]),
        field("value", String).omitted().at(&[2]),
    ],
};

pub(super) static DEVICE_TAINT_RULE: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintRule",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]),
        field("spec", Object(&super::resource_v1alpha3::DEVICE_TAINT_RULE_SPEC)).zero().required().at(&[2]),
        field("status", Object(&super::resource_v1alpha3::DEVICE_TAINT_RULE_STATUS)).zero().at(&[3]),
    ],
};

pub(super) static DEVICE_TAINT_RULE_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintRuleSpec",
    atomic: false,
    fields: &[
        field("deviceSelector", Object(&super::resource_v1alpha3::DEVICE_TAINT_SELECTOR)).at(&[1]),
        field("taint", Object(&super::resource_v1alpha3::DEVICE_TAINT)).zero().required().at(&[2]),
    ],
};

pub(super) static DEVICE_TAINT_RULE_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintRuleStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::meta_v1::CONDITION)))
        .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
        .at(&[1])],
};

pub(super) static DEVICE_TAINT_SELECTOR: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintSelector",
    atomic: false,
    fields: &[field("device", String).at(&[4]), field("driver", String).at(&[2]), field("pool", String).at(&[3])],
};

pub(super) static PARTITION_TYPE_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.PartitionTypeStatus",
    atomic: false,
    fields: &[
        field("allocatable", Int32).zero().required().at(&[3]),
        field("attribute", String).zero().required().at(&[4]),
        field("total", Int32).zero().required().at(&[2]),
        field("type", String).zero().required().at(&[1]),
    ],
};

pub(super) static POOL_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.PoolStatus",
    atomic: false,
    fields: &[
        field("allocatedDevices", Int32).at(&[5]),
        field("availableDevices", Int32).at(&[6]),
        field("driver", String).required().at(&[1]),
        field("generation", Int64).zero().required().at(&[9]),
        field("nodeName", String).at(&[3]),
        field("partitionSummary", List(&Object(&super::resource_v1alpha3::PARTITION_TYPE_STATUS))).at(&[11]),
        field("poolName", String).required().at(&[2]),
        field("resourceSliceCount", Int32).at(&[8]),
        field("shareableSummary", Object(&super::resource_v1alpha3::SHAREABLE_SUMMARY_STATUS)).at(&[13]),
        field("totalDevices", Int32).at(&[4]),
        field("unavailableDevices", Int32).at(&[7]),
        field("validationError", String).at(&[10]),
    ],
};

pub(super) static RESOURCE_POOL_STATUS_REQUEST: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]),
        field("spec", Object(&super::resource_v1alpha3::RESOURCE_POOL_STATUS_REQUEST_SPEC)).zero().required().at(&[2]),
        field("status", Object(&super::resource_v1alpha3::RESOURCE_POOL_STATUS_REQUEST_STATUS)).at(&[3]),
    ],
};

pub(super) static RESOURCE_POOL_STATUS_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequestSpec",
    atomic: false,
    fields: &[
        field("defaultPartitionTypeAttribute", String).at(&[4]),
        field("driver", String).zero().required().at(&[1]),
        field("limit", Int32).at(&[3]),
        field("poolName", String).at(&[2]),
    ],
};

pub(super) static RESOURCE_POOL_STATUS_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequestStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[3]),
        field("poolCount", Int32).required().at(&[6]),
        field("pools", List(&Object(&super::resource_v1alpha3::POOL_STATUS))).at(&[2]),
    ],
};

pub(super) static SHAREABLE_CAPACITY_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ShareableCapacityStatus",
    atomic: false,
    fields: &[
        field("available", Quantity).required(),
        field("consumed", Quantity).required(),
        field("name", String).zero().required().at(&[1]),
        field("total", Quantity).required(),
    ],
};

pub(super) static SHAREABLE_SUMMARY_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ShareableSummaryStatus",
    atomic: false,
    fields: &[
        field("capacity", List(&Object(&super::resource_v1alpha3::SHAREABLE_CAPACITY_STATUS))).at(&[3]),
        field("fullyAvailableDevices", Int32).zero().required().at(&[1]),
        field("partiallyAvailableDevices", Int32).zero().required().at(&[2]),
    ],
};
