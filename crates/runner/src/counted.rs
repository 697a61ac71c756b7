//! What the loops have counted so far: one place for all of them.

use std::collections::BTreeMap;

use corten_reconcile::{Count, LoopMetric};
use parking_lot::Mutex;

use crate::CountedDurations;

/// Values of labels can come from objects, as zones do: more rows than these are counted together.
const ROWS_MAX: usize = 1_000;
const OTHER: &str = "other";

#[derive(Default)]
pub(crate) struct LoopCounts(Mutex<BTreeMap<&'static str, Rows>>);

struct Rows {
    metric: &'static LoopMetric,
    by_labels: BTreeMap<Vec<String>, Row>,
}

#[derive(Default)]
struct Row {
    n: u64,
    sum: f64,
    /// How many were in each bucket, and in none of those below.
    in_bucket: Vec<u64>,
}

/// One metric as it stands now.
#[derive(Clone, Debug)]
pub struct CountedMetric {
    pub metric: &'static LoopMetric,
    /// The values of the labels, and what was counted; of a counter or a gauge `seconds` is what it stands at.
    pub rows: Vec<(Vec<String>, CountedDurations)>,
}

impl LoopCounts {
    pub(crate) fn count(&self, count: &Count) {
        let mut metrics = self.0.lock();
        let metric = count.metric;
        let rows = metrics.entry(metric.name).or_insert_with(|| Rows { metric, by_labels: BTreeMap::new() });
        let is_known = rows.by_labels.len() < ROWS_MAX || rows.by_labels.contains_key(&count.labels);
        let labels = if is_known { count.labels.clone() } else { vec![OTHER.to_owned(); count.labels.len()] };
        let row = rows.by_labels.entry(labels).or_default();
        row.n += 1;
        row.sum += count.value;
        row.in_bucket.resize(metric.kind.bounds().len(), 0);
        if let Some(bucket) = metric.kind.bounds().iter().position(|it| count.value <= *it) {
            row.in_bucket[bucket] += 1;
        }
    }

    /// In the order of their names.
    pub(crate) fn all(&self) -> Vec<CountedMetric> {
        let row = |metric: &LoopMetric, it: &Row| {
            let mut n = 0;
            let up_to = metric.kind.bounds().iter().zip(&it.in_bucket).map(|(bound, count)| {
                n += count;
                (*bound, n)
            });
            CountedDurations { up_to: up_to.collect(), n: it.n, seconds: it.sum }
        };
        let metrics = self.0.lock();
        let rows = |it: &Rows| it.by_labels.iter().map(|(labels, of)| (labels.clone(), row(it.metric, of))).collect();
        metrics.values().map(|it| CountedMetric { metric: it.metric, rows: rows(it) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use corten_reconcile::MetricKind;

    use super::*;

    static ENDED: LoopMetric =
        LoopMetric { name: "ended_total", help: "How many ended.", labels: &["zone"], kind: MetricKind::Counter };
    static TOOK: LoopMetric = LoopMetric {
        name: "took_seconds",
        help: "How long it took.",
        labels: &[],
        kind: MetricKind::Histogram(&[1.0, 2.0, 4.0]),
    };

    #[test]
    fn a_histogram_counts_what_is_within_each_bound() {
        let counts = LoopCounts::default();
        [0.5, 2.0, 3.0, 9.0].iter().for_each(|it| counts.count(&TOOK.count(&[], *it)));
        let all = counts.all();
        assert_eq!(all.len(), 1);
        let expected = CountedDurations { up_to: vec![(1.0, 1), (2.0, 2), (4.0, 3)], n: 4, seconds: 14.5 };
        assert_eq!(all[0].rows, [(Vec::new(), expected)]);
    }

    #[test]
    fn zones_beyond_the_bound_are_counted_together() {
        let counts = LoopCounts::default();
        (0..ROWS_MAX + 5).for_each(|it| counts.count(&ENDED.count(&[&it.to_string()], 1.0)));
        counts.count(&ENDED.count(&["7"], 1.0));
        let all = counts.all();
        let stands_at = |zone: &str| all[0].rows.iter().find(|it| it.0 == [zone]).map(|it| it.1.seconds);
        assert_eq!((stands_at("7"), stands_at(OTHER), stands_at("1003")), (Some(2.0), Some(5.0), None));
    }
}
