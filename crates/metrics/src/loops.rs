//! What the loops of a process count, and how busy they are.

use std::time::Duration;

use corten_reconcile::{LoopMetric, MetricKind};

use crate::{
    MetricFamily,
    scraped::{Distribution, counter, gauge, histogram, number},
};

/// One metric of the loops, as it stands now.
#[derive(Clone, Debug)]
pub struct LoopCounts {
    pub metric: &'static LoopMetric,
    /// The values of the labels, and what was counted; of a counter or a gauge `sum` is what it stands at.
    pub rows: Vec<(Vec<String>, Distribution)>,
}

/// The queue of one loop, in numbers.
#[derive(Clone, Debug)]
pub struct LoopQueue {
    /// The loop's name.
    pub name: String,
    pub depth: u64,
    pub adds: u64,
    pub retries: u64,
    /// How long it has thought about what it thinks about longest, and about all it has not come to a plan for.
    pub longest: Duration,
    pub unfinished: Duration,
    /// How long keys waited in it, and how long was worked at each.
    pub queued: Distribution,
    pub worked: Distribution,
}

/// What loops count of what they do.
pub fn counts(counted: &LoopCounts) -> Vec<MetricFamily> {
    let LoopCounts { metric, rows } = counted;
    let labels: Vec<Vec<&str>> = rows.iter().map(|it| it.0.iter().map(String::as_str).collect()).collect();
    let each = labels.iter().map(Vec::as_slice).zip(rows.iter().map(|it| &it.1));
    let LoopMetric { name, help, labels, kind } = metric;
    match kind {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter is a sum of counts")]
        MetricKind::Counter => counter(name, help, labels, each.map(|(labels, it)| (labels, it.sum as u64))),
        MetricKind::Gauge => gauge(name, help, labels, each.map(|(labels, it)| (labels, it.sum))),
        MetricKind::Histogram(_) => histogram(name, help, labels, each),
    }
}

/// How busy the loops are.
pub fn queues(queues: &[LoopQueue]) -> Vec<MetricFamily> {
    let names: Vec<[&str; 1]> = queues.iter().map(|it| [&*it.name]).collect();
    let each = || names.iter().map(|it| &it[..]).zip(queues);
    let name = ["name"];
    let seconds = |it: Duration| it.as_secs_f64();
    let depth = each().map(|(labels, it)| (labels, number(it.depth)));
    let mut families = gauge("workqueue_depth", "Current depth of workqueue", &name, depth);
    let adds = each().map(|(labels, it)| (labels, it.adds));
    families.extend(counter("workqueue_adds_total", "Total number of adds handled by workqueue", &name, adds));
    families.extend(histogram(
        "workqueue_queue_duration_seconds",
        "How long in seconds an item stays in workqueue before being requested.",
        &name,
        each().map(|(labels, it)| (labels, &it.queued)),
    ));
    families.extend(histogram(
        "workqueue_work_duration_seconds",
        "How long in seconds processing an item from workqueue takes.",
        &name,
        each().map(|(labels, it)| (labels, &it.worked)),
    ));
    let retries = each().map(|(labels, it)| (labels, it.retries));
    families.extend(counter("workqueue_retries_total", "Total number of retries handled by workqueue", &name, retries));
    families.extend(gauge(
        "workqueue_unfinished_work_seconds",
        "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values \
         indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
        &name,
        each().map(|(labels, it)| (labels, seconds(it.unfinished))),
    ));
    families.extend(gauge(
        "workqueue_longest_running_processor_seconds",
        "How many seconds has the longest running processor for workqueue been running.",
        &name,
        each().map(|(labels, it)| (labels, seconds(it.longest))),
    ));
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded;

    #[test]
    fn what_loops_count_is_a_counter_a_gauge_or_a_histogram() {
        static ENDED: LoopMetric =
            LoopMetric { name: "ended_total", help: "How many ended.", labels: &["zone"], kind: MetricKind::Counter };
        static TOOK: LoopMetric = LoopMetric {
            name: "took_seconds",
            help: "How long it took.",
            labels: &[],
            kind: MetricKind::Histogram(&[1.0]),
        };
        static WAIT: LoopMetric =
            LoopMetric { name: "waits", help: "How many wait.", labels: &[], kind: MetricKind::Gauge };
        let stood = Distribution { up_to: Vec::new(), n: 2, sum: 5.0 };
        let ended = LoopCounts { metric: &ENDED, rows: vec![(vec!["a".into()], stood)] };
        let times = Distribution { up_to: vec![(1.0, 1)], n: 2, sum: 3.5 };
        let took = LoopCounts { metric: &TOOK, rows: vec![(Vec::new(), times)] };
        let waits = Distribution { up_to: Vec::new(), n: 1, sum: 2.5 };
        let wait = LoopCounts { metric: &WAIT, rows: vec![(Vec::new(), waits)] };
        let families: Vec<MetricFamily> = [ended, took, wait].iter().flat_map(counts).collect();
        let expected = "# HELP ended_total How many ended.\n# TYPE ended_total counter\nended_total{zone=\"a\"} 5\n\
            # HELP took_seconds How long it took.\n# TYPE took_seconds histogram\ntook_seconds_bucket{le=\"1\"} 1\n\
            took_seconds_bucket{le=\"+Inf\"} 2\ntook_seconds_sum 3.5\ntook_seconds_count 2\n\
            # HELP waits How many wait.\n# TYPE waits gauge\nwaits 2.5\n";
        assert_eq!(encoded(&families), expected);
    }
}
