//! What an autoscaler decides by: what each metric is to be, and what it is.

use corten_meta::Quantity;
use serde::Deserialize;

use crate::exposition::{Number, Samples};

/// An entry of `spec.metrics` or `status.currentMetrics`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Measure {
    #[serde(rename = "type")]
    of: String,
    container_resource: Option<Source>,
    external: Option<Source>,
    object: Option<Source>,
    pods: Option<Source>,
    resource: Option<Source>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Source {
    container: String,
    metric: Metric,
    /// Of a resource, which is no metric.
    name: String,
    pub(super) current: Values,
    pub(super) target: Values,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metric {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Values {
    average_utilization: Option<i32>,
    average_value: Option<Quantity>,
    value: Option<Quantity>,
}

impl Measure {
    fn source(&self) -> Option<&Source> {
        let source = match &*self.of {
            "ContainerResource" => &self.container_resource,
            "External" => &self.external,
            "Object" => &self.object,
            "Pods" => &self.pods,
            "Resource" => &self.resource,
            _ => return None,
        };
        source.as_ref()
    }
}

pub(super) const LABELS: &[&str] = &["metric_name", "metric_target_type", "container"];

pub(super) fn of(measures: &[Measure], values: fn(&Source) -> &Values, out: &mut Samples<'_>) {
    for source in measures.iter().filter_map(Measure::source) {
        let name = if source.name.is_empty() { &source.metric.name } else { &source.name };
        let Values { average_utilization, average_value, value } = values(source);
        let told = [
            ("value", value.number()),
            ("utilization", average_utilization.number()),
            ("average", average_value.number()),
        ];
        for (of, number) in told {
            if let Some(number) = number {
                out.add(&[name, of, &source.container], number);
            }
        }
    }
}
