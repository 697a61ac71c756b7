//! The types of `io.k8s.api.autoscaling.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CROSS_VERSION_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.autoscaling.v1.CrossVersionObjectReference",
    atomic: true,
    fields: &[
        field("apiVersion", String).at(&[3]).always(),
        field("kind", String).zero().required().at(&[1]).always(),
        field("name", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER: Type = Type {
    name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::autoscaling_v1::HORIZONTAL_POD_AUTOSCALER_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::autoscaling_v1::HORIZONTAL_POD_AUTOSCALER_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER_SPEC: Type = Type {
    name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec",
    atomic: false,
    fields: &[
        field("maxReplicas", Int32).zero().required().at(&[3]).always(),
        field("minReplicas", Int32).at(&[2]),
        field("scaleTargetRef", Object(&super::autoscaling_v1::CROSS_VERSION_OBJECT_REFERENCE))
            .zero()
            .required()
            .at(&[1])
            .always(),
        field("targetCPUUtilizationPercentage", Int32).at(&[4]),
    ],
    wire: &[2, 1, 0, 3],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerStatus",
    atomic: false,
    fields: &[
        field("currentCPUUtilizationPercentage", Int32).at(&[5]),
        field("currentReplicas", Int32).zero().required().at(&[3]).always(),
        field("desiredReplicas", Int32).zero().required().at(&[4]).always(),
        field("lastScaleTime", Time).at(&[2]),
        field("observedGeneration", Int64).omitted().at(&[1]),
    ],
    wire: &[4, 3, 1, 2, 0],
};

pub(super) static SCALE: Type = Type {
    name: "io.k8s.api.autoscaling.v1.Scale",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::autoscaling_v1::SCALE_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::autoscaling_v1::SCALE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static SCALE_SPEC: Type = Type {
    name: "io.k8s.api.autoscaling.v1.ScaleSpec",
    atomic: false,
    fields: &[field("replicas", Int32).zero().at(&[1]).always()],
    wire: &[0],
};

pub(super) static SCALE_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v1.ScaleStatus",
    atomic: false,
    fields: &[
        field("replicas", Int32).zero().required().at(&[1]).always(),
        field("selector", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};
