//! Counts of how long things took, in buckets.

use std::fmt::Write;

/// Upper bounds of the buckets, in seconds.
pub(super) type Bounds = &'static [f64];

#[derive(Clone, Default)]
pub(super) struct Histogram {
    pub(super) count: u64,
    seconds: f64,
    /// One for each bound, and each holds what those before it hold. Empty before the first count.
    buckets: Vec<u64>,
}

impl Histogram {
    pub(super) fn record(&mut self, bounds: Bounds, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        self.buckets.resize(bounds.len(), 0);
        for (bucket, bound) in self.buckets.iter_mut().zip(bounds) {
            *bucket += u64::from(seconds <= *bound);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
    }

    pub(super) fn write(&self, out: &mut String, name: &str, labels: &str, bounds: Bounds) -> std::fmt::Result {
        for (bucket, bound) in self.buckets.iter().zip(bounds) {
            writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}")?;
        }
        writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count)?;
        writeln!(out, "{name}_sum{{{labels}}} {}", self.seconds)?;
        writeln!(out, "{name}_count{{{labels}}} {}", self.count)
    }
}
