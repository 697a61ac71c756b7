//! The fields of a HorizontalPodAutoscaler.

use corten_api::resources;
use corten_meta::{LabelSelector, Quantity, Resource, Time};
use corten_reconcile::{Condition, is_zero, or_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    scaler::{Scaler, ScalerSpec},
    target::Reference,
};

pub(super) type Autoscaler = Scaler<Spec>;

impl ScalerSpec for Spec {
    type Status = Status;
    const RESOURCE: Resource = resources::HORIZONTAL_POD_AUTOSCALERS;
}

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) scale_target_ref: Reference,
    #[serde(default)]
    pub(super) min_replicas: Option<i64>,
    #[serde(default)]
    pub(super) max_replicas: i64,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) metrics: Vec<MetricSpec>,
    #[serde(default)]
    pub(super) behavior: Option<Behavior>,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MetricSpec {
    pub(super) r#type: String,
    pub(super) object: Option<Source>,
    pub(super) pods: Option<Source>,
    pub(super) resource: Option<Source>,
    pub(super) container_resource: Option<Source>,
    pub(super) external: Option<Source>,
}

/// What is measured: the fields of all five sources.
#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Source {
    pub(super) metric: Identifier,
    pub(super) described_object: Reference,
    /// The resource's.
    pub(super) name: String,
    pub(super) container: String,
    pub(super) target: Target,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Identifier {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) selector: Option<LabelSelector>,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Target {
    pub(super) r#type: String,
    pub(super) value: Option<Quantity>,
    pub(super) average_value: Option<Quantity>,
    pub(super) average_utilization: Option<i64>,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Behavior {
    pub(super) scale_up: ScalingRules,
    pub(super) scale_down: ScalingRules,
}

/// The API defaults what is not given.
#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ScalingRules {
    pub(super) stabilization_window_seconds: Option<i64>,
    pub(super) select_policy: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) policies: Vec<Policy>,
    pub(super) tolerance: Option<Quantity>,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Policy {
    pub(super) r#type: String,
    pub(super) value: i64,
    pub(super) period_seconds: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_scale_time: Option<Time>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) current_replicas: i64,
    pub(super) desired_replicas: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current_metrics: Option<Vec<Value>>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<Condition>,
}

impl Spec {
    pub(super) fn min(&self) -> i64 {
        self.min_replicas.unwrap_or(1)
    }

    /// Metrics that there are while no Pod is (`hasObjectOrExternalMetrics`).
    pub(super) fn measures_without_pods(&self) -> bool {
        self.metrics.iter().any(|it| matches!(&*it.r#type, "Object" | "External"))
    }
}

impl MetricSpec {
    /// Is it what Pods or containers use, as `metrics.k8s.io` tells it?
    pub(super) fn is_of_resource(&self) -> bool {
        matches!(&*self.r#type, "Resource" | "ContainerResource")
    }

    pub(super) fn source(&self) -> Option<&Source> {
        match &*self.r#type {
            "Object" => self.object.as_ref(),
            "Pods" => self.pods.as_ref(),
            "Resource" => self.resource.as_ref(),
            "ContainerResource" => self.container_resource.as_ref(),
            "External" => self.external.as_ref(),
            _ => None,
        }
    }
}
