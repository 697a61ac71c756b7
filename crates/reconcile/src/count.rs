//! What a mind counts of what it does, for `/metrics`.

use std::fmt;

/// One metric of a loop, by upstream's name.
#[derive(Debug, PartialEq)]
pub struct LoopMetric {
    pub name: &'static str,
    pub help: &'static str,
    pub labels: &'static [&'static str],
    pub kind: MetricKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    Counter,
    Gauge,
    /// With these upper bounds of its buckets, in order.
    Histogram(&'static [f64]),
}

impl MetricKind {
    /// The upper bounds of a histogram's buckets.
    pub fn bounds(self) -> &'static [f64] {
        match self {
            Self::Histogram(bounds) => bounds,
            Self::Counter | Self::Gauge => &[],
        }
    }
}

/// What one metric goes up by, or what its histogram is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    pub metric: &'static LoopMetric,
    /// In the order of the metric's labels.
    pub labels: Vec<String>,
    pub value: f64,
}

impl LoopMetric {
    /// # Panics
    /// There is not one value for each label: both are words of the program.
    pub fn count(&'static self, labels: &[&str], value: f64) -> Count {
        assert_eq!(labels.len(), self.labels.len(), "the labels of {}", self.name);
        Count { metric: self, labels: labels.iter().map(|it| (*it).to_owned()).collect(), value }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.metric.labels.iter().zip(&self.labels);
        let labels: Vec<String> = pairs.map(|(name, value)| format!("{name}={value:?}")).collect();
        write!(f, "count {}{{{}}} {}", self.metric.name, labels.join(","), self.value)
    }
}
