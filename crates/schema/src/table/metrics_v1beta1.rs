//! The types of `metrics.k8s.io/v1beta1`, with the numbers of its `generated.proto` (k8s.io/metrics).

use super::build::*;

pub(super) static CONTAINER_METRICS: Type = Type {
    name: "io.k8s.metrics.pkg.apis.metrics.v1beta1.ContainerMetrics",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("usage", Map(&Quantity)).required().at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static NODE_METRICS: Type = Type {
    name: "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().at(&[1]).always(),
        field("timestamp", Time).required().at(&[2]).always(),
        field("usage", Map(&Quantity)).required().at(&[4]),
        field("window", String).required().at(&[3]).always(),
    ],
    wire: &[2, 3, 5, 4],
};

pub(super) static POD_METRICS: Type = Type {
    name: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("containers", List(&Object(&CONTAINER_METRICS))).required().at(&[4]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().at(&[1]).always(),
        field("timestamp", Time).required().at(&[2]).always(),
        field("window", String).required().at(&[3]).always(),
    ],
    wire: &[3, 4, 5, 1],
};
