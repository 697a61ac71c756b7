//! How long expressions of admission take.

use std::time::Duration;

use prometheus::{Histogram, Registry};

use crate::registered::histogram;

/// In seconds: kube-apiserver's buckets of both (`apiserver/pkg/admission/plugin/cel/metrics`).
const SECONDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

/// Clones count together.
#[derive(Clone)]
pub struct CelMetrics {
    compilation: Histogram,
    evaluation: Histogram,
}

impl CelMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let of = |name, help| histogram(registry, name, help, SECONDS.to_vec(), &[]).with_label_values::<&str>(&[]);
        Self {
            compilation: of("apiserver_cel_compilation_duration_seconds", "CEL compilation time in seconds."),
            evaluation: of("apiserver_cel_evaluation_duration_seconds", "CEL evaluation time in seconds."),
        }
    }

    /// All expressions of one object were compiled.
    pub fn compiled(&self, took: Duration) {
        self.compilation.observe(took.as_secs_f64());
    }

    /// Expressions that are asked together were asked once.
    pub fn evaluated(&self, took: Duration) {
        self.evaluation.observe(took.as_secs_f64());
    }
}
