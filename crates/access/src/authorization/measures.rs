//! What is counted of decisions, under the names of kube-apiserver's metrics `apiserver_authorization_*`.

use std::time::Duration;

use corten_metrics::{HistogramVec, IntCounter, IntCounterVec, Registry, registered};

use super::verdict::Opinion;
use crate::remote::Outcome;

/// In seconds: Prometheus's default buckets.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

const SECONDS_OF_CONDITIONS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// Counted by the types and names of authorizers, of which a configuration has few.
#[derive(Clone)]
pub(super) struct Measures {
    decisions: IntCounterVec,
    condition_errors: IntCounterVec,
    exclusions: IntCounterVec,
    condition_seconds: HistogramVec,
    evaluations: IntCounterVec,
    failed_open: IntCounterVec,
    seconds: HistogramVec,
}

impl Measures {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| registered::counter(registry, name, help, labels);
        Self {
            decisions: counter(
                "apiserver_authorization_decisions_total",
                "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
                &["type", "name", "decision"],
            ),
            condition_errors: counter(
                "apiserver_authorization_match_condition_evaluation_errors_total",
                "Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.",
                &["type", "name"],
            ),
            exclusions: counter(
                "apiserver_authorization_match_condition_exclusions_total",
                "Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
                &["type", "name"],
            ),
            condition_seconds: registered::histogram(
                registry,
                "apiserver_authorization_match_condition_evaluation_seconds",
                "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
                SECONDS_OF_CONDITIONS.to_vec(),
                &["type", "name"],
            ),
            evaluations: counter(
                "apiserver_authorization_webhook_evaluations_total",
                "Round-trips to authorization webhooks.",
                &["name", "result"],
            ),
            failed_open: counter(
                "apiserver_authorization_webhook_evaluations_fail_open_total",
                "NoOpinion results due to webhook timeout or error.",
                &["name", "result"],
            ),
            seconds: registered::histogram(
                registry,
                "apiserver_authorization_webhook_duration_seconds",
                "Request latency in seconds.",
                SECONDS.to_vec(),
                &["name", "result"],
            ),
        }
    }

    pub(super) fn decisions(&self, of: &str, name: &str) -> Decisions {
        let by = |decision| self.decisions.with_label_values(&[of, name, decision]);
        Decisions { allowed: by("allowed"), denied: by("denied") }
    }

    pub(super) fn webhook(&self, name: &str) -> WebhookMeasures {
        WebhookMeasures { name: name.to_owned(), measures: self.clone() }
    }
}

/// Of one authorizer: what its decisions count up is looked up once.
pub(super) struct Decisions {
    allowed: IntCounter,
    denied: IntCounter,
}

impl Decisions {
    pub(super) fn count(&self, opinion: Opinion) {
        match opinion {
            Opinion::Allow => self.allowed.inc(),
            Opinion::Deny => self.denied.inc(),
            Opinion::None => {}
        }
    }
}

/// Of one webhook.
pub(super) struct WebhookMeasures {
    name: String,
    measures: Measures,
}

impl WebhookMeasures {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn excluded(&self) {
        self.measures.exclusions.with_label_values(&["Webhook", &self.name]).inc();
    }

    pub(super) fn conditions_took(&self, took: Duration) {
        let seconds = self.measures.condition_seconds.with_label_values(&["Webhook", &*self.name]);
        seconds.observe(took.as_secs_f64());
    }

    pub(super) fn condition_failed(&self) {
        self.measures.condition_errors.with_label_values(&["Webhook", &self.name]).inc();
    }

    pub(super) fn asked(&self, outcome: Outcome, took: Duration) {
        let labels = [&*self.name, outcome.as_str()];
        self.measures.evaluations.with_label_values(&labels).inc();
        self.measures.seconds.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub(super) fn failed_open(&self, outcome: Outcome) {
        self.measures.failed_open.with_label_values(&[&*self.name, outcome.as_str()]).inc();
    }
}
