//! The types of `io.k8s.api.discovery.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static ENDPOINT: Type = Type {
    name: "io.k8s.api.discovery.v1.Endpoint",
    atomic: false,
    fields: &[
        field("addresses", List(&String))
            .required()
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[1]),
        field("conditions", Object(&super::discovery_v1::ENDPOINT_CONDITIONS)).zero().at(&[2]).always(),
        field("deprecatedTopology", Map(&String)).at(&[5]),
        field("hints", Object(&super::discovery_v1::ENDPOINT_HINTS)).at(&[8]),
        field("hostname", String).at(&[3]),
        field("nodeName", String).at(&[6]),
        field("targetRef", Object(&super::core_v1::OBJECT_REFERENCE)).at(&[4]),
        field("zone", String).at(&[7]),
    ],
    wire: &[0, 1, 4, 6, 2, 5, 7, 3],
};

pub(super) static ENDPOINT_CONDITIONS: Type = Type {
    name: "io.k8s.api.discovery.v1.EndpointConditions",
    atomic: false,
    fields: &[
        field("ready", Boolean).at(&[1]),
        field("serving", Boolean).at(&[2]),
        field("terminating", Boolean).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static ENDPOINT_HINTS: Type = Type {
    name: "io.k8s.api.discovery.v1.EndpointHints",
    atomic: false,
    fields: &[
        field("forNodes", List(&Object(&super::discovery_v1::FOR_NODE))).at(&[2]),
        field("forZones", List(&Object(&super::discovery_v1::FOR_ZONE))).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static ENDPOINT_PORT: Type = Type {
    name: "io.k8s.api.discovery.v1.EndpointPort",
    atomic: true,
    fields: &[
        field("appProtocol", String).at(&[4]),
        field("name", String).at(&[1]),
        field("port", Int32).at(&[3]),
        field("protocol", String).at(&[2]),
    ],
    wire: &[1, 3, 2, 0],
};

pub(super) static ENDPOINT_SLICE: Type = Type {
    name: "io.k8s.api.discovery.v1.EndpointSlice",
    atomic: false,
    fields: &[
        field("addressType", String).zero().required().at(&[4]).always(),
        field("apiVersion", String),
        field("endpoints", List(&Object(&super::discovery_v1::ENDPOINT))).at(&[2]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("ports", List(&Object(&super::discovery_v1::ENDPOINT_PORT))).at(&[3]),
    ],
    wire: &[4, 2, 5, 0],
};

pub(super) static FOR_NODE: Type = Type {
    name: "io.k8s.api.discovery.v1.ForNode",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static FOR_ZONE: Type = Type {
    name: "io.k8s.api.discovery.v1.ForZone",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};
