//! What clients count of their requests, under client-go's names.

use std::{sync::Arc, time::Duration};

use corten_reconcile::{LoopMetric, MetricKind, Tally};
use http::{Method, StatusCode};
use parking_lot::Mutex;

/// So many rows of each: servers come and go, and one that is not the cluster's may answer with any code.
const ROWS_MAX: usize = 256;
/// Of who speaks to a server of the same process.
const IN_PROCESS: &str = "in-process";
/// There was no answer.
const NO_ANSWER: &str = "<error>";

static REQUESTS: LoopMetric = LoopMetric {
    name: "rest_client_requests_total",
    help: "Number of HTTP requests, partitioned by status code, method, and host.",
    labels: &["code", "method", "host"],
    kind: MetricKind::Counter,
};
static DURATIONS: LoopMetric = LoopMetric {
    name: "rest_client_request_duration_seconds",
    help: "Request latency in seconds. Broken down by verb, and host.",
    labels: &["verb", "host"],
    kind: MetricKind::Histogram(&[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]),
};

/// See the module's documentation. Clones count together.
#[derive(Clone, Debug)]
pub struct RequestTallies(Arc<Mutex<Tallies>>);

#[derive(Debug)]
struct Tallies {
    requests: Tally,
    durations: Tally,
}

impl Default for RequestTallies {
    fn default() -> Self {
        let of = |metric| Tally::new(metric, ROWS_MAX);
        Self(Arc::new(Mutex::new(Tallies { requests: of(&REQUESTS), durations: of(&DURATIONS) })))
    }
}

impl RequestTallies {
    /// A request was answered with this code; or not at all.
    pub(crate) fn answered(&self, method: &Method, host: Option<&str>, code: Option<StatusCode>) {
        let code = code.as_ref().map_or(NO_ANSWER, StatusCode::as_str);
        let labels = [code, method.as_str(), host.unwrap_or(IN_PROCESS)];
        self.0.lock().requests.count(&labels, 1.0);
    }

    /// A whole answer was waited for so long. Streams have no end to be waited for.
    pub(crate) fn took(&self, method: &Method, host: Option<&str>, took: Duration) {
        self.0.lock().durations.count(&[method.as_str(), host.unwrap_or(IN_PROCESS)], took.as_secs_f64());
    }

    pub fn tallies(&self) -> Vec<Tally> {
        let tallies = self.0.lock();
        vec![tallies.durations.clone(), tallies.requests.clone()]
    }
}
