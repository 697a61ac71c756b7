//! What is counted of calls, under kube-apiserver's names.

use std::time::Duration;

use corten_metrics::{
    BoundedLabels, HistogramVec, IntCounterVec, MatchConditions, Metrics, forget_labelled, registered,
};
use corten_policies::matching::Verdict;

use crate::measures::outcome_of;

/// In seconds: `latencyBuckets` of kube-apiserver's admission metrics.
const SECONDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Larger codes are counted as this one (`AdmissionMetrics.ObserveWebhook`).
const CODE_MAX: u16 = 600;
/// So many different webhooks are counted by name.
const LABELS_MAX: usize = 1000;

/// What kind of webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Admit,
    Validating,
}

pub(crate) struct Measures {
    durations: HistogramVec,
    requests: IntCounterVec,
    rejections: IntCounterVec,
    fail_opens: IntCounterVec,
    conditions: MatchConditions,
    bound: BoundedLabels,
}

pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) phase: Phase,
    pub(crate) operation: &'a str,
}

#[derive(Clone, Copy)]
pub(crate) enum ErrorType {
    CallingWebhook,
    Internal,
    None,
}

impl Call<'_> {
    fn labels(&self) -> [&str; 3] {
        let phase = match self.phase {
            Phase::Admit => "admit",
            Phase::Validating => "validating",
        };
        [self.name, phase, self.operation]
    }
}

impl Measures {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let registry = metrics.registry();
        let counter = |name, help, labels| registered::counter(registry, name, help, labels);
        Self {
            durations: registered::histogram(
                registry,
                "apiserver_admission_webhook_admission_duration_seconds",
                "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                SECONDS.to_vec(),
                &["name", "type", "operation", "rejected"],
            ),
            requests: counter(
                "apiserver_admission_webhook_request_total",
                "Admission webhook request total, identified by name and broken out for each admission type (validating or mutating) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code.",
                &["name", "type", "operation", "code", "rejected"],
            ),
            rejections: counter(
                "apiserver_admission_webhook_rejection_count",
                "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            ),
            fail_opens: counter(
                "apiserver_admission_webhook_fail_open_count",
                "Admission webhook fail open count, identified by name and broken out for each admission type (validating or mutating).",
                &["name", "type"],
            ),
            conditions: metrics.webhook_conditions.clone(),
            bound: BoundedLabels::new(LABELS_MAX),
        }
    }

    /// Names that no webhook has any more leave their places where these are few.
    pub(crate) fn make_room(&self, is_current: impl Fn(&str) -> bool) {
        self.conditions.make_room(&is_current);
        for webhook in self.bound.make_room(is_current) {
            forget_labelled(&self.durations, "name", &webhook);
            for counter in [&self.requests, &self.rejections, &self.fail_opens] {
                forget_labelled(counter, "name", &webhook);
            }
        }
    }

    pub(crate) fn called(&self, call: &Call<'_>, took: Duration, rejected: bool, code: u16) {
        let labels @ [name, phase, operation] = call.labels();
        if !self.bound.admits(&labels) {
            return;
        }
        let rejected = if rejected { "true" } else { "false" };
        let code = code.min(CODE_MAX).to_string();
        self.requests.with_label_values(&[name, phase, operation, &*code, rejected]).inc();
        self.durations.with_label_values(&[name, phase, operation, rejected]).observe(took.as_secs_f64());
    }

    /// Its match conditions were asked.
    pub(crate) fn conditions(&self, call: &Call<'_>, verdict: &Verdict, took: Duration) {
        self.conditions.asked(call.labels(), outcome_of(verdict), took);
    }

    pub(crate) fn rejected(&self, call: &Call<'_>, error_type: ErrorType, code: u16) {
        let error_type = match error_type {
            ErrorType::CallingWebhook => "calling_webhook_error",
            ErrorType::Internal => "apiserver_internal_error",
            ErrorType::None => "no_error",
        };
        let labels @ [name, phase, operation] = call.labels();
        if self.bound.admits(&labels) {
            let code = code.min(CODE_MAX).to_string();
            self.rejections.with_label_values(&[name, phase, operation, error_type, &*code]).inc();
        }
    }

    pub(crate) fn failed_open(&self, call: &Call<'_>) {
        let labels @ [name, phase, _] = call.labels();
        if self.bound.admits(&labels) {
            self.fail_opens.with_label_values(&[name, phase]).inc();
        }
    }
}
