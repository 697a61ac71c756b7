//! What is counted of match conditions, under kube-apiserver's names: those of webhooks and those of admission policies.

use std::{sync::Arc, time::Duration};

use prometheus::{HistogramVec, IntCounterVec, Registry};

use crate::{
    bounded::{BoundedLabels, forget_row},
    registered,
};

/// In seconds: kube-apiserver's buckets of what match conditions take.
const SECONDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const LABELS: [&str; 4] = ["name", "kind", "type", "operation"];
/// So many different webhooks and policies are counted by name, of each kind.
const LABELS_MAX: usize = 1000;

/// Of one kind, `webhook` or `policy`. Clones count together.
#[derive(Clone)]
pub struct MatchConditions {
    kind: &'static str,
    vectors: Vectors,
    bound: Arc<BoundedLabels>,
}

#[derive(Clone)]
struct Vectors {
    errors: IntCounterVec,
    exclusions: IntCounterVec,
    seconds: HistogramVec,
}

/// What came of asking all conditions of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Match,
    Exclusion,
    Error,
}

impl MatchConditions {
    /// Those of webhooks, and those of policies.
    pub(crate) fn new(registry: &Registry) -> [Self; 2] {
        let counter = |name, help| registered::counter(registry, name, help, &LABELS);
        let vectors = Vectors {
            errors: counter(
                "apiserver_admission_match_condition_evaluation_errors_total",
                "Admission match condition evaluation errors count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
            ),
            exclusions: counter(
                "apiserver_admission_match_condition_exclusions_total",
                "Admission match condition evaluation exclusions count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
            ),
            seconds: registered::histogram(
                registry,
                "apiserver_admission_match_condition_evaluation_seconds",
                "Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
                SECONDS.to_vec(),
                &LABELS,
            ),
        };
        ["webhook", "policy"].map(|kind| {
            let bound = Arc::new(BoundedLabels::new(LABELS_MAX));
            Self { kind, vectors: vectors.clone(), bound }
        })
    }

    /// Names that nobody has any more leave their places where these are few.
    pub fn make_room(&self, is_current: impl Fn(&str) -> bool) {
        for name in self.bound.make_room(is_current) {
            let labels = [("name", &*name), ("kind", self.kind)];
            forget_row(&self.vectors.errors, &labels);
            forget_row(&self.vectors.exclusions, &labels);
            forget_row(&self.vectors.seconds, &labels);
        }
    }

    /// The conditions of `name` were asked about a request.
    pub fn asked(&self, [name, phase, operation]: [&str; 3], outcome: Outcome, took: Duration) {
        if !self.bound.admits(&[name, phase, operation]) {
            return;
        }
        let labels = [name, self.kind, phase, operation];
        self.vectors.seconds.with_label_values(&labels).observe(took.as_secs_f64());
        match outcome {
            Outcome::Match => {}
            Outcome::Exclusion => self.vectors.exclusions.with_label_values(&labels).inc(),
            Outcome::Error => self.vectors.errors.with_label_values(&labels).inc(),
        }
    }
}
