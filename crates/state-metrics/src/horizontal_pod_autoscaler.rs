//! What is told of HorizontalPodAutoscalers.

mod measures;

use corten_api::resources::HORIZONTAL_POD_AUTOSCALERS as RESOURCE;
use corten_meta::{ObjectMeta, Quantity, Resource};
use serde::Deserialize;

use self::measures::Measure;

use crate::{
    conditions::{self, Condition},
    family::{Family, KindMetrics},
};

static HORIZONTAL_POD_AUTOSCALERS_AT: Resource = RESOURCE;

pub(crate) static HORIZONTAL_POD_AUTOSCALERS: KindMetrics<HorizontalPodAutoscaler> = KindMetrics {
    resource: &HORIZONTAL_POD_AUTOSCALERS_AT,
    labels: &["namespace", "horizontalpodautoscaler"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HorizontalPodAutoscaler {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    behavior: Behavior,
    max_replicas: i32,
    metrics: Vec<Measure>,
    min_replicas: Option<i32>,
    scale_target_ref: ScaleTarget,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Behavior {
    scale_down: ScalingRules,
    scale_up: ScalingRules,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScalingRules {
    tolerance: Option<Quantity>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScaleTarget {
    api_version: String,
    kind: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Vec<Condition>,
    current_metrics: Vec<Measure>,
    current_replicas: i32,
    desired_replicas: i32,
    observed_generation: Option<i64>,
}

const FAMILIES: &[Family<HorizontalPodAutoscaler>] = &[
    Family::gauge("kube_horizontalpodautoscaler_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_horizontalpodautoscaler_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_horizontalpodautoscaler_info",
        "Information about this autoscaler.",
        &["scaletargetref_api_version", "scaletargetref_kind", "scaletargetref_name"],
        |it, out| {
            let target = &it.spec.scale_target_ref;
            out.add(&[&target.api_version, &target.kind, &target.name], 1.0);
        },
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_metadata_generation",
        "The generation observed by the HorizontalPodAutoscaler controller.",
        &[],
        |it, out| out.one(it.metadata.generation),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_spec_behavior_scale_down_tolerance",
        "How far a metric may be below its target before the autoscaler scales down, as a share of the target.",
        &[],
        |it, out| out.one(it.spec.behavior.scale_down.tolerance),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_spec_behavior_scale_up_tolerance",
        "How far a metric may be above its target before the autoscaler scales up, as a share of the target.",
        &[],
        |it, out| out.one(it.spec.behavior.scale_up.tolerance),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_spec_max_replicas",
        "Upper limit for the number of pods that can be set by the autoscaler; cannot be smaller than MinReplicas.",
        &[],
        |it, out| out.one(it.spec.max_replicas),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_spec_min_replicas",
        "Lower limit for the number of pods that can be set by the autoscaler, default 1.",
        &[],
        |it, out| out.one(it.spec.min_replicas.or(Some(1))),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_spec_target_metric",
        "The metric specifications used by this autoscaler when calculating the desired replica count.",
        measures::LABELS,
        |it, out| measures::of(&it.spec.metrics, |it| &it.target, out),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_status_condition",
        "The condition of this autoscaler.",
        &["condition", "status"],
        |it, out| conditions::of_each(&it.status.conditions, out),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_status_current_replicas",
        "Current number of replicas of pods managed by this autoscaler.",
        &[],
        |it, out| out.one(it.status.current_replicas),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_status_desired_replicas",
        "Desired number of replicas of pods managed by this autoscaler.",
        &[],
        |it, out| out.one(it.status.desired_replicas),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_status_observed_generation",
        "The most recent generation observed by this autoscaler.",
        &[],
        |it, out| out.one(it.status.observed_generation),
    ),
    Family::gauge(
        "kube_horizontalpodautoscaler_status_target_metric",
        "The current metric status used by this autoscaler when calculating the desired replica count.",
        measures::LABELS,
        |it, out| measures::of(&it.status.current_metrics, |it| &it.current, out),
    ),
];
