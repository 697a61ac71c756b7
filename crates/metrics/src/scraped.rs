//! Metrics of what is only known by a look.

use prometheus::{
    GaugeVec, IntCounterVec, Opts,
    core::Collector,
    proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType},
};

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

/// Values that were counted elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// So many were no more than each bound, in the order of the bounds.
    pub up_to: Vec<(f64, u64)>,
    pub n: u64,
    pub sum: f64,
}

/// A histogram of such values.
pub fn histogram<'a>(
    name: &str,
    help: &str,
    labels: &[&str],
    samples: impl IntoIterator<Item = Sample<'a, &'a Distribution>>,
) -> Vec<MetricFamily> {
    let metrics: Vec<Metric> = samples.into_iter().map(|(values, of)| metric(labels, values, of)).collect();
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(MetricType::HISTOGRAM);
    family.set_metric(metrics);
    vec![family]
}

fn metric(labels: &[&str], values: &[&str], of: &Distribution) -> Metric {
    let pair = |(name, value): (&&str, &&str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    let bucket = |(bound, count): &(f64, u64)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(*count);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(of.up_to.iter().map(bucket).collect());
    histogram.set_sample_count(of.n);
    histogram.set_sample_sum(of.sum);
    let mut metric = Metric::from_label(labels.iter().zip(values).map(pair).collect());
    metric.set_histogram(histogram);
    metric
}
