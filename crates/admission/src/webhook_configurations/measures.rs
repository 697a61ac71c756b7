//! What is counted of calls, under kube-apiserver's names.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use parking_lot::Mutex;

const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// As upstream: no code is larger.
const CODE_MAX: u16 = 600;
/// So many different webhooks are counted by name; a configuration that renames them again and again adds no more.
const NAMES_MAX: usize = 1000;

/// What kind of webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Admit,
    Validating,
}

#[derive(Default)]
pub(crate) struct Measures(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    durations: BTreeMap<String, Histogram>,
    requests: BTreeMap<String, u64>,
    rejections: BTreeMap<String, u64>,
    fail_opens: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
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
    fn labels(&self) -> String {
        let phase = match self.phase {
            Phase::Admit => "admit",
            Phase::Validating => "validating",
        };
        format!("name={:?},type=\"{phase}\"", self.name)
    }

    fn with_operation(&self) -> String {
        format!("{},operation=\"{}\"", self.labels(), self.operation)
    }
}

fn add(counts: &mut BTreeMap<String, u64>, labels: String) {
    if counts.len() < NAMES_MAX || counts.contains_key(&labels) {
        *counts.entry(labels).or_default() += 1;
    }
}

impl Measures {
    pub(crate) fn called(&self, call: &Call<'_>, took: Duration, rejected: bool, code: u16) {
        let labels = format!("{},rejected=\"{rejected}\"", call.with_operation());
        let code = code.min(CODE_MAX);
        let mut counts = self.0.lock();
        add(&mut counts.requests, format!("{labels},code=\"{code}\""));
        if counts.durations.len() >= NAMES_MAX && !counts.durations.contains_key(&labels) {
            return;
        }
        let histogram = counts.durations.entry(labels).or_default();
        let seconds = took.as_secs_f64();
        histogram.count += 1;
        histogram.seconds += seconds;
        for (bucket, bound) in histogram.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    pub(crate) fn rejected(&self, call: &Call<'_>, error_type: ErrorType, code: u16) {
        let error_type = match error_type {
            ErrorType::CallingWebhook => "calling_webhook_error",
            ErrorType::Internal => "apiserver_internal_error",
            ErrorType::None => "no_error",
        };
        let code = code.min(CODE_MAX);
        let labels = format!("{},error_type=\"{error_type}\",rejection_code=\"{code}\"", call.with_operation());
        add(&mut self.0.lock().rejections, labels);
    }

    pub(crate) fn failed_open(&self, call: &Call<'_>) {
        add(&mut self.0.lock().fail_opens, call.labels());
    }

    pub(crate) fn write(&self, out: &mut String) -> std::fmt::Result {
        let counts = self.0.lock();
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        head(
            out,
            name,
            "histogram",
            "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
        )?;
        for (labels, it) in &counts.durations {
            for (bucket, bound) in it.buckets.iter().zip(BOUNDS) {
                writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}")?;
            }
            writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", it.count)?;
            writeln!(out, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {}", it.seconds, it.count)?;
        }
        for (name, help, of) in [
            (
                "apiserver_admission_webhook_request_total",
                "Admission webhook request total, identified by name and broken out for each admission type (validating or mutating) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code.",
                &counts.requests,
            ),
            (
                "apiserver_admission_webhook_rejection_count",
                "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation.",
                &counts.rejections,
            ),
            (
                "apiserver_admission_webhook_fail_open_count",
                "Admission webhook fail open count, identified by name and broken out for each admission type (validating or mutating).",
                &counts.fail_opens,
            ),
        ] {
            head(out, name, "counter", help)?;
            for (labels, count) in of {
                writeln!(out, "{name}{{{labels}}} {count}")?;
            }
        }
        Ok(())
    }
}

fn head(out: &mut String, name: &str, metric_type: &str, help: &str) -> std::fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {metric_type}")
}
