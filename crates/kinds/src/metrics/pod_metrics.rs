//! What one pod uses, container by container.

use corten_api::resources::POD_METRICS;

use super::{CPU, MEMORY, WINDOW};
use crate::{BuiltIn, Policy, Verb};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: POD_METRICS,
    // metrics-server says no singular; clients say `podmetrics`.
    singular: "",
    short_names: &[],
    categories: &[],
    verbs: Verb::READ_ONLY,
    subresources: &[],
    schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
    view_of: None,
    selectable_fields: &[],
    columns: &[CPU, MEMORY, WINDOW],
    policy: &PodMetrics,
};

struct PodMetrics;

impl Policy for PodMetrics {
    fn has_generation(&self) -> bool {
        false
    }
}
