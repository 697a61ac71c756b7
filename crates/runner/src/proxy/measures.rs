//! What is counted of packet rules, under kube-proxy's names.
//!
//! Both families of addresses are in one table, and one transaction may change both: it counts for each that it changes.

use std::sync::Arc;

use corten_meta::Time;
use corten_proxy::rules::{Change, Family};
use corten_reconcile::{LoopMetric, MetricKind};
use tokio::time::Instant;

use crate::{Clock, JournalBook};

/// Where the kernel refuses rules for long, news beyond these are not counted.
const PENDING_MAX: usize = 10_000;
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

static SYNC: LoopMetric = LoopMetric {
    name: "kubeproxy_sync_proxy_rules_duration_seconds",
    help: "SyncProxyRules latency in seconds",
    labels: &["ip_family"],
    kind: MetricKind::Histogram(&[
        0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
    ]),
};
/// The first bucket is upstream's, too.
static PROGRAMMING: LoopMetric = LoopMetric {
    name: "kubeproxy_network_programming_duration_seconds",
    help: "In Cluster Network Programming Latency in seconds",
    labels: &["ip_family"],
    kind: MetricKind::Histogram(&[
        0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0,
        18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, 32.0, 33.0, 34.0, 35.0,
        36.0, 37.0, 38.0, 39.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0, 48.0, 49.0, 50.0, 51.0, 52.0, 53.0,
        54.0, 55.0, 56.0, 57.0, 58.0, 59.0, 60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 100.0, 105.0, 110.0, 115.0,
        120.0, 150.0, 180.0, 210.0, 240.0, 270.0, 300.0,
    ]),
};

pub(super) struct ProxyMeasures {
    journal: Arc<JournalBook>,
    clock: Clock,
    /// What began before is no measure of this loop.
    begun: Time,
    /// When that began whose consequences the kernel does not know yet.
    pending: Vec<(Family, Time)>,
}

/// The families that a transaction changes. One that has no elements of either makes or removes what both need.
pub(super) fn families(changes: &[Change]) -> Vec<Family> {
    let is_of = |family: Family| {
        changes.iter().any(|it| match it {
            Change::Add(element, _) | Change::Remove(element) => element.map.family() == family,
            _ => false,
        })
    };
    let found: Vec<Family> = FAMILIES.into_iter().filter(|it| is_of(*it)).collect();
    if found.is_empty() { FAMILIES.to_vec() } else { found }
}

impl ProxyMeasures {
    pub(super) fn new(journal: Arc<JournalBook>, clock: Clock) -> Self {
        Self { begun: clock(), journal, clock, pending: Vec::new() }
    }

    /// News came that the kernel is to hear of.
    pub(super) fn await_kernel(&mut self, triggers: &[(Family, Time)]) {
        let room = PENDING_MAX - self.pending.len();
        self.pending.extend(triggers.iter().filter(|it| it.1 > self.begun).take(room));
    }

    /// The kernel was told something of these families, whether or not it took it.
    pub(super) fn synced(&mut self, families: &[Family], since: Instant) {
        let took = since.elapsed().as_secs_f64();
        families.iter().for_each(|it| self.journal.of_node().observe(&SYNC, &[label(*it)], took));
    }

    /// The kernel has all that came.
    pub(super) fn programmed(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let now = (self.clock)();
        for (family, triggered_at) in self.pending.drain(..) {
            let took = now.since(triggered_at).as_secs_f64();
            self.journal.of_node().observe(&PROGRAMMING, &[label(family)], took);
        }
    }
}

fn label(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}
