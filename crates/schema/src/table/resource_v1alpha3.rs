//! The types of `io.k8s.api.resource.v1alpha3`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static DEVICE_TAINT: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaint",
    atomic: false,
    fields: &[
        field("effect", String).zero().required().at(&[3]).always(),
        field("key", String).zero().required().at(&[1]).always(),
        field("timeAdded", Time).at(&[4]),
        field("value", String).omitted().at(&[2]).always(),
    ],
    wire: &[1, 3, 0, 2],
};

pub(super) static DEVICE_TAINT_RULE: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintRule",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1alpha3::DEVICE_TAINT_RULE_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::resource_v1alpha3::DEVICE_TAINT_RULE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static DEVICE_TAINT_RULE_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintRuleSpec",
    atomic: false,
    fields: &[
        field("deviceSelector", Object(&super::resource_v1alpha3::DEVICE_TAINT_SELECTOR)).at(&[1]),
        field("taint", Object(&super::resource_v1alpha3::DEVICE_TAINT)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static DEVICE_TAINT_RULE_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintRuleStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::meta_v1::CONDITION)))
        .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
        .at(&[1])],
    wire: &[0],
};

pub(super) static DEVICE_TAINT_SELECTOR: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.DeviceTaintSelector",
    atomic: false,
    fields: &[field("device", String).at(&[4]), field("driver", String).at(&[2]), field("pool", String).at(&[3])],
    wire: &[1, 2, 0],
};

pub(super) static PARTITION_TYPE_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.PartitionTypeStatus",
    atomic: false,
    fields: &[
        field("allocatable", Int32).zero().required().at(&[3]).always(),
        field("attribute", String).zero().required().at(&[4]).always(),
        field("total", Int32).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 2, 0, 1],
};

pub(super) static POOL_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.PoolStatus",
    atomic: false,
    fields: &[
        field("allocatedDevices", Int32).at(&[5]),
        field("availableDevices", Int32).at(&[6]),
        field("driver", String).required().at(&[1]).always(),
        field("generation", Int64).zero().required().at(&[9]).always(),
        field("nodeName", String).at(&[3]),
        field("partitionSummary", List(&Object(&super::resource_v1alpha3::PARTITION_TYPE_STATUS))).at(&[11]),
        field("poolName", String).required().at(&[2]).always(),
        field("resourceSliceCount", Int32).at(&[8]),
        field("shareableSummary", Object(&super::resource_v1alpha3::SHAREABLE_SUMMARY_STATUS)).at(&[13]),
        field("totalDevices", Int32).at(&[4]),
        field("unavailableDevices", Int32).at(&[7]),
        field("validationError", String).at(&[10]),
    ],
    wire: &[2, 6, 4, 9, 0, 1, 10, 7, 3, 11, 5, 8],
};

pub(super) static RESOURCE_POOL_STATUS_REQUEST: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1alpha3::RESOURCE_POOL_STATUS_REQUEST_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::resource_v1alpha3::RESOURCE_POOL_STATUS_REQUEST_STATUS)).at(&[3]),
    ],
    wire: &[2, 3, 4],
};

pub(super) static RESOURCE_POOL_STATUS_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequestSpec",
    atomic: false,
    fields: &[
        field("defaultPartitionTypeAttribute", String).at(&[4]),
        field("driver", String).zero().required().at(&[1]).always(),
        field("limit", Int32).at(&[3]),
        field("poolName", String).at(&[2]),
    ],
    wire: &[1, 3, 2, 0],
};

pub(super) static RESOURCE_POOL_STATUS_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequestStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[3]),
        field("poolCount", Int32).required().at(&[6]).always(),
        field("pools", List(&Object(&super::resource_v1alpha3::POOL_STATUS))).at(&[2]),
    ],
    wire: &[2, 0, 1],
};

pub(super) static SHAREABLE_CAPACITY_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ShareableCapacityStatus",
    atomic: false,
    fields: &[
        field("available", Quantity).required().at(&[4]).always(),
        field("consumed", Quantity).required().at(&[3]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("total", Quantity).required().at(&[2]).always(),
    ],
    wire: &[2, 3, 1, 0],
};

pub(super) static SHAREABLE_SUMMARY_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1alpha3.ShareableSummaryStatus",
    atomic: false,
    fields: &[
        field("capacity", List(&Object(&super::resource_v1alpha3::SHAREABLE_CAPACITY_STATUS))).at(&[3]),
        field("fullyAvailableDevices", Int32).zero().required().at(&[1]).always(),
        field("partiallyAvailableDevices", Int32).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};
