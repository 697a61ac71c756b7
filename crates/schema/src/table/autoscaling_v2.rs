//! The types of `io.k8s.api.autoscaling.v2`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CONTAINER_RESOURCE_METRIC_SOURCE: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ContainerResourceMetricSource",
    atomic: false,
    fields: &[
        field("container", String).zero().required().at(&[3]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("target", Object(&super::autoscaling_v2::METRIC_TARGET)).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static CONTAINER_RESOURCE_METRIC_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ContainerResourceMetricStatus",
    atomic: false,
    fields: &[
        field("container", String).zero().required().at(&[3]).always(),
        field("current", Object(&super::autoscaling_v2::METRIC_VALUE_STATUS)).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static CROSS_VERSION_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.autoscaling.v2.CrossVersionObjectReference",
    atomic: false,
    fields: &[
        field("apiVersion", String).at(&[3]).always(),
        field("kind", String).zero().required().at(&[1]).always(),
        field("name", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static EXTERNAL_METRIC_SOURCE: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ExternalMetricSource",
    atomic: false,
    fields: &[
        field("metric", Object(&super::autoscaling_v2::METRIC_IDENTIFIER)).zero().required().at(&[1]).always(),
        field("target", Object(&super::autoscaling_v2::METRIC_TARGET)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EXTERNAL_METRIC_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ExternalMetricStatus",
    atomic: false,
    fields: &[
        field("current", Object(&super::autoscaling_v2::METRIC_VALUE_STATUS)).zero().required().at(&[2]).always(),
        field("metric", Object(&super::autoscaling_v2::METRIC_IDENTIFIER)).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static HPA_SCALING_POLICY: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HPAScalingPolicy",
    atomic: false,
    fields: &[
        field("periodSeconds", Int32).zero().required().at(&[3]).always(),
        field("type", String).zero().required().at(&[1]).always(),
        field("value", Int32).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static HPA_SCALING_RULES: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HPAScalingRules",
    atomic: false,
    fields: &[
        field("policies", List(&Object(&super::autoscaling_v2::HPA_SCALING_POLICY))).at(&[2]),
        field("selectPolicy", String).at(&[1]),
        field("stabilizationWindowSeconds", Int32).at(&[3]),
        field("tolerance", Quantity).at(&[4]),
    ],
    wire: &[1, 0, 2, 3],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::autoscaling_v2::HORIZONTAL_POD_AUTOSCALER_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::autoscaling_v2::HORIZONTAL_POD_AUTOSCALER_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER_BEHAVIOR: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior",
    atomic: false,
    fields: &[
        field("scaleDown", Object(&super::autoscaling_v2::HPA_SCALING_RULES)).at(&[2]),
        field("scaleUp", Object(&super::autoscaling_v2::HPA_SCALING_RULES)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER_CONDITION: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("observedGeneration", Int64).omitted().at(&[6]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 0, 3, 1, 2],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER_SPEC: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec",
    atomic: false,
    fields: &[
        field("behavior", Object(&super::autoscaling_v2::HORIZONTAL_POD_AUTOSCALER_BEHAVIOR)).at(&[5]),
        field("maxReplicas", Int32).zero().required().at(&[3]).always(),
        field("metrics", List(&Object(&super::autoscaling_v2::METRIC_SPEC))).at(&[4]),
        field("minReplicas", Int32).at(&[2]),
        field("scaleTargetRef", Object(&super::autoscaling_v2::CROSS_VERSION_OBJECT_REFERENCE))
            .zero()
            .required()
            .at(&[1])
            .always(),
    ],
    wire: &[4, 3, 1, 2, 0],
};

pub(super) static HORIZONTAL_POD_AUTOSCALER_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::autoscaling_v2::HORIZONTAL_POD_AUTOSCALER_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[6]),
        field("currentMetrics", List(&Object(&super::autoscaling_v2::METRIC_STATUS))).at(&[5]),
        field("currentReplicas", Int32).omitted().at(&[3]).always(),
        field("desiredReplicas", Int32).zero().required().at(&[4]).always(),
        field("lastScaleTime", Time).at(&[2]),
        field("observedGeneration", Int64).omitted().at(&[1]),
    ],
    wire: &[5, 4, 2, 3, 1, 0],
};

pub(super) static METRIC_IDENTIFIER: Type = Type {
    name: "io.k8s.api.autoscaling.v2.MetricIdentifier",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static METRIC_SPEC: Type = Type {
    name: "io.k8s.api.autoscaling.v2.MetricSpec",
    atomic: false,
    fields: &[
        field("containerResource", Object(&super::autoscaling_v2::CONTAINER_RESOURCE_METRIC_SOURCE)).at(&[7]),
        field("external", Object(&super::autoscaling_v2::EXTERNAL_METRIC_SOURCE)).at(&[5]),
        field("object", Object(&super::autoscaling_v2::OBJECT_METRIC_SOURCE)).at(&[2]),
        field("pods", Object(&super::autoscaling_v2::PODS_METRIC_SOURCE)).at(&[3]),
        field("resource", Object(&super::autoscaling_v2::RESOURCE_METRIC_SOURCE)).at(&[4]),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 2, 3, 4, 1, 0],
};

pub(super) static METRIC_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.MetricStatus",
    atomic: false,
    fields: &[
        field("containerResource", Object(&super::autoscaling_v2::CONTAINER_RESOURCE_METRIC_STATUS)).at(&[7]),
        field("external", Object(&super::autoscaling_v2::EXTERNAL_METRIC_STATUS)).at(&[5]),
        field("object", Object(&super::autoscaling_v2::OBJECT_METRIC_STATUS)).at(&[2]),
        field("pods", Object(&super::autoscaling_v2::PODS_METRIC_STATUS)).at(&[3]),
        field("resource", Object(&super::autoscaling_v2::RESOURCE_METRIC_STATUS)).at(&[4]),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 2, 3, 4, 1, 0],
};

pub(super) static METRIC_TARGET: Type = Type {
    name: "io.k8s.api.autoscaling.v2.MetricTarget",
    atomic: false,
    fields: &[
        field("averageUtilization", Int32).at(&[4]),
        field("averageValue", Quantity).at(&[3]),
        field("type", String).zero().required().at(&[1]).always(),
        field("value", Quantity).at(&[2]),
    ],
    wire: &[2, 3, 1, 0],
};

pub(super) static METRIC_VALUE_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.MetricValueStatus",
    atomic: false,
    fields: &[
        field("averageUtilization", Int32).at(&[3]),
        field("averageValue", Quantity).at(&[2]),
        field("value", Quantity).at(&[1]),
    ],
    wire: &[2, 1, 0],
};

pub(super) static OBJECT_METRIC_SOURCE: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ObjectMetricSource",
    atomic: false,
    fields: &[
        field("describedObject", Object(&super::autoscaling_v2::CROSS_VERSION_OBJECT_REFERENCE))
            .zero()
            .required()
            .at(&[1])
            .always(),
        field("metric", Object(&super::autoscaling_v2::METRIC_IDENTIFIER)).zero().required().at(&[3]).always(),
        field("target", Object(&super::autoscaling_v2::METRIC_TARGET)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 2, 1],
};

pub(super) static OBJECT_METRIC_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ObjectMetricStatus",
    atomic: false,
    fields: &[
        field("current", Object(&super::autoscaling_v2::METRIC_VALUE_STATUS)).zero().required().at(&[2]).always(),
        field("describedObject", Object(&super::autoscaling_v2::CROSS_VERSION_OBJECT_REFERENCE))
            .zero()
            .required()
            .at(&[3])
            .always(),
        field("metric", Object(&super::autoscaling_v2::METRIC_IDENTIFIER)).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static PODS_METRIC_SOURCE: Type = Type {
    name: "io.k8s.api.autoscaling.v2.PodsMetricSource",
    atomic: false,
    fields: &[
        field("metric", Object(&super::autoscaling_v2::METRIC_IDENTIFIER)).zero().required().at(&[1]).always(),
        field("target", Object(&super::autoscaling_v2::METRIC_TARGET)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static PODS_METRIC_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.PodsMetricStatus",
    atomic: false,
    fields: &[
        field("current", Object(&super::autoscaling_v2::METRIC_VALUE_STATUS)).zero().required().at(&[2]).always(),
        field("metric", Object(&super::autoscaling_v2::METRIC_IDENTIFIER)).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static RESOURCE_METRIC_SOURCE: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ResourceMetricSource",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("target", Object(&super::autoscaling_v2::METRIC_TARGET)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static RESOURCE_METRIC_STATUS: Type = Type {
    name: "io.k8s.api.autoscaling.v2.ResourceMetricStatus",
    atomic: false,
    fields: &[
        field("current", Object(&super::autoscaling_v2::METRIC_VALUE_STATUS)).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};
