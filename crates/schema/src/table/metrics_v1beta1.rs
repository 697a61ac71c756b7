//! The types of `metrics.k8s.io/v1beta1`.

use super::build::*;

pub(super) static CONTAINER_METRICS: Type = Type {
    name: "io.k8s.metrics.pkg.apis.metrics.v1beta1.ContainerMetrics",
    atomic: false,
    fields: &[field("name", String).zero().required(), field("usage", Map(&Quantity)).required()],
    wire: &[],
};

pub(super) static NODE_METRICS: Type = Type {
    name: "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero(),
        field("timestamp", Time).required(),
        field("usage", Map(&Quantity)).required(),
        field("window", String).required(),
    ],
    wire: &[],
};

pub(super) static POD_METRICS: Type = Type {
    name: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("containers", List(&Object(&CONTAINER_METRICS))).required(),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero(),
        field("timestamp", Time).required(),
        field("window", String).required(),
    ],
    wire: &[],
};
