//! The types of `io.k8s.apimachinery.pkg.apis.meta.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static API_GROUP: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("name", String).zero().required().at(&[1]).always(),
        field("preferredVersion", Object(&super::meta_v1::GROUP_VERSION_FOR_DISCOVERY)).zero().at(&[3]).always(),
        field("serverAddressByClientCIDRs", List(&Object(&super::meta_v1::SERVER_ADDRESS_BY_CLIENT_CIDR))).at(&[4]),
        field("versions", List(&Object(&super::meta_v1::GROUP_VERSION_FOR_DISCOVERY))).required().at(&[2]),
    ],
    wire: &[2, 5, 3, 4],
};

pub(super) static API_GROUP_LIST: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("groups", List(&Object(&super::meta_v1::API_GROUP))).required().at(&[1]),
        field("kind", String),
    ],
    wire: &[1],
};

pub(super) static API_RESOURCE: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIResource",
    atomic: false,
    fields: &[
        field("categories", List(&String)).at(&[7]),
        field("group", String).omitted().at(&[8]).always(),
        field("kind", String).zero().required().at(&[3]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("namespaced", Boolean).zero().required().at(&[2]).always(),
        field("shortNames", List(&String)).at(&[5]),
        field("singularName", String).zero().required().at(&[6]).always(),
        field("storageVersionHash", String).at(&[10]).always(),
        field("verbs", List(&String)).required().at(&[4]),
        field("version", String).omitted().at(&[9]).always(),
    ],
    wire: &[3, 4, 2, 8, 5, 6, 0, 1, 9, 7],
};

pub(super) static API_RESOURCE_LIST: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("groupVersion", String).zero().required().at(&[1]).always(),
        field("kind", String),
        field("resources", List(&Object(&super::meta_v1::API_RESOURCE))).required().at(&[2]),
    ],
    wire: &[1, 3],
};

pub(super) static API_VERSIONS: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("serverAddressByClientCIDRs", List(&Object(&super::meta_v1::SERVER_ADDRESS_BY_CLIENT_CIDR)))
            .required()
            .at(&[2]),
        field("versions", List(&String)).required().at(&[1]),
    ],
    wire: &[3, 2],
};

pub(super) static CONDITION: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).required().at(&[4]).always(),
        field("message", String).zero().required().at(&[6]).always(),
        field("observedGeneration", Int64).omitted().at(&[3]).always(),
        field("reason", String).zero().required().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 2, 0, 3, 1],
};

pub(super) static DELETE_OPTIONS: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("dryRun", List(&String)).at(&[5]),
        field("gracePeriodSeconds", Int64).at(&[1]),
        field("ignoreStoreReadErrorWithClusterBreakingPotential", Boolean).at(&[6]),
        field("kind", String),
        field("orphanDependents", Boolean).at(&[3]),
        field("preconditions", Object(&super::meta_v1::PRECONDITIONS)).at(&[2]),
        field("propagationPolicy", String).at(&[4]),
    ],
    wire: &[2, 6, 5, 7, 1, 3],
};

