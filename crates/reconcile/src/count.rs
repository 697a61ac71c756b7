//! What is counted for `/metrics`: what a mind says of what it does, and what hands have added up.

use std::{cmp::Ordering, fmt};

/// What is counted in the place of the values of labels that are too many.
const OTHER: &str = "other";

/// One metric of a loop or of a node, by upstream's name.
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

/// What a look at an object is counted as, beside what every loop counts: the runner adds how long it took, and whether all of the
/// plan could be done.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedLook {
    pub total: &'static LoopMetric,
    pub seconds: &'static LoopMetric,
    /// Of both metrics, but for the last, which is the result.
    pub labels: Vec<&'static str>,
}

impl CountedLook {
    /// What the metrics go up by.
    pub fn counts(&self, seconds: f64, has_failed: bool) -> [Count; 2] {
        let result = if has_failed { "error" } else { "success" };
        let labels: Vec<&str> = self.labels.iter().copied().chain([result]).collect();
        [self.total.count(&labels, 1.0), self.seconds.count(&labels, seconds)]
    }
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

/// What was counted of one metric so far. Values of labels can come from objects, as zones do, so there are only so many rows: what
/// comes later is counted together.
#[derive(Clone, Debug)]
pub struct Tally {
    pub metric: &'static LoopMetric,
    rows_max: usize,
    /// In the order of their labels.
    rows: Vec<TallyRow>,
}

#[derive(Clone, Debug, Default)]
pub struct TallyRow {
    /// The values of the labels.
    pub labels: Vec<String>,
    pub n: u64,
    /// Of a counter or a gauge: what it stands at.
    pub sum: f64,
    /// How many were in each bucket, and in none of those below.
    in_bucket: Vec<u64>,
}

impl Tally {
    /// A metric without labels is told from the begin, and stands at zero.
    pub fn new(metric: &'static LoopMetric, rows_max: usize) -> Self {
        let mut this = Self { metric, rows_max, rows: Vec::new() };
        if metric.labels.is_empty() {
            this.rows.push(TallyRow::new::<&str>(metric, &[]));
        }
        this
    }

    /// What the metric goes up by, or what its histogram is shown. Where the row is there nothing is copied.
    pub fn count<S: AsRef<str>>(&mut self, labels: &[S], value: f64) {
        let at = match self.find(labels) {
            Ok(at) => at,
            Err(at) if self.rows.len() < self.rows_max => {
                self.rows.insert(at, TallyRow::new(self.metric, labels));
                at
            }
            Err(_) => {
                let others = vec![OTHER; labels.len()];
                let found = self.find(&others);
                found.unwrap_or_else(|at| {
                    self.rows.insert(at, TallyRow::new(self.metric, &others));
                    at
                })
            }
        };
        self.rows[at].add(self.metric, value);
    }

    pub fn rows(&self) -> &[TallyRow] {
        &self.rows
    }

    fn find<S: AsRef<str>>(&self, labels: &[S]) -> Result<usize, usize> {
        self.rows.binary_search_by(|it| compared(&it.labels, labels))
    }
}

fn compared<S: AsRef<str>>(ours: &[String], labels: &[S]) -> Ordering {
    ours.iter().map(String::as_str).cmp(labels.iter().map(AsRef::as_ref))
}

impl TallyRow {
    fn new<S: AsRef<str>>(metric: &LoopMetric, labels: &[S]) -> Self {
        let labels = labels.iter().map(|it| it.as_ref().to_owned()).collect();
        Self { labels, in_bucket: vec![0; metric.kind.bounds().len()], ..Self::default() }
    }

    fn add(&mut self, metric: &LoopMetric, value: f64) {
        self.n += 1;
        self.sum = if metric.kind == MetricKind::Gauge { value } else { self.sum + value };
        if let Some(bucket) = metric.kind.bounds().iter().position(|it| value <= *it) {
            self.in_bucket[bucket] += 1;
        }
    }

    /// So many were no more than each bound of the metric, in the order of the bounds.
    pub fn up_to(&self, metric: &LoopMetric) -> Vec<(f64, u64)> {
        let mut n = 0;
        let up_to = metric.kind.bounds().iter().zip(&self.in_bucket).map(|(bound, count)| {
            n += count;
            (*bound, n)
        });
        up_to.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ENDED: LoopMetric = LoopMetric {
        name: "ended_total",
        help: "How many ended.",
        labels: &["zone", "why"],
        kind: MetricKind::Counter,
    };
    static TOOK: LoopMetric = LoopMetric {
        name: "took_seconds",
        help: "How long it took.",
        labels: &[],
        kind: MetricKind::Histogram(&[1.0, 2.0, 4.0]),
    };

    #[test]
    fn a_histogram_counts_what_is_within_each_bound_and_begins_at_zero() {
        let mut took = Tally::new(&TOOK, 1);
        assert_eq!((took.rows().len(), took.rows()[0].n), (1, 0));
        [0.5, 2.0, 3.0, 9.0].iter().for_each(|it| took.count::<&str>(&[], *it));
        let row = &took.rows()[0];
        assert_eq!((row.n, row.up_to(&TOOK)), (4, vec![(1.0, 1), (2.0, 2), (4.0, 3)]));
        assert!((row.sum - 14.5).abs() < 1e-9, "{row:?}");
    }

    #[test]
    fn rows_beyond_the_bound_are_counted_together() {
        let mut ended = Tally::new(&ENDED, 2);
        assert!(ended.rows().is_empty(), "nobody knows a zone yet");
        for zone in ["b", "a", "c", "a", "d"] {
            ended.count(&[zone, "asked"], 1.0);
        }
        let rows: Vec<_> = ended.rows().iter().map(|it| (it.labels.join(","), it.n)).collect();
        let expected = [("a,asked", 2), ("b,asked", 1), ("other,other", 2)];
        assert_eq!(rows, expected.map(|it| (it.0.to_owned(), it.1)));
    }
}
