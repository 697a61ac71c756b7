//! What is counted of checks, under kube-apiserver's names.

use std::time::Duration;

use corten_cacher::derived::ByName;
use corten_metrics::{
    BoundedLabels, CelMetrics, HistogramVec, IntCounterVec, MatchConditions, Metrics, Registry, forget_labelled,
    registered,
};
use corten_policies::{admission_policy::Policy, matching::Verdict};

use crate::measures::outcome_of;

/// In seconds: the buckets of kube-apiserver's policy metrics.
const SECONDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const VALIDATING_LABELS: [&str; 4] = ["policy", "policy_binding", "error_type", "enforcement_action"];
const MUTATING_LABELS: [&str; 3] = ["policy", "policy_binding", "error_type"];
/// So many different policies and bindings are counted by name, of each kind.
const LABELS_MAX: usize = 1000;

pub(crate) struct Measures {
    validating: Checks,
    mutating: Checks,
    conditions: MatchConditions,
    pub(crate) cel: CelMetrics,
}

/// The checks of one kind of policies.
struct Checks {
    total: IntCounterVec,
    durations: HistogramVec,
    bound: BoundedLabels,
}

impl Measures {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let registry = metrics.registry();
        let validating = Checks::new(
            registry,
            (
                "apiserver_validating_admission_policy_check_total",
                "Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.",
            ),
            (
                "apiserver_validating_admission_policy_check_duration_seconds",
                "Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
            ),
            &VALIDATING_LABELS,
        );
        let mutating = Checks::new(
            registry,
            (
                "apiserver_mutating_admission_policy_check_total",
                "Mutation admission policy check total, labeled by policy and further identified by binding.",
            ),
            (
                "apiserver_mutating_admission_policy_check_duration_seconds",
                "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
            ),
            &MUTATING_LABELS,
        );
        Self { validating, mutating, conditions: metrics.policy_conditions.clone(), cel: metrics.cel.clone() }
    }

    /// Policies that are gone leave their places where these are few.
    pub(crate) fn make_room<V, M>(&self, validating: &ByName<V>, mutating: &ByName<M>) {
        self.validating.make_room(|it| validating.contains_key(it));
        self.mutating.make_room(|it| mutating.contains_key(it));
        self.conditions.make_room(|it| validating.contains_key(it) || mutating.contains_key(it));
    }

    /// The match conditions of a policy were asked. Those of mutating policies count as `validate`, too (`mutating.compilePolicy`).
    pub(crate) fn conditions(&self, policy: &Policy, operation: &str, verdict: &Verdict, took: Duration) {
        self.conditions.asked([&policy.name, "validate", operation], outcome_of(verdict), took);
    }

    /// `action` is `allow`, `deny`, `warn` or `audit`.
    pub(crate) fn checked(&self, policy: &str, binding: &str, error: &str, action: &str, took: Duration) {
        self.validating.checked(&[policy, binding, error, action], took);
    }

    /// One mutation was asked, or the conditions of the policy.
    pub(crate) fn mutated(&self, policy: &str, binding: &str, error: &str, took: Duration) {
        self.mutating.checked(&[policy, binding, error], took);
    }
}

impl Checks {
    fn new(registry: &Registry, total: (&str, &str), durations: (&str, &str), labels: &[&str]) -> Self {
        Self {
            total: registered::counter(registry, total.0, total.1, labels),
            durations: registered::histogram(registry, durations.0, durations.1, SECONDS.to_vec(), labels),
            bound: BoundedLabels::new(LABELS_MAX),
        }
    }

    fn make_room(&self, is_current: impl Fn(&str) -> bool) {
        for policy in self.bound.make_room(is_current) {
            forget_labelled(&self.total, "policy", &policy);
            forget_labelled(&self.durations, "policy", &policy);
        }
    }

    fn checked(&self, labels: &[&str], took: Duration) {
        if self.bound.admits(labels) {
            self.total.with_label_values(labels).inc();
            self.durations.with_label_values(labels).observe(took.as_secs_f64());
        }
    }
}
