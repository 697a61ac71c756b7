//! What is counted of conversions, under kube-apiserver's names.

use std::time::Duration;

use corten_metrics::{BoundedLabels, HistogramVec, IntCounterVec, Registry, forget_labelled, registered};

/// In seconds: `latencyBuckets` of kube-apiserver's conversion metrics.
const SECONDS_OF_REQUESTS: [f64; 15] =
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
/// In seconds: fifteen buckets from a millisecond, each twice the one before.
const SECONDS_OF_CONVERSIONS: [f64; 15] =
    [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
/// So many definitions and versions are counted by name.
const LABELS_MAX: usize = 1000;
/// Every failure of a call is this one, whatever is wrong with the answer (upstream's `ConversionWebhookCallFailure`).
const FAILURE: &str = "conversion_webhook_call_failure";

pub(crate) struct Measures {
    requests: IntCounterVec,
    request_seconds: HistogramVec,
    conversion_seconds: HistogramVec,
    bound: BoundedLabels,
}

pub(crate) struct ConversionLabels<'a> {
    pub(crate) definition: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

impl Measures {
    pub(crate) fn new(registry: &Registry) -> Self {
        let results = ["result", "failure_type"];
        Self {
            requests: registered::counter(
                registry,
                "apiserver_conversion_webhook_request_total",
                "Counter for conversion webhook requests with success/failure and failure error type",
                &results,
            ),
            request_seconds: registered::histogram(
                registry,
                "apiserver_conversion_webhook_duration_seconds",
                "Conversion webhook request latency",
                SECONDS_OF_REQUESTS.to_vec(),
                &results,
            ),
            conversion_seconds: registered::histogram(
                registry,
                "apiserver_crd_conversion_webhook_duration_seconds",
                "CRD webhook conversion duration in seconds",
                SECONDS_OF_CONVERSIONS.to_vec(),
                &["crd_name", "from_version", "to_version", "succeeded"],
            ),
            bound: BoundedLabels::new(LABELS_MAX),
        }
    }

    pub(crate) fn asked(&self, took: Duration, is_answered: bool) {
        let labels = if is_answered { ["success", ""] } else { ["failure", FAILURE] };
        self.requests.with_label_values(&labels).inc();
        self.request_seconds.with_label_values(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn forget(&self, definition: &str) {
        self.bound.forget(definition);
        forget_labelled(&self.conversion_seconds, "crd_name", definition);
    }

    pub(crate) fn converted(&self, what: &ConversionLabels<'_>, took: Duration, succeeded: bool) {
        let ConversionLabels { definition, from, to } = what;
        let labels = [*definition, *from, *to, if succeeded { "true" } else { "false" }];
        if self.bound.admits(&labels) {
            self.conversion_seconds.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }
}
