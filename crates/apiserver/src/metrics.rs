//! What `/metrics` tells, under the names kube-apiserver uses.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use corten_kinds::Kind;
use parking_lot::Mutex;

use crate::request::RequestInfo;

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

const SHARDS: usize = 8;

#[derive(Default)]
pub(crate) struct Metrics {
    /// In shards, so that requests on different threads seldom meet.
    requests: [Mutex<BTreeMap<Labels, Series>>; SHARDS],
    watches: Mutex<BTreeMap<Watched, Arc<AtomicI64>>>,
    reading: Arc<AtomicI64>,
    mutating: Arc<AtomicI64>,
}

/// Few enough to be bounded: only paths with a row keep their names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    code: u16,
}

type Watched = (&'static str, &'static str, &'static str);

#[derive(Default)]
struct Series {
    count: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
}

impl Series {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
    }
}

/// Counts one down when it is dropped.
pub(crate) struct Counted(Arc<AtomicI64>);

pub(crate) type WatchGuard = Counted;

impl Counted {
    fn up(counter: &Arc<AtomicI64>) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(counter.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn resource_labels(kind: Option<&'static Kind>) -> Watched {
    kind.map_or(("", "", ""), |it| (&*it.resource.group, &*it.resource.version, &*it.resource.plural))
}

impl Metrics {
    pub(crate) fn begin(&self, verb: &str) -> Counted {
        let mutating = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        Counted::up(if mutating { &self.mutating } else { &self.reading })
    }

    /// Requests that have no answer yet.
    pub(crate) fn in_flight(&self) -> i64 {
        self.reading.load(Relaxed) + self.mutating.load(Relaxed)
    }

    pub(crate) fn watching(&self, kind: &'static Kind) -> WatchGuard {
        let mut watches = self.watches.lock();
        Counted::up(watches.entry(resource_labels(Some(kind))).or_default())
    }

    pub(crate) fn record(&self, info: &RequestInfo, code: u16, took: Duration) {
        let (group, version, resource) = resource_labels(info.kind);
        let subresource = info.known_subresource().map_or("", corten_kinds::Subresource::as_str);
        let labels = Labels { verb: info.verb, group, version, resource, subresource, code };
        let seconds = took.as_secs_f64();
        let shard = usize::try_from(took.subsec_nanos()).unwrap_or_default() % SHARDS;
        let mut requests = self.requests[shard].lock();
        let series = requests.entry(labels).or_default();
        series.count += 1;
        series.seconds += seconds;
        for (bucket, bound) in series.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= *bound);
        }
    }

    /// The Prometheus text format.
    pub(crate) fn text(&self, started_seconds: i64) -> String {
        let mut out = String::new();
        self.write_requests(&mut out).expect("writing to memory does not fail");
        self.write_gauges(&mut out, started_seconds).expect("writing to memory does not fail");
        out
    }

    fn write_requests(&self, out: &mut String) -> std::fmt::Result {
        let requests = self.sums();
        head(
            out,
            "apiserver_request_total",
            "counter",
            "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
        )?;
        for (labels, series) in &requests {
            writeln!(out, "apiserver_request_total{{{},code=\"{}\"}} {}", labels.text(), labels.code, series.count)?;
        }
        let name = "apiserver_request_duration_seconds";
        head(
            out,
            name,
            "histogram",
            "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
        )?;
        for (labels, series) in merged(&requests) {
            for (bucket, bound) in series.buckets.iter().zip(BUCKETS) {
                writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {bucket}")?;
            }
            writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", series.count)?;
            writeln!(out, "{name}_sum{{{labels}}} {}", series.seconds)?;
            writeln!(out, "{name}_count{{{labels}}} {}", series.count)?;
        }
        Ok(())
    }

    /// Over all shards.
    fn sums(&self) -> BTreeMap<Labels, Series> {
        let mut sums: BTreeMap<Labels, Series> = BTreeMap::new();
        for shard in &self.requests {
            for (labels, series) in &*shard.lock() {
                sums.entry(labels.clone()).or_default().add(series);
            }
        }
        sums
    }

    fn write_gauges(&self, out: &mut String, started_seconds: i64) -> std::fmt::Result {
        head(
            out,
            "apiserver_current_inflight_requests",
            "gauge",
            "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
        )?;
        for (kind, counter) in [("mutating", &self.mutating), ("readOnly", &self.reading)] {
            let number = counter.load(Relaxed);
            writeln!(out, "apiserver_current_inflight_requests{{request_kind=\"{kind}\"}} {number}")?;
        }
        head(
            out,
            "apiserver_longrunning_requests",
            "gauge",
            "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component.",
        )?;
        for ((group, version, resource), counter) in &*self.watches.lock() {
            let number = counter.load(Relaxed);
            writeln!(
                out,
                "apiserver_longrunning_requests{{verb=\"WATCH\",group=\"{group}\",version=\"{version}\",resource=\"{resource}\"}} {number}"
            )?;
        }
        head(out, "process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")?;
        writeln!(out, "process_start_time_seconds {started_seconds}")?;
        if let Some(bytes) = resident_bytes() {
            head(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.")?;
            writeln!(out, "process_resident_memory_bytes {bytes}")?;
        }
        Ok(())
    }
}

fn head(out: &mut String, name: &str, metric_type: &str, help: &str) -> std::fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {metric_type}")
}

/// The histogram does not tell codes apart.
fn merged(requests: &BTreeMap<Labels, Series>) -> BTreeMap<String, Series> {
    let mut merged: BTreeMap<String, Series> = BTreeMap::new();
    for (labels, series) in requests {
        merged.entry(labels.text()).or_default().add(series);
    }
    merged
}

impl Labels {
    fn text(&self) -> String {
        let Self { verb, group, version, resource, subresource, .. } = self;
        let verb = verb.to_uppercase();
        format!(
            "verb=\"{verb}\",group=\"{group}\",version=\"{version}\",resource=\"{resource}\",subresource=\"{subresource}\",component=\"apiserver\""
        )
    }
}

/// From the second number of `/proc/self/statm`, which counts pages.
fn resident_bytes() -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}
