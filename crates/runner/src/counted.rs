//! What the loops have counted so far: one place for all of them.

use std::collections::BTreeMap;

use corten_reconcile::{Count, LoopMetric, Tally};
use parking_lot::Mutex;

use crate::CountedDurations;

/// Values of labels can come from objects, as zones do: more rows than these are counted together.
const ROWS_MAX: usize = 1_000;

/// See the module's documentation.
#[derive(Default)]
pub struct LoopCounts(Mutex<BTreeMap<&'static str, Tally>>);

/// One metric as it stands now.
#[derive(Clone, Debug)]
pub struct CountedMetric {
    pub metric: &'static LoopMetric,
    /// The values of the labels, and what was counted; of a counter or a gauge `seconds` is what it stands at.
    pub rows: Vec<(Vec<String>, CountedDurations)>,
}

impl From<Tally> for CountedMetric {
    fn from(tally: Tally) -> Self {
        let metric = tally.metric;
        let rows = tally
            .rows()
            .iter()
            .map(|it| (it.labels.clone(), CountedDurations { up_to: it.up_to(metric), n: it.n, seconds: it.sum }));
        Self { metric, rows: rows.collect() }
    }
}

impl LoopCounts {
    pub(crate) fn count(&self, count: &Count) {
        self.observe(count.metric, &count.labels, count.value);
    }

    /// What the metric goes up by, or what its histogram is shown.
    pub(crate) fn observe<S: AsRef<str>>(&self, metric: &'static LoopMetric, labels: &[S], value: f64) {
        self.0.lock().entry(metric.name).or_insert_with(|| Tally::new(metric, ROWS_MAX)).count(labels, value);
    }

    /// Has a metric without labels told before anything is counted.
    pub(crate) fn begin(&self, metric: &'static LoopMetric) {
        self.0.lock().entry(metric.name).or_insert_with(|| Tally::new(metric, ROWS_MAX));
    }

    /// In the order of their names.
    pub fn tallies(&self) -> Vec<Tally> {
        self.0.lock().values().cloned().collect()
    }

    /// The same, as durations are told.
    pub(crate) fn all(&self) -> Vec<CountedMetric> {
        self.tallies().into_iter().map(CountedMetric::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use corten_reconcile::MetricKind;

    use super::*;

    static ENDED: LoopMetric =
        LoopMetric { name: "ended_total", help: "How many ended.", labels: &["zone"], kind: MetricKind::Counter };
    static FAILED: LoopMetric =
        LoopMetric { name: "failed_total", help: "How many failed.", labels: &[], kind: MetricKind::Counter };

    #[test]
    fn zones_beyond_the_bound_are_counted_together() {
        let counts = LoopCounts::default();
        (0..ROWS_MAX + 5).for_each(|it| counts.count(&ENDED.count(&[&it.to_string()], 1.0)));
        counts.count(&ENDED.count(&["7"], 1.0));
        let all = counts.all();
        let stands_at = |zone: &str| all[0].rows.iter().find(|it| it.0 == [zone]).map(|it| it.1.n);
        assert_eq!((stands_at("7"), stands_at("other"), stands_at("1003")), (Some(2), Some(5), None));
    }

    #[test]
    fn what_has_not_happened_stands_at_zero() {
        let counts = LoopCounts::default();
        counts.begin(&FAILED);
        assert_eq!(counts.tallies()[0].rows()[0].n, 0);
        counts.observe::<&str>(&FAILED, &[], 1.0);
        counts.begin(&FAILED);
        assert_eq!(counts.tallies()[0].rows()[0].n, 1);
    }
}
