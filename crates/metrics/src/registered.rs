//! Metrics that are registered once and counted up from then on.

use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector};

use crate::per_thread::HistogramsPerThread;

/// kube-apiserver's buckets for requests and for writes to its store, in seconds.
const SECONDS_OF_REQUESTS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

/// Upper bounds in seconds.
pub fn buckets_of_requests() -> Vec<f64> {
    SECONDS_OF_REQUESTS.to_vec()
}

/// # Panics
/// Two metrics of one registry have the same name, or a name is none: both are the program's own constants.
pub fn register<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> C {
    registry.register(Box::new(metric.clone())).expect("a metric is registered once");
    metric
}

/// A counter by these labels.
pub fn counter(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels).expect("a constant name and constant labels"))
}

/// A gauge of whole numbers by these labels.
pub fn gauge(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels).expect("a constant name and constant labels"))
}

/// A gauge of any numbers by these labels.
pub fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    register(registry, GaugeVec::new(Opts::new(name, help), labels).expect("a constant name and constant labels"))
}

/// A histogram by these labels, with buckets of seconds.
pub fn histogram(registry: &Registry, name: &str, help: &str, buckets: Vec<f64>, labels: &[&str]) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(buckets);
    register(registry, HistogramVec::new(options, labels).expect("a constant name, labels and buckets"))
}

/// The same of what many threads observe all the time, with so many sets of labels.
pub fn histogram_per_thread(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: Vec<f64>,
    labels: &[&str],
    n_places: usize,
) -> HistogramsPerThread {
    let options = HistogramOpts::new(name, help).buckets(buckets);
    let all = HistogramVec::new(options, labels).expect("a constant name, labels and buckets");
    if labels.is_empty() {
        // The only one there is, is told before it is observed.
        all.with_label_values::<&str>(&[]);
    }
    register(registry, HistogramsPerThread::new(all, n_places))
}
