//! The types of `io.k8s.api.lifecycle.v1alpha1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static EVICTION: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.Eviction",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required(),
        field("spec", Object(&super::lifecycle_v1alpha1::EVICTION_SPEC)).zero().required(),
        field("status", Object(&super::lifecycle_v1alpha1::EVICTION_STATUS)).zero(),
    ],
};

pub(super) static EVICTION_POD_REFERENCE: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionPodReference",
    atomic: false,
    fields: &[field("name", String).zero().required(), field("uid", String).zero().required()],
};

pub(super) static EVICTION_REQUEST: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required(),
        field("spec", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_SPEC)).zero().required(),
        field("status", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_STATUS)).zero(),
    ],
};

pub(super) static EVICTION_REQUEST_POD_REFERENCE: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestPodReference",
    atomic: false,
    fields: &[field("name", String).zero().required(), field("uid", String).zero().required()],
};

pub(super) static EVICTION_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestSpec",
    atomic: false,
    fields: &[
        field("intent", String).zero().required(),
        field("requester", String).zero().required(),
        field("target", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_TARGET)).zero().required(),
    ],
};

pub(super) static EVICTION_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestStatus",
    atomic: false,
    fields: &[field("conditions", List(&Object(&super::meta_v1::CONDITION))), field("observedGeneration", Int64)],
};

pub(super) static EVICTION_REQUEST_TARGET: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestTarget",
    atomic: false,
    fields: &[field("pod", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_POD_REFERENCE))],
};

pub(super) static EVICTION_SPEC: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionSpec",
    atomic: false,
    fields: &[field("target", Object(&super::lifecycle_v1alpha1::EVICTION_TARGET)).zero().required()],
};

pub(super) static EVICTION_STATUS: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION))),
        field("observedGeneration", Int64),
        field("requesters", List(&Object(&super::lifecycle_v1alpha1::REQUESTER))),
        field("responders", List(&Object(&super::lifecycle_v1alpha1::RESPONDER_STATUS))),
        field("targetResponders", List(&Object(&super::lifecycle_v1alpha1::TARGET_RESPONDER))),
    ],
};

pub(super) static EVICTION_TARGET: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionTarget",
    atomic: false,
    fields: &[field("pod", Object(&super::lifecycle_v1alpha1::EVICTION_POD_REFERENCE))],
};

pub(super) static REQUESTER: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.Requester",
    atomic: false,
    fields: &[field("intent", String).zero().required(), field("name", String).zero().required()],
};

pub(super) static RESPONDER_STATUS: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.ResponderStatus",
    atomic: false,
    fields: &[
        field("completionTime", Time),
        field("expectedCompletionTime", Time),
        field("heartbeatTime", Time),
        field("message", String),
        field("name", String).zero().required(),
        field("startTime", Time),
    ],
};

pub(super) static TARGET_RESPONDER: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.TargetResponder",
    atomic: false,
    fields: &[
        field("name", String).zero().required(),
        field("priority", Int32).zero().required(),
        field("state", String).zero().required(),
    ],
};
