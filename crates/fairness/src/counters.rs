//! What is counted of flow schemas and priority levels, under kube-apiserver's names.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use corten_flowcontrol::{Allotment, Refusal};
use corten_metrics::{
    Gauge, Gauges, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, registered,
};
use parking_lot::Mutex;

use crate::reads_and_writes::ReadsAndWrites;

/// kube-apiserver's `requestDurationSecondsBuckets`.
const SECONDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// kube-apiserver's `queueLengthBuckets`.
const QUEUE_LENGTHS: [f64; 8] = [0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
/// In seats: kube-apiserver's buckets of `work_estimated_seats`.
const WIDTHS: [f64; 4] = [1.0, 2.0, 4.0, 10.0];
const WATCH_COUNTS: [f64; 6] = [0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0];
/// More pairs of flow schema and level than these are counted together, under no names.
const PAIRS_MAX: usize = 2_000;

const LEVEL: &str = "priority_level";
const SCHEMA: &str = "flow_schema";
/// One of the cluster's own requests is like another here: what a watch takes after it has begun is not counted.
const REGULAR: &str = "regular";

pub(crate) struct Measures {
    rejected: IntCounterVec,
    dispatched: IntCounterVec,
    in_queue: IntGaugeVec,
    executing: IntGaugeVec,
    seats: IntGaugeVec,
    waited: HistogramVec,
    executed: HistogramVec,
    seats_in_queue: IntGaugeVec,
    not_accommodated: IntCounterVec,
    queue_lengths: HistogramVec,
    estimated: HistogramVec,
    watch_counts: HistogramVec,
    nominal: IntGaugeVec,
    limit: IntGaugeVec,
    lower: IntGaugeVec,
    upper: IntGaugeVec,
    demand: DemandGauges,
    fair_fraction: Gauge,
    requests: Arc<ReadsAndWrites>,
    pairs: Mutex<BTreeSet<(String, String)>>,
}

/// Those of one flow schema and the level it leads to.
pub(crate) struct Counters {
    pub(crate) dispatched: IntCounter,
    pub(crate) in_queue: IntGauge,
    pub(crate) executing: IntGauge,
    pub(crate) seats: IntGauge,
    rejected: [IntCounter; Refusal::ALL.len()],
    pub(crate) seats_in_queue: IntGauge,
    pub(crate) not_accommodated: IntCounter,
    queue_lengths: Histogram,
    estimated: Histogram,
    watch_counts: Histogram,
    waited: Histogram,
    waited_in_vain: Histogram,
    executed: Histogram,
    /// Those of all flows together.
    pub(crate) requests: Arc<ReadsAndWrites>,
}

/// What levels wanted in the time for which seats were divided last.
struct DemandGauges {
    highest: Gauges,
    average: Gauges,
    deviation: Gauges,
    smoothed: Gauges,
    target: Gauges,
}

fn queue_lengths(registry: &Registry) -> HistogramVec {
    registered::histogram(
        registry,
        "apiserver_flowcontrol_request_queue_length_after_enqueue",
        "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
        QUEUE_LENGTHS.to_vec(),
        &[LEVEL, SCHEMA],
    )
}

fn watch_counts(registry: &Registry) -> HistogramVec {
    registered::histogram(
        registry,
        "apiserver_flowcontrol_watch_count_samples",
        "count of watchers for mutating requests in API Priority and Fairness",
        WATCH_COUNTS.to_vec(),
        &[LEVEL, SCHEMA],
    )
}

fn estimated_seats(registry: &Registry) -> HistogramVec {
    registered::histogram(
        registry,
        "apiserver_flowcontrol_work_estimated_seats",
        "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness",
        WIDTHS.to_vec(),
        &[LEVEL, SCHEMA],
    )
}

impl DemandGauges {
    fn new(registry: &Registry) -> Self {
        let gauges = |name, help| registered::gauges(registry, name, help, &[LEVEL]);
        Self {
            highest: gauges(
                "apiserver_flowcontrol_demand_seats_high_watermark",
                "High watermark, over last adjustment period, of demand_seats",
            ),
            average: gauges(
                "apiserver_flowcontrol_demand_seats_average",
                "Time-weighted average, over last adjustment period, of demand_seats",
            ),
            deviation: gauges(
                "apiserver_flowcontrol_demand_seats_stdev",
                "Time-weighted standard deviation, over last adjustment period, of demand_seats",
            ),
            smoothed: gauges("apiserver_flowcontrol_demand_seats_smoothed", "Smoothed seat demands"),
            target: gauges("apiserver_flowcontrol_target_seats", "Seat allocation targets"),
        }
    }

    fn all(&self) -> [&Gauges; 5] {
        [&self.highest, &self.average, &self.deviation, &self.smoothed, &self.target]
    }

    fn set(&self, level: &str, of: &Allotment) {
        let demand = &of.demand;
        let values = [f64::from(demand.highest), demand.mean, demand.deviation, demand.smooth, of.target()];
        for (gauge, value) in self.all().into_iter().zip(values) {
            gauge.with_label_values(&[level]).set(value);
        }
    }
}

impl Measures {
    pub(crate) fn new(registry: &Registry) -> Self {
        let pair = [LEVEL, SCHEMA];
        let gauge = |name, help| registered::gauge(registry, name, help, &pair);
        let limit = |name, help| registered::gauge(registry, name, help, &[LEVEL]);
        let counter = |name, help| registered::counter(registry, name, help, &pair);
        let histogram = |name, help, labels| registered::histogram(registry, name, help, SECONDS.to_vec(), labels);
        Self {
            rejected: registered::counter(
                registry,
                "apiserver_flowcontrol_rejected_requests_total",
                "Number of requests rejected by API Priority and Fairness subsystem",
                &[LEVEL, SCHEMA, "reason"],
            ),
            dispatched: counter(
                "apiserver_flowcontrol_dispatched_requests_total",
                "Number of requests executed by API Priority and Fairness subsystem",
            ),
            in_queue: gauge(
                "apiserver_flowcontrol_current_inqueue_requests",
                "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
            ),
            executing: gauge(
                "apiserver_flowcontrol_current_executing_requests",
                "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
            ),
            seats: gauge(
                "apiserver_flowcontrol_current_executing_seats",
                "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
            ),
            waited: histogram(
                "apiserver_flowcontrol_request_wait_duration_seconds",
                "Length of time a request spent waiting in its queue",
                &[LEVEL, SCHEMA, "execute"],
            ),
            executed: histogram(
                "apiserver_flowcontrol_request_execution_seconds",
                "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem",
                &[LEVEL, SCHEMA, "type"],
            ),
            seats_in_queue: gauge(
                "apiserver_flowcontrol_current_inqueue_seats",
                "Number of seats currently pending in queues of the API Priority and Fairness subsystem",
            ),
            not_accommodated: counter(
                "apiserver_flowcontrol_request_dispatch_no_accommodation_total",
                "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
            ),
            queue_lengths: queue_lengths(registry),
            estimated: estimated_seats(registry),
            watch_counts: watch_counts(registry),
            nominal: limit(
                "apiserver_flowcontrol_nominal_limit_seats",
                "Nominal number of execution seats configured for each priority level",
            ),
            limit: limit(
                "apiserver_flowcontrol_current_limit_seats",
                "current derived number of execution seats available to each priority level",
            ),
            lower: limit(
                "apiserver_flowcontrol_lower_limit_seats",
                "Configured lower bound on number of execution seats available to each priority level",
            ),
            upper: limit(
                "apiserver_flowcontrol_upper_limit_seats",
                "Configured upper bound on number of execution seats available to each priority level",
            ),
            demand: DemandGauges::new(registry),
            fair_fraction: registered::gauges(
                registry,
                "apiserver_flowcontrol_seat_fair_frac",
                "Fair fraction of server's concurrency to allocate to each priority level that can use it",
                &[],
            )
            .with_label_values::<&str>(&[]),
            requests: Arc::new(ReadsAndWrites::new()),
            pairs: Mutex::default(),
        }
    }

    /// The counters of a flow schema and its level; the same for all who ask for them.
    pub(crate) fn counters(&self, schema: &str, level: &str) -> Counters {
        let is_named = {
            let mut pairs = self.pairs.lock();
            let pair = (schema.to_owned(), level.to_owned());
            pairs.contains(&pair) || (pairs.len() < PAIRS_MAX && pairs.insert(pair))
        };
        let (schema, level) = if is_named { (schema, level) } else { ("", "") };
        let pair = [level, schema];
        Counters {
            dispatched: self.dispatched.with_label_values(&pair),
            in_queue: self.in_queue.with_label_values(&pair),
            executing: self.executing.with_label_values(&pair),
            seats: self.seats.with_label_values(&pair),
            seats_in_queue: self.seats_in_queue.with_label_values(&pair),
            not_accommodated: self.not_accommodated.with_label_values(&pair),
            queue_lengths: self.queue_lengths.with_label_values(&pair),
            estimated: self.estimated.with_label_values(&pair),
            watch_counts: self.watch_counts.with_label_values(&pair),
            rejected: Refusal::ALL.map(|it| self.rejected.with_label_values(&[level, schema, it.as_str()])),
            waited: self.waited.with_label_values(&[level, schema, "true"]),
            waited_in_vain: self.waited.with_label_values(&[level, schema, "false"]),
            executed: self.executed.with_label_values(&[level, schema, REGULAR]),
            requests: self.requests.clone(),
        }
    }

    /// Those of all levels together.
    pub(crate) fn requests(&self) -> &ReadsAndWrites {
        &self.requests
    }

    /// Nobody comes by this flow schema to this level any more. What is under way there counts on, unseen.
    pub(crate) fn forget(&self, schema: &str, level: &str) {
        if !self.pairs.lock().remove(&(schema.to_owned(), level.to_owned())) {
            return;
        }
        let pair = [level, schema];
        // All of them were made together.
        for counter in [&self.dispatched, &self.not_accommodated] {
            let _ = counter.remove_label_values(&pair);
        }
        for gauge in [&self.in_queue, &self.executing, &self.seats, &self.seats_in_queue] {
            let _ = gauge.remove_label_values(&pair);
        }
        for histogram in [&self.queue_lengths, &self.estimated, &self.watch_counts] {
            let _ = histogram.remove_label_values(&pair);
        }
        for refusal in Refusal::ALL {
            let _ = self.rejected.remove_label_values(&[level, schema, refusal.as_str()]);
        }
        for has_executed in ["true", "false"] {
            let _ = self.waited.remove_label_values(&[level, schema, has_executed]);
        }
        let _ = self.executed.remove_label_values(&[level, schema, REGULAR]);
    }

    pub(crate) fn set_nominal(&self, level: &str, seats: u32) {
        self.nominal.with_label_values(&[level]).set(seats.into());
    }

    pub(crate) fn set_limit(&self, level: &str, seats: u32) {
        self.limit.with_label_values(&[level]).set(seats.into());
    }

    /// What the seats were divided by.
    pub(crate) fn set_allotment(&self, level: &str, of: &Allotment) {
        self.lower.with_label_values(&[level]).set(of.lower.into());
        self.upper.with_label_values(&[level]).set(of.upper.into());
        self.demand.set(level, of);
    }

    pub(crate) fn set_fair_fraction(&self, fraction: f64) {
        self.fair_fraction.set(fraction);
    }

    pub(crate) fn forget_level(&self, level: &str) {
        // It may have had no limit, and nothing may have been divided since it came.
        for gauge in [&self.nominal, &self.limit, &self.lower, &self.upper] {
            let _ = gauge.remove_label_values(&[level]);
        }
        for gauge in self.demand.all() {
            let _ = gauge.remove_label_values(&[level]);
        }
    }
}

impl Counters {
    pub(crate) fn refused(&self, refusal: Refusal) {
        self.of(refusal).inc();
    }

    pub(crate) fn n_refused(&self, refusal: Refusal) -> u64 {
        self.of(refusal).get()
    }

    fn of(&self, refusal: Refusal) -> &IntCounter {
        let at = Refusal::ALL.iter().position(|it| *it == refusal).expect("all refusals are listed");
        &self.rejected[at]
    }

    /// One has come to a queue in which so many wait now.
    pub(crate) fn enqueued(&self, n_waiting: u32) {
        self.queue_lengths.observe(n_waiting.into());
    }

    /// One is taken to be so many seats wide.
    pub(crate) fn estimated(&self, width: u32) {
        self.estimated.observe(width.into());
    }

    /// So many watch what a request is to write.
    pub(crate) fn watched(&self, n_watchers: usize) {
        self.watch_counts.observe(u32::try_from(n_watchers).unwrap_or(u32::MAX).into());
    }

    pub(crate) fn waited(&self, time: Duration, has_executed: bool) {
        let histogram = if has_executed { &self.waited } else { &self.waited_in_vain };
        histogram.observe(time.as_secs_f64());
    }

    pub(crate) fn executed(&self, time: Duration) {
        self.executed.observe(time.as_secs_f64());
    }
}
