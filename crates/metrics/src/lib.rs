//! What `/metrics` tells, under the names kube-apiserver uses.
//!
//! What is counted while the server runs is registered once, with [`Metrics::registry`]; what is only known by a look (the
//! process, the disk, the loops) is made of [`scraped`] values each time somebody asks.

mod bounded;
mod cel;
pub mod loops;
mod match_conditions;
mod per_thread;
mod process;
pub mod registered;
mod requests;
pub mod scraped;
mod store;
#[cfg(test)]
mod tests;
pub mod waits;
mod watches;

pub use bounded::{BoundedLabels, forget_labelled};
pub use cel::CelMetrics;
use corten_meta::Resource;
pub use match_conditions::{MatchConditions, Outcome};
pub use per_thread::HistogramsPerThread;
pub use process::{disk, process};
use prometheus::{Encoder, TextEncoder};
pub use prometheus::{
    Gauge, GaugeVec as Gauges, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Registry, local::LocalHistogram, proto::MetricFamily,
};
pub use requests::{RequestTime, Requests, Underway};
pub use store::StoreMetrics;
pub use watches::{WatchGuard, Watches};

/// The media type of [`Metrics::text`].
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is counted of requests, watches and writes; and where others register what they count.
pub struct Metrics {
    registry: Registry,
    pub requests: Requests,
    pub watches: Watches,
    pub store: StoreMetrics,
    pub cel: CelMetrics,
    pub webhook_conditions: MatchConditions,
    pub policy_conditions: MatchConditions,
    /// What `/metrics/slis` counts.
    slis: Registry,
    health_checks: IntCounterVec,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let requests = Requests::new(&registry);
        let watches = Watches::new(&registry);
        let store = StoreMetrics::new(&registry);
        let cel = CelMetrics::new(&registry);
        let [webhook_conditions, policy_conditions] = MatchConditions::new(&registry);
        let slis = Registry::new();
        let help = "This metric records the results of all healthcheck.";
        let health_checks =
            registered::counter(&slis, "kubernetes_healthchecks_total", help, &["name", "type", "status"]);
        Self { registry, requests, watches, store, cel, webhook_conditions, policy_conditions, slis, health_checks }
    }
}

impl Metrics {
    /// Where who counts something registers it.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What is counted, and what was found by looking, as Prometheus's text.
    pub fn text(&self, mut scraped: Vec<MetricFamily>) -> String {
        let mut families = self.registry.gather();
        families.append(&mut scraped);
        encoded(&families)
    }

    /// A check of `healthz`, `livez` or `readyz` was made.
    pub fn count_health_check(&self, name: &str, root: &str, holds: bool) {
        let status = if holds { "success" } else { "error" };
        self.health_checks.with_label_values(&[name, root, status]).inc();
    }

    /// What `/metrics/slis` counts, and what was found by looking.
    pub fn text_of_slis(&self, mut scraped: Vec<MetricFamily>) -> String {
        scraped.append(&mut self.slis.gather());
        encoded(&scraped)
    }

    /// Forgets what was counted of a resource that is no longer served. Who still watches it counts on, unseen.
    pub fn forget(&self, resource: &Resource) {
        self.requests.forget(resource);
        self.watches.forget(resource);
        self.store.forget(resource);
    }
}

/// Families that hold nothing are left out.
pub fn encoded(families: &[MetricFamily]) -> String {
    let mut out = Vec::new();
    for family in families.iter().filter(|it| !it.get_metric().is_empty()) {
        TextEncoder::new().encode(std::slice::from_ref(family), &mut out).expect("writing to memory does not fail");
    }
    String::from_utf8(out).expect("names, labels and help are text")
}
