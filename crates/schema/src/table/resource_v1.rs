//! The types of `io.k8s.api.resource.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static ALLOCATED_DEVICE_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1.AllocatedDeviceStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: Replace, retain_keys: false })
            .at(&[4]),
        field("data", Any).at(&[5]),
        field("device", String).zero().required().at(&[3]).always(),
        field("driver", String).zero().required().at(&[1]).always(),
        field("networkData", Object(&super::resource_v1::NETWORK_DEVICE_DATA)).at(&[6]),
        field("pool", String).zero().required().at(&[2]).always(),
        field("shareID", String).at(&[7]),
    ],
    wire: &[3, 5, 2, 0, 1, 4, 6],
};

pub(super) static ALLOCATION_RESULT: Type = Type {
    name: "io.k8s.api.resource.v1.AllocationResult",
    atomic: false,
    fields: &[
        field("allocationTimestamp", Time).at(&[5]),
        field("devices", Object(&super::resource_v1::DEVICE_ALLOCATION_RESULT)).zero().at(&[1]).always(),
        field("nodeSelector", Object(&super::core_v1::NODE_SELECTOR)).at(&[3]),
    ],
    wire: &[1, 2, 0],
};

pub(super) static CEL_DEVICE_SELECTOR: Type = Type {
    name: "io.k8s.api.resource.v1.CELDeviceSelector",
    atomic: false,
    fields: &[field("expression", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static CAPACITY_REQUEST_POLICY: Type = Type {
    name: "io.k8s.api.resource.v1.CapacityRequestPolicy",
    atomic: false,
    fields: &[
        field("default", Quantity).at(&[1]),
        field("validRange", Object(&super::resource_v1::CAPACITY_REQUEST_POLICY_RANGE)).at(&[4]),
        field("validValues", List(&Quantity)).at(&[3]),
    ],
    wire: &[0, 2, 1],
};

pub(super) static CAPACITY_REQUEST_POLICY_RANGE: Type = Type {
    name: "io.k8s.api.resource.v1.CapacityRequestPolicyRange",
    atomic: false,
    fields: &[
        field("max", Quantity).at(&[2]),
        field("min", Quantity).required().at(&[1]).always(),
        field("step", Quantity).at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static CAPACITY_REQUIREMENTS: Type = Type {
    name: "io.k8s.api.resource.v1.CapacityRequirements",
    atomic: false,
    fields: &[field("requests", Map(&Quantity)).at(&[1])],
    wire: &[0],
};

pub(super) static COUNTER: Type = Type {
    name: "io.k8s.api.resource.v1.Counter",
    atomic: false,
    fields: &[field("value", Quantity).required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static COUNTER_SET: Type = Type {
    name: "io.k8s.api.resource.v1.CounterSet",
    atomic: false,
    fields: &[
        field("counters", Map(&Object(&super::resource_v1::COUNTER))).required().at(&[2]),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static DEVICE: Type = Type {
    name: "io.k8s.api.resource.v1.Device",
    atomic: false,
    fields: &[
        field("allNodes", Boolean).at(&[7]),
        field("allowMultipleAllocations", Boolean).at(&[12]),
        field("attributes", Map(&Object(&super::resource_v1::DEVICE_ATTRIBUTE))).at(&[2]),
        field("bindingConditions", List(&String)).at(&[10]),
        field("bindingFailureConditions", List(&String)).at(&[11]),
        field("bindsToNode", Boolean).at(&[9]),
        field("capacity", Map(&Object(&super::resource_v1::DEVICE_CAPACITY))).at(&[3]),
        field("consumesCounters", List(&Object(&super::resource_v1::DEVICE_COUNTER_CONSUMPTION))).at(&[4]),
        field("name", String).zero().required().at(&[1]).always(),
        field("nodeAllocatableResources", Map(&Object(&super::resource_v1::NODE_ALLOCATABLE_RESOURCE))).at(&[14]),
        field("nodeName", String).at(&[5]),
        field("nodeSelector", Object(&super::core_v1::NODE_SELECTOR)).at(&[6]),
        field("taints", List(&Object(&super::resource_v1::DEVICE_TAINT))).at(&[8]),
    ],
    wire: &[8, 2, 6, 7, 10, 11, 0, 12, 5, 3, 4, 1, 9],
};

pub(super) static DEVICE_ALLOCATION_CONFIGURATION: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceAllocationConfiguration",
    atomic: false,
    fields: &[
        field("opaque", Object(&super::resource_v1::OPAQUE_DEVICE_CONFIGURATION)).at(&[3, 1]),
        field("requests", List(&String)).at(&[2]),
        field("source", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static DEVICE_ALLOCATION_RESULT: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceAllocationResult",
    atomic: false,
    fields: &[
        field("config", List(&Object(&super::resource_v1::DEVICE_ALLOCATION_CONFIGURATION))).at(&[2]),
        field("results", List(&Object(&super::resource_v1::DEVICE_REQUEST_ALLOCATION_RESULT))).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static DEVICE_ATTRIBUTE: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceAttribute",
    atomic: false,
    fields: &[
        field("bool", Boolean).at(&[3]),
        field("bools", List(&Boolean)).at(&[7]),
        field("int", Int64).at(&[2]),
        field("ints", List(&Int64)).at(&[6]),
        field("string", String).at(&[4]),
        field("strings", List(&String)).at(&[8]),
        field("version", String).at(&[5]),
        field("versions", List(&String)).at(&[9]),
    ],
    wire: &[2, 0, 4, 6, 3, 1, 5, 7],
};

pub(super) static DEVICE_CAPACITY: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceCapacity",
    atomic: false,
    fields: &[
        field("requestPolicy", Object(&super::resource_v1::CAPACITY_REQUEST_POLICY)).at(&[2]),
        field("value", Quantity).required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static DEVICE_CLAIM: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceClaim",
    atomic: false,
    fields: &[
        field("config", List(&Object(&super::resource_v1::DEVICE_CLAIM_CONFIGURATION))).at(&[3]),
        field("constraints", List(&Object(&super::resource_v1::DEVICE_CONSTRAINT))).at(&[2]),
        field("requests", List(&Object(&super::resource_v1::DEVICE_REQUEST))).at(&[1]),
    ],
    wire: &[2, 1, 0],
};

pub(super) static DEVICE_CLAIM_CONFIGURATION: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceClaimConfiguration",
    atomic: false,
    fields: &[
        field("opaque", Object(&super::resource_v1::OPAQUE_DEVICE_CONFIGURATION)).at(&[2, 1]),
        field("requests", List(&String)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static DEVICE_CLASS: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceClass",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1::DEVICE_CLASS_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static DEVICE_CLASS_CONFIGURATION: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceClassConfiguration",
    atomic: false,
    fields: &[field("opaque", Object(&super::resource_v1::OPAQUE_DEVICE_CONFIGURATION)).at(&[1, 1])],
    wire: &[0],
};

pub(super) static DEVICE_CLASS_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceClassSpec",
    atomic: false,
    fields: &[
        field("config", List(&Object(&super::resource_v1::DEVICE_CLASS_CONFIGURATION))).at(&[2]),
        field("extendedResourceName", String).at(&[4]),
        field("selectors", List(&Object(&super::resource_v1::DEVICE_SELECTOR))).at(&[1]),
    ],
    wire: &[2, 0, 1],
};

pub(super) static DEVICE_CONSTRAINT: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceConstraint",
    atomic: false,
    fields: &[
        field("distinctAttribute", String).at(&[3]),
        field("matchAttribute", String).at(&[2]),
        field("requests", List(&String)).at(&[1]),
    ],
    wire: &[2, 1, 0],
};

pub(super) static DEVICE_COUNTER_CONSUMPTION: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceCounterConsumption",
    atomic: false,
    fields: &[
        field("compatibilityGroups", List(&String)).at(&[3]),
        field("counterSet", String).zero().required().at(&[1]).always(),
        field("counters", Map(&Object(&super::resource_v1::COUNTER))).required().at(&[2]),
    ],
    wire: &[1, 2, 0],
};

pub(super) static DEVICE_DERIVED_ATTRIBUTE: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceDerivedAttribute",
    atomic: false,
    fields: &[field("expression", String).zero().required(), field("name", String).zero().required()],
    wire: &[],
};

pub(super) static DEVICE_REQUEST: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceRequest",
    atomic: false,
    fields: &[
        field("exactly", Object(&super::resource_v1::EXACT_DEVICE_REQUEST)).at(&[2]),
        field("firstAvailable", List(&Object(&super::resource_v1::DEVICE_SUB_REQUEST))).at(&[3]),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static DEVICE_REQUEST_ALLOCATION_RESULT: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceRequestAllocationResult",
    atomic: false,
    fields: &[
        field("adminAccess", Boolean).at(&[5]),
        field("bindingConditions", List(&String)).at(&[7]),
        field("bindingFailureConditions", List(&String)).at(&[8]),
        field("consumedCapacity", Map(&Quantity)).at(&[10]),
        field("device", String).zero().required().at(&[4]).always(),
        field("driver", String).zero().required().at(&[2]).always(),
        field("pool", String).zero().required().at(&[3]).always(),
        field("request", String).zero().required().at(&[1]).always(),
        field("shareID", String).at(&[9]),
        field("skipNodeOperations", List(&String)).at(&[11]),
        field("tolerations", List(&Object(&super::resource_v1::DEVICE_TOLERATION))).at(&[6]),
    ],
    wire: &[7, 5, 6, 4, 0, 10, 1, 2, 8, 3, 9],
};

pub(super) static DEVICE_SELECTOR: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceSelector",
    atomic: false,
    fields: &[field("cel", Object(&super::resource_v1::CEL_DEVICE_SELECTOR)).at(&[1])],
    wire: &[0],
};

pub(super) static DEVICE_SUB_REQUEST: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceSubRequest",
    atomic: false,
    fields: &[
        field("allocationMode", String).omitted().at(&[4]).always(),
        field("capacity", Object(&super::resource_v1::CAPACITY_REQUIREMENTS)).at(&[7]),
        field("count", Int64).omitted().at(&[5]).always(),
        field("derivedAttributes", List(&Object(&super::resource_v1::DEVICE_DERIVED_ATTRIBUTE))),
        field("deviceClassName", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("selectors", List(&Object(&super::resource_v1::DEVICE_SELECTOR))).at(&[3]),
        field("tolerations", List(&Object(&super::resource_v1::DEVICE_TOLERATION))).at(&[6]),
    ],
    wire: &[5, 4, 6, 0, 2, 7, 1],
};

pub(super) static DEVICE_TAINT: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceTaint",
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
    name: "io.k8s.api.resource.v1.DeviceTaintRule",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1::DEVICE_TAINT_RULE_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::resource_v1::DEVICE_TAINT_RULE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static DEVICE_TAINT_RULE_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceTaintRuleSpec",
    atomic: false,
    fields: &[
        field("deviceSelector", Object(&super::resource_v1::DEVICE_TAINT_SELECTOR)).at(&[1]),
        field("taint", Object(&super::resource_v1::DEVICE_TAINT)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static DEVICE_TAINT_RULE_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceTaintRuleStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::meta_v1::CONDITION))).at(&[1])],
    wire: &[0],
};

pub(super) static DEVICE_TAINT_SELECTOR: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceTaintSelector",
    atomic: false,
    fields: &[field("device", String).at(&[4]), field("driver", String).at(&[2]), field("pool", String).at(&[3])],
    wire: &[1, 2, 0],
};

pub(super) static DEVICE_TOLERATION: Type = Type {
    name: "io.k8s.api.resource.v1.DeviceToleration",
    atomic: false,
    fields: &[
        field("effect", String).omitted().at(&[4]).always(),
        field("key", String).omitted().at(&[1]).always(),
        field("operator", String).or("Equal").omitted().at(&[2]),
        field("tolerationSeconds", Int64).at(&[5]),
        field("value", String).omitted().at(&[3]).always(),
    ],
    wire: &[1, 2, 4, 0, 3],
};

pub(super) static EXACT_DEVICE_REQUEST: Type = Type {
    name: "io.k8s.api.resource.v1.ExactDeviceRequest",
    atomic: false,
    fields: &[
        field("adminAccess", Boolean).at(&[5]),
        field("allocationMode", String).omitted().at(&[3]).always(),
        field("capacity", Object(&super::resource_v1::CAPACITY_REQUIREMENTS)).at(&[7]),
        field("count", Int64).omitted().at(&[4]).always(),
        field("derivedAttributes", List(&Object(&super::resource_v1::DEVICE_DERIVED_ATTRIBUTE))),
        field("deviceClassName", String).zero().required().at(&[1]).always(),
        field("selectors", List(&Object(&super::resource_v1::DEVICE_SELECTOR))).at(&[2]),
        field("tolerations", List(&Object(&super::resource_v1::DEVICE_TOLERATION))).at(&[6]),
    ],
    wire: &[5, 6, 1, 3, 0, 7, 2],
};

pub(super) static NETWORK_DEVICE_DATA: Type = Type {
    name: "io.k8s.api.resource.v1.NetworkDeviceData",
    atomic: false,
    fields: &[
        field("hardwareAddress", String).omitted().at(&[3]).always(),
        field("interfaceName", String).omitted().at(&[1]).always(),
        field("ips", List(&String)).at(&[2]),
    ],
    wire: &[1, 2, 0],
};

pub(super) static NODE_ALLOCATABLE_MAPPING: Type = Type {
    name: "io.k8s.api.resource.v1.NodeAllocatableMapping",
    atomic: false,
    fields: &[
        field("capacityKey", String).at(&[1]),
        field("capacityMultiplier", Quantity).at(&[2]),
        field("deviceMultiplier", Quantity).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static NODE_ALLOCATABLE_OVERHEAD: Type = Type {
    name: "io.k8s.api.resource.v1.NodeAllocatableOverhead",
    atomic: false,
    fields: &[field("perContainer", Quantity).at(&[2]), field("perPod", Quantity).at(&[1])],
    wire: &[1, 0],
};

pub(super) static NODE_ALLOCATABLE_RESOURCE: Type = Type {
    name: "io.k8s.api.resource.v1.NodeAllocatableResource",
    atomic: false,
    fields: &[
        field("mapping", Object(&super::resource_v1::NODE_ALLOCATABLE_MAPPING)).at(&[3]),
        field("overhead", Object(&super::resource_v1::NODE_ALLOCATABLE_OVERHEAD)).at(&[4]),
    ],
    wire: &[0, 1],
};

pub(super) static OPAQUE_DEVICE_CONFIGURATION: Type = Type {
    name: "io.k8s.api.resource.v1.OpaqueDeviceConfiguration",
    atomic: false,
    fields: &[
        field("driver", String).zero().required().at(&[1]).always(),
        field("parameters", Any).required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static RESOURCE_CLAIM: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceClaim",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1::RESOURCE_CLAIM_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::resource_v1::RESOURCE_CLAIM_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static RESOURCE_CLAIM_CONSUMER_REFERENCE: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceClaimConsumerReference",
    atomic: false,
    fields: &[
        field("apiGroup", String).omitted().at(&[1]).always(),
        field("name", String).zero().required().at(&[4]).always(),
        field("resource", String).zero().required().at(&[3]).always(),
        field("uid", String).zero().required().at(&[5]).always(),
    ],
    wire: &[0, 2, 1, 3],
};

pub(super) static RESOURCE_CLAIM_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceClaimSpec",
    atomic: false,
    fields: &[field("devices", Object(&super::resource_v1::DEVICE_CLAIM)).zero().at(&[1]).always()],
    wire: &[0],
};

pub(super) static RESOURCE_CLAIM_STATUS: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceClaimStatus",
    atomic: false,
    fields: &[
        field("allocation", Object(&super::resource_v1::ALLOCATION_RESULT)).at(&[1]),
        field("devices", List(&Object(&super::resource_v1::ALLOCATED_DEVICE_STATUS)))
            .merged(&Merge {
                apply: ByKeys(&["driver", "device", "pool", "shareID"]),
                patch: Replace,
                retain_keys: false,
            })
            .at(&[4]),
        field("reservedFor", List(&Object(&super::resource_v1::RESOURCE_CLAIM_CONSUMER_REFERENCE)))
            .merged(&Merge { apply: ByKeys(&["uid"]), patch: ByKey("uid"), retain_keys: false })
            .at(&[2]),
    ],
    wire: &[0, 2, 1],
};

pub(super) static RESOURCE_CLAIM_TEMPLATE: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceClaimTemplate",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1::RESOURCE_CLAIM_TEMPLATE_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static RESOURCE_CLAIM_TEMPLATE_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceClaimTemplateSpec",
    atomic: false,
    fields: &[
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().at(&[1]).always(),
        field("spec", Object(&super::resource_v1::RESOURCE_CLAIM_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static RESOURCE_POOL: Type = Type {
    name: "io.k8s.api.resource.v1.ResourcePool",
    atomic: false,
    fields: &[
        field("generation", Int64).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("resourceSliceCount", Int64).zero().required().at(&[3]).always(),
    ],
    wire: &[1, 0, 2],
};

pub(super) static RESOURCE_SLICE: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceSlice",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::resource_v1::RESOURCE_SLICE_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static RESOURCE_SLICE_SPEC: Type = Type {
    name: "io.k8s.api.resource.v1.ResourceSliceSpec",
    atomic: false,
    fields: &[
        field("allNodes", Boolean).at(&[5]),
        field("devices", List(&Object(&super::resource_v1::DEVICE))).at(&[6]),
        field("driver", String).zero().required().at(&[1]).always(),
        field("nodeName", String).at(&[3]),
        field("nodeSelector", Object(&super::core_v1::NODE_SELECTOR)).at(&[4]),
        field("partitionTypeAttribute", String).at(&[9]),
        field("perDeviceNodeSelection", Boolean).at(&[7]),
        field("pool", Object(&super::resource_v1::RESOURCE_POOL)).zero().required().at(&[2]).always(),
        field("sharedCounters", List(&Object(&super::resource_v1::COUNTER_SET))).at(&[8]),
        field("skipNodeOperations", List(&String)).at(&[10]),
    ],
    wire: &[2, 7, 3, 4, 0, 1, 6, 8, 5, 9],
};