pub(super) static FIELD_SELECTOR_REQUIREMENT: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement",
    atomic: false,
    fields: &[
        field("key", String).zero().required().at(&[1]).always(),
        field("operator", String).zero().required().at(&[2]).always(),
        field("values", List(&String)).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static GROUP_RESOURCE: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource",
    atomic: false,
    fields: &[
        field("group", String).zero().required().at(&[1]).always(),
        field("resource", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static GROUP_VERSION_FOR_DISCOVERY: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionForDiscovery",
    atomic: false,
    fields: &[
        field("groupVersion", String).zero().required().at(&[1]).always(),
        field("version", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static LABEL_SELECTOR: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    atomic: true,
    fields: &[
        field("matchExpressions", List(&Object(&super::meta_v1::LABEL_SELECTOR_REQUIREMENT))).at(&[2]),
        field("matchLabels", Map(&String)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static LABEL_SELECTOR_REQUIREMENT: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
    atomic: false,
    fields: &[
        field("key", String).zero().required().at(&[1]).always(),
        field("operator", String).zero().required().at(&[2]).always(),
        field("values", List(&String)).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static LIST_META: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    atomic: false,
    fields: &[
        field("continue", String).at(&[3]).always(),
        field("remainingItemCount", Int64).at(&[4]),
        field("resourceVersion", String).omitted().at(&[2]).always(),
        field("selfLink", String).omitted().at(&[1]).always(),
        field("shardInfo", Object(&super::meta_v1::SHARD_INFO)).at(&[5]),
    ],
    wire: &[3, 2, 0, 1, 4],
};

pub(super) static MANAGED_FIELDS_ENTRY: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    atomic: false,
    fields: &[
        field("apiVersion", String).at(&[3]).always(),
        field("fieldsType", String).at(&[6]).always(),
        field("fieldsV1", Any).at(&[7]),
        field("manager", String).omitted().at(&[1]).always(),
        field("operation", String).omitted().at(&[2]).always(),
        field("subresource", String).omitted().at(&[8]).always(),
        field("time", Time).at(&[4]),
    ],
    wire: &[3, 4, 0, 6, 1, 2, 5],
};

pub(super) static OBJECT_META: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    atomic: false,
    fields: &[
        field("annotations", Map(&String)).at(&[12]),
        field("creationTimestamp", Time).at(&[8]).always(),
        field("deletionGracePeriodSeconds", Int64).at(&[10]),
        field("deletionTimestamp", Time).at(&[9]),
        field("finalizers", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Patch::Set, retain_keys: false })
            .at(&[14]),
        field("generateName", String).omitted().at(&[2]).always(),
        field("generation", Int64).omitted().at(&[7]).always(),
        field("labels", Map(&String)).at(&[11]),
        field("managedFields", List(&Object(&super::meta_v1::MANAGED_FIELDS_ENTRY))).at(&[17]),
        field("name", String).omitted().at(&[1]).always(),
        field("namespace", String).omitted().at(&[3]).always(),
        field("ownerReferences", List(&Object(&super::meta_v1::OWNER_REFERENCE)))
            .merged(&Merge { apply: ByKeys(&["uid"]), patch: ByKey("uid"), retain_keys: false })
            .at(&[13]),
        field("resourceVersion", String).omitted().at(&[6]).always(),
        field("selfLink", String).omitted().at(&[4]).always(),
        field("uid", String).omitted().at(&[5]).always(),
    ],
    wire: &[9, 5, 10, 13, 14, 12, 6, 1, 3, 2, 7, 0, 11, 4, 8],
};

pub(super) static OWNER_REFERENCE: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    atomic: true,
    fields: &[
        field("apiVersion", String).zero().required().at(&[5]).always(),
        field("blockOwnerDeletion", Boolean).at(&[7]),
        field("controller", Boolean).at(&[6]),
        field("kind", String).zero().required().at(&[1]).always(),
        field("name", String).zero().required().at(&[3]).always(),
        field("uid", String).zero().required().at(&[4]).always(),
    ],
    wire: &[3, 4, 5, 0, 2, 1],
};

pub(super) static PRECONDITIONS: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
    atomic: false,
    fields: &[field("resourceVersion", String).at(&[2]), field("uid", String).at(&[1])],
    wire: &[1, 0],
};

pub(super) static SERVER_ADDRESS_BY_CLIENT_CIDR: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.ServerAddressByClientCIDR",
    atomic: false,
    fields: &[
        field("clientCIDR", String).zero().required().at(&[1]).always(),
        field("serverAddress", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static SHARD_INFO: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo",
    atomic: false,
    fields: &[field("selector", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static STATUS: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("code", Int32).at(&[6]).always(),
        field("details", Object(&super::meta_v1::STATUS_DETAILS)).at(&[5]),
        field("kind", String),
        field("message", String).omitted().at(&[3]).always(),
        field("metadata", Object(&super::meta_v1::LIST_META)).zero().required().at(&[1]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).at(&[2]).always(),
    ],
    wire: &[5, 7, 4, 6, 2, 1],
};

pub(super) static STATUS_CAUSE: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause",
    atomic: false,
    fields: &[
        field("field", String).omitted().at(&[3]).always(),
        field("message", String).omitted().at(&[2]).always(),
        field("reason", String).omitted().at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static STATUS_DETAILS: Type = Type {
    name: "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails",
    atomic: false,
    fields: &[
        field("causes", List(&Object(&super::meta_v1::STATUS_CAUSE))).at(&[4]),
        field("group", String).omitted().at(&[2]).always(),
        field("kind", String).at(&[3]).always(),
        field("name", String).at(&[1]).always(),
        field("retryAfterSeconds", Int32).at(&[5]).always(),
        field("uid", String).omitted().at(&[6]).always(),
    ],
    wire: &[3, 1, 2, 0, 4, 5],
};
