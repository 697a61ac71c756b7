//! Metrics of what is only known by a look.

use prometheus::{GaugeVec, IntCounterVec, Opts, core::Collector, proto::MetricFamily};

/// The values of the labels, and the number.
pub type Sample<'a, T> = (&'a [&'a str], T);

/// What can go up and down.
pub fn gauge<'a>(
    name: &str,
    help: &str,
    labels: &[&str],
    samples: impl IntoIterator<Item = Sample<'a, f64>>,
) -> Vec<MetricFamily> {
    let gauge = GaugeVec::new(Opts::new(name, help), labels).expect("a constant name and constant labels");
    for (values, number) in samples {
        gauge.with_label_values(values).set(number);
    }
    gauge.collect()
}

/// What only goes up.
pub fn counter<'a>(
    name: &str,
    help: &str,
    labels: &[&str],
    samples: impl IntoIterator<Item = Sample<'a, u64>>,
) -> Vec<MetricFamily> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels).expect("a constant name and constant labels");
    for (values, number) in samples {
        counter.with_label_values(values).inc_by(number);
    }
    counter.collect()
}

/// A number as Prometheus has it: a float.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; nothing here is counted beyond 2^53")]
pub fn number(it: u64) -> f64 {
    it as f64
}
