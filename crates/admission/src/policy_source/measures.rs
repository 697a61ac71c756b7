//! What is counted of checks, under kube-apiserver's names.

use std::time::Duration;

use corten_metrics::{BoundedLabels, HistogramVec, IntCounterVec, Registry, forget_labelled, registered};

/// In seconds: the buckets of kube-apiserver's policy metrics.
const SECONDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const LABELS: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];
/// So many different policies and bindings are counted by name.
const LABELS_MAX: usize = 1000;

pub(crate) struct Measures {
    checks: IntCounterVec,
    durations: HistogramVec,
    bound: BoundedLabels,
}

impl Measures {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            checks: registered::counter(
                registry,
                "apiserver_validating_admission_policy_check_total",
                "Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.",
                &LABELS,
            ),
            durations: registered::histogram(
                registry,
                "apiserver_validating_admission_policy_check_duration_seconds",
                "Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
                SECONDS.to_vec(),
                &LABELS,
            ),
            bound: BoundedLabels::new(LABELS_MAX),
        }
    }

    /// Policies that are gone leave their places where these are few.
    pub(crate) fn make_room(&self, is_current: impl Fn(&str) -> bool) {
        for policy in self.bound.make_room(is_current) {
            forget_labelled(&self.checks, LABELS[0], &policy);
            forget_labelled(&self.durations, LABELS[0], &policy);
        }
    }

    /// `action` is `allow`, `deny`, `warn` or `audit`.
    pub(crate) fn checked(&self, policy: &str, binding: &str, error: &str, action: &str, took: Duration) {
        let labels = [policy, binding, error, action];
        if self.bound.admits(&labels) {
            self.checks.with_label_values(&labels).inc();
            self.durations.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }
}
