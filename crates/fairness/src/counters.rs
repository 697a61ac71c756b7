//! What is counted of flow schemas and priority levels, under kube-apiserver's names.

use std::{collections::BTreeSet, time::Duration};

use corten_flowcontrol::Refusal;
use corten_metrics::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, registered};
use parking_lot::Mutex;

/// kube-apiserver's `requestDurationSecondsBuckets`.
const SECONDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
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
    nominal: IntGaugeVec,
    limit: IntGaugeVec,
    pairs: Mutex<BTreeSet<(String, String)>>,
}

/// Those of one flow schema and the level it leads to.
pub(crate) struct Counters {
    pub(crate) dispatched: IntCounter,
    pub(crate) in_queue: IntGauge,
    pub(crate) executing: IntGauge,
    pub(crate) seats: IntGauge,
    rejected: [IntCounter; Refusal::ALL.len()],
    waited: Histogram,
    waited_in_vain: Histogram,
    executed: Histogram,
}

impl Measures {
    pub(crate) fn new(registry: &Registry) -> Self {
        let pair = [LEVEL, SCHEMA];
        let gauge = |name, help, labels| registered::gauge(registry, name, help, labels);
        let histogram = |name, help, labels| registered::histogram(registry, name, help, SECONDS.to_vec(), labels);
        Self {
            rejected: registered::counter(
                registry,
                "apiserver_flowcontrol_rejected_requests_total",
                "Number of requests rejected by API Priority and Fairness subsystem",
                &[LEVEL, SCHEMA, "reason"],
            ),
            dispatched: registered::counter(
                registry,
                "apiserver_flowcontrol_dispatched_requests_total",
                "Number of requests executed by API Priority and Fairness subsystem",
                &pair,
            ),
            in_queue: gauge(
                "apiserver_flowcontrol_current_inqueue_requests",
                "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
                &pair,
            ),
            executing: gauge(
                "apiserver_flowcontrol_current_executing_requests",
                "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
                &pair,
            ),
            seats: gauge(
                "apiserver_flowcontrol_current_executing_seats",
                "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
                &pair,
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
            nominal: gauge(
                "apiserver_flowcontrol_nominal_limit_seats",
                "Nominal number of execution seats configured for each priority level",
                &[LEVEL],
            ),
            limit: gauge(
                "apiserver_flowcontrol_current_limit_seats",
                "current derived number of execution seats available to each priority level",
                &[LEVEL],
            ),
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
            rejected: Refusal::ALL.map(|it| self.rejected.with_label_values(&[level, schema, it.as_str()])),
            waited: self.waited.with_label_values(&[level, schema, "true"]),
            waited_in_vain: self.waited.with_label_values(&[level, schema, "false"]),
            executed: self.executed.with_label_values(&[level, schema, REGULAR]),
        }
    }

    /// Nobody comes by this flow schema to this level any more. What is under way there counts on, unseen.
    pub(crate) fn forget(&self, schema: &str, level: &str) {
        if !self.pairs.lock().remove(&(schema.to_owned(), level.to_owned())) {
            return;
        }
        let pair = [level, schema];
        // All of them were made together.
        let _ = self.dispatched.remove_label_values(&pair);
        for gauge in [&self.in_queue, &self.executing, &self.seats] {
            let _ = gauge.remove_label_values(&pair);
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

    pub(crate) fn forget_level(&self, level: &str) {
        // It may have had no limit.
        let _ = self.nominal.remove_label_values(&[level]);
        let _ = self.limit.remove_label_values(&[level]);
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

    pub(crate) fn waited(&self, time: Duration, has_executed: bool) {
        let histogram = if has_executed { &self.waited } else { &self.waited_in_vain };
        histogram.observe(time.as_secs_f64());
    }

    pub(crate) fn executed(&self, time: Duration) {
        self.executed.observe(time.as_secs_f64());
    }
}
