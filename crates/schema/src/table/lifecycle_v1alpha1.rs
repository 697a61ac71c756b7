//! The types of `io.k8s.api.lifecycle.v1alpha1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static EVICTION: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.Eviction",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::lifecycle_v1alpha1::EVICTION_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::lifecycle_v1alpha1::EVICTION_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static EVICTION_POD_REFERENCE: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionPodReference",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("uid", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EVICTION_REQUEST: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequest",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_SPEC)).zero().required().at(&[2]).always(),
        field("status", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static EVICTION_REQUEST_POD_REFERENCE: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestPodReference",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("uid", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EVICTION_REQUEST_SPEC: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestSpec",
    atomic: false,
    fields: &[
        field("intent", String).zero().required().at(&[3]).always(),
        field("requester", String).zero().required().at(&[2]).always(),
        field("target", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_TARGET))
            .zero()
            .required()
            .at(&[1])
            .always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static EVICTION_REQUEST_STATUS: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION))).at(&[1]),
        field("observedGeneration", Int64).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EVICTION_REQUEST_TARGET: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionRequestTarget",
    atomic: false,
    fields: &[field("pod", Object(&super::lifecycle_v1alpha1::EVICTION_REQUEST_POD_REFERENCE)).at(&[1])],
    wire: &[0],
};

pub(super) static EVICTION_SPEC: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionSpec",
    atomic: false,
    fields: &[field("target", Object(&super::lifecycle_v1alpha1::EVICTION_TARGET)).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static EVICTION_STATUS: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION))).at(&[1]),
        field("observedGeneration", Int64).omitted().at(&[2]).always(),
        field("requesters", List(&Object(&super::lifecycle_v1alpha1::REQUESTER))).at(&[3]),
        field("responders", List(&Object(&super::lifecycle_v1alpha1::RESPONDER_STATUS))).at(&[5]),
        field("targetResponders", List(&Object(&super::lifecycle_v1alpha1::TARGET_RESPONDER))).at(&[4]),
    ],
    wire: &[0, 1, 2, 4, 3],
};

pub(super) static EVICTION_TARGET: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.EvictionTarget",
    atomic: false,
    fields: &[field("pod", Object(&super::lifecycle_v1alpha1::EVICTION_POD_REFERENCE)).at(&[1])],
    wire: &[0],
};

pub(super) static REQUESTER: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.Requester",
    atomic: false,
    fields: &[
        field("intent", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static RESPONDER_STATUS: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.ResponderStatus",
    atomic: false,
    fields: &[
        field("completionTime", Time).at(&[5]),
        field("expectedCompletionTime", Time).at(&[4]),
        field("heartbeatTime", Time).at(&[3]),
        field("message", String).omitted().at(&[6]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("startTime", Time).at(&[2]),
    ],
    wire: &[4, 5, 2, 1, 0, 3],
};

pub(super) static TARGET_RESPONDER: Type = Type {
    name: "io.k8s.api.lifecycle.v1alpha1.TargetResponder",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("priority", Int32).zero().required().at(&[2]).always(),
        field("state", String).zero().required().at(&[3]).always(),
    ],
    wire: &[0, 1, 2],
};
