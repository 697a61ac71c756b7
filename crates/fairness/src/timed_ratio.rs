//! How long a ratio was how high.
//!
//! kube-apiserver's timing histograms observe a ratio at the end of every nanosecond. Here one that stands is counted once, when it
//! changes or somebody looks, with the nanoseconds for which it stood: the numbers are the same.

use std::time::Duration;

use corten_metrics::scraped::Distribution;

pub(crate) struct TimedRatio {
    bounds: &'static [f64],
    /// For how long it lay between two bounds; last, above all of them.
    nanoseconds: Vec<u64>,
    sum: f64,
}

impl TimedRatio {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, nanoseconds: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// It was so high for so long.
    pub(crate) fn stood(&mut self, ratio: f64, time: Duration) {
        let between = self.bounds.partition_point(|it| *it < ratio);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds[between] = self.nanoseconds[between].saturating_add(nanoseconds);
        self.sum += ratio * time.as_secs_f64() * 1e9;
    }

    pub(crate) fn counted(&self) -> Distribution {
        let mut n = 0_u64;
        let mut up_to = Vec::with_capacity(self.bounds.len());
        for (bound, nanoseconds) in self.bounds.iter().zip(&self.nanoseconds) {
            n = n.saturating_add(*nanoseconds);
            up_to.push((*bound, n));
        }
        let above = self.nanoseconds.last().copied().unwrap_or_default();
        Distribution { up_to, n: n.saturating_add(above), sum: self.sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nanosecond_counts() {
        let mut ratio = TimedRatio::new(&[0.0, 0.5, 1.0]);
        for (of, nanoseconds) in [(0.0, 10), (0.5, 100), (0.75, 1_000), (2.0, 10_000), (0.0, 5)] {
            ratio.stood(of, Duration::from_nanos(nanoseconds));
        }
        let counted = ratio.counted();
        assert_eq!((counted.up_to, counted.n), (vec![(0.0, 15), (0.5, 115), (1.0, 1_115)], 11_115));
        assert!((counted.sum - 20_800.0).abs() < 1e-6, "{}", counted.sum);
    }
}
