//! What one node uses.

use corten_api::resources::NODE_METRICS;

use super::{CPU, MEMORY, WINDOW};
use crate::{BuiltIn, Policy, Verb};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: NODE_METRICS,
    // metrics-server says no singular; clients say `nodemetrics`.
    singular: "",
    short_names: &[],
    categories: &[],
    verbs: Verb::READ_ONLY,
    subresources: &[],
    schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics",
    view_of: None,
    selectable_fields: &[],
    columns: &[CPU, MEMORY, WINDOW],
    policy: &NodeMetrics,
};

struct NodeMetrics;

impl Policy for NodeMetrics {
    fn has_generation(&self) -> bool {
        false
    }
}
