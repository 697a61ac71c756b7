//! The fields of a VerticalPodAutoscaler.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{Quantity, Resource, Time};
use corten_reconcile::{Condition, is_zero, or_default};
use serde::{Deserialize, Serialize};

use crate::{
    scaler::{Scaler, ScalerSpec},
    target::Reference,
};

pub(super) type Autoscaler = Scaler<Spec>;

impl ScalerSpec for Spec {
    type Status = Status;
    const RESOURCE: Resource = resources::VERTICAL_POD_AUTOSCALERS;
}

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) target_ref: Reference,
    #[serde(default)]
    pub(super) mode: String,
    #[serde(default)]
    pub(super) headroom_percent: i64,
    #[serde(default, deserialize_with = "or_default")]
    containers: Vec<ContainerBounds>,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerBounds {
    name: String,
    #[serde(deserialize_with = "or_default")]
    min_allowed: BTreeMap<String, Quantity>,
    #[serde(deserialize_with = "or_default")]
    max_allowed: BTreeMap<String, Quantity>,
}

impl Spec {
    /// As much as the container may have of the resource. `*` is about those that have no bounds of their own.
    pub(super) fn within_bounds(&self, container: &str, resource: &str, wanted: Quantity) -> Quantity {
        let of = |name: &str| self.containers.iter().find(|it| it.name == name);
        let Some(bounds) = of(container).or_else(|| of("*")) else { return wanted };
        let least = bounds.min_allowed.get(resource).copied().map_or(wanted, |it| it.max(wanted));
        bounds.max_allowed.get(resource).copied().map_or(least, |it| it.min(least))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) pods: i64,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(super) recommendations: Vec<Recommendation>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<Condition>,
}

/// Of one resource for one container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recommendation {
    pub(super) container: String,
    pub(super) resource: String,
    /// The highest use that counts, and when it was seen.
    pub(super) peak: Quantity,
    pub(super) peak_time: Time,
    pub(super) target: Quantity,
}
