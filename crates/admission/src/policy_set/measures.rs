//! What is counted of checks, under kube-apiserver's names.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use parking_lot::Mutex;

const BOUNDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const NAME: &str = "apiserver_validating_admission_policy_check";
/// So many different policies and bindings are counted by name; new names add no more.
const NAMES_MAX: usize = 1000;

#[derive(Default)]
pub(crate) struct Measures(Mutex<BTreeMap<String, Histogram>>);

#[derive(Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Measures {
    /// `action` is `allow`, `deny`, `warn` or `audit`.
    pub(crate) fn checked(&self, policy: &str, binding: &str, error: &str, action: &str, took: Duration) {
        let labels = format!(
            "enforcement_action=\"{action}\",error_type=\"{error}\",policy={policy:?},policy_binding={binding:?}"
        );
        let mut all = self.0.lock();
        if all.len() >= NAMES_MAX && !all.contains_key(&labels) {
            return;
        }
        let it = all.entry(labels).or_default();
        let seconds = took.as_secs_f64();
        it.count += 1;
        it.seconds += seconds;
        for (bucket, bound) in it.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    pub(crate) fn write(&self, out: &mut String) -> std::fmt::Result {
        let all = self.0.lock();
        writeln!(
            out,
            "# HELP {NAME}_total Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.\n# TYPE {NAME}_total counter"
        )?;
        for (labels, it) in &*all {
            writeln!(out, "{NAME}_total{{{labels}}} {}", it.count)?;
        }
        writeln!(
            out,
            "# HELP {NAME}_duration_seconds Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.\n# TYPE {NAME}_duration_seconds histogram"
        )?;
        for (labels, it) in &*all {
            for (bucket, bound) in it.buckets.iter().zip(BOUNDS) {
                writeln!(out, "{NAME}_duration_seconds_bucket{{{labels},le=\"{bound}\"}} {bucket}")?;
            }
            writeln!(out, "{NAME}_duration_seconds_bucket{{{labels},le=\"+Inf\"}} {}", it.count)?;
            let (seconds, count) = (it.seconds, it.count);
            writeln!(
                out,
                "{NAME}_duration_seconds_sum{{{labels}}} {seconds}\n{NAME}_duration_seconds_count{{{labels}}} {count}"
            )?;
        }
        Ok(())
    }
}
