//! What `/metrics` tells, under the names kube-apiserver uses.

mod histogram;
mod process;
mod store;

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use corten_kinds::Kind;
use corten_routes::RequestInfo;
use histogram::{Bounds, Histogram};
use parking_lot::Mutex;
pub(crate) use process::{disk, objects, process, queues, reloads};
use store::StoreMetrics;

const BOUNDS: Bounds = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

const SHARDS: usize = 8;

#[derive(Default)]
pub(crate) struct Metrics {
    /// In shards, so that requests on different threads seldom meet.
    requests: [Mutex<BTreeMap<Labels, Histogram>>; SHARDS],
    watches: Mutex<BTreeMap<Watched, Arc<AtomicI64>>>,
    schedulers_watching: Arc<AtomicI64>,
    controllers_watching: Arc<AtomicI64>,
    reading: Arc<AtomicI64>,
    mutating: Arc<AtomicI64>,
    /// Events that were sent to watchers.
    watch_events: Mutex<BTreeMap<Watched, Arc<AtomicU64>>>,
    pub(crate) store: StoreMetrics,
}

/// Few enough to be bounded: only paths with a row keep their names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: Word,
    version: Word,
    resource: Word,
    subresource: &'static str,
    scope: &'static str,
    dry_run: &'static str,
    code: u16,
}

type Watched = (Word, Word, Word);

/// Of a built-in kind, or what a definition calls its own.
type Word = std::borrow::Cow<'static, str>;

/// Counts one down when it is dropped.
pub(crate) struct Counted(Arc<AtomicI64>);

/// One watch that is going on, and whether one of the cluster's own loops has it.
pub(crate) struct WatchGuard {
    _counted: (Counted, Option<Counted>),
    events: Arc<AtomicU64>,
}

impl WatchGuard {
    pub(crate) fn sent(&self, n_events: usize) {
        self.events.fetch_add(n_events as u64, Relaxed);
    }
}

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

fn resource_labels(kind: Option<&Kind>) -> Watched {
    kind.map(|it| &it.resource)
        .map_or_else(Watched::default, |it| (it.group.clone(), it.version.clone(), it.plural.clone()))
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

    pub(crate) fn watching(&self, kind: &Kind, user: &str) -> WatchGuard {
        let of_loop = if user == "system:kube-scheduler" {
            Some(&self.schedulers_watching)
        } else if user == "system:kube-controller-manager" {
            Some(&self.controllers_watching)
        } else {
            None
        };
        let labels = resource_labels(Some(kind));
        let watch = Counted::up(self.watches.lock().entry(labels.clone()).or_default());
        let events = self.watch_events.lock().entry(labels).or_default().clone();
        WatchGuard { _counted: (watch, of_loop.map(Counted::up)), events }
    }

    pub(crate) fn schedulers_watching(&self) -> i64 {
        self.schedulers_watching.load(Relaxed)
    }

    pub(crate) fn controllers_watching(&self) -> i64 {
        self.controllers_watching.load(Relaxed)
    }

    pub(crate) fn record(&self, info: &RequestInfo, content_type: &str, code: u16, took: Duration) {
        let (group, version, resource) = resource_labels(info.kind().map(|it| &**it));
        let subresource = info.route.subresource().map_or("", corten_kinds::Subresource::as_str);
        let dry_run = if info.query.all("dryRun").next().is_some() { "All" } else { "" };
        let labels = Labels {
            verb: verb(info, content_type, subresource),
            group,
            version,
            resource,
            subresource,
            scope: scope(info),
            dry_run,
            code,
        };
        let shard = usize::try_from(took.subsec_nanos()).unwrap_or_default() % SHARDS;
        self.requests[shard].lock().entry(labels).or_default().record(BOUNDS, took.as_secs_f64());
    }

    /// The Prometheus text format.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write_requests(&mut out).expect("writing to memory does not fail");
        self.write_gauges(&mut out).expect("writing to memory does not fail");
        self.store.write(&mut out).expect("writing to memory does not fail");
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
        for (labels, took) in &requests {
            writeln!(out, "apiserver_request_total{{{},code=\"{}\"}} {}", labels.text(), labels.code, took.count)?;
        }
        let name = "apiserver_request_duration_seconds";
        head(
            out,
            name,
            "histogram",
            "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
        )?;
        for (labels, took) in merged(&requests) {
            took.write(out, name, &labels, BOUNDS)?;
        }
        Ok(())
    }

    /// Over all shards.
    fn sums(&self) -> BTreeMap<Labels, Histogram> {
        let mut sums: BTreeMap<Labels, Histogram> = BTreeMap::new();
        for shard in &self.requests {
            for (labels, took) in &*shard.lock() {
                sums.entry(labels.clone()).or_default().add(took);
            }
        }
        sums
    }

    fn write_gauges(&self, out: &mut String) -> std::fmt::Result {
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
        let name = "apiserver_watch_events_total";
        head(out, name, "counter", "Number of events sent in watch clients")?;
        for ((group, version, resource), counter) in &*self.watch_events.lock() {
            let number = counter.load(Relaxed);
            writeln!(out, "{name}{{group=\"{group}\",version=\"{version}\",resource=\"{resource}\"}} {number}")?;
        }
        Ok(())
    }
}

fn head(out: &mut String, name: &str, metric_type: &str, help: &str) -> std::fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {metric_type}")
}

/// The histogram does not tell codes apart, and leaves out what is meant to take long.
fn merged(requests: &BTreeMap<Labels, Histogram>) -> BTreeMap<String, Histogram> {
    let mut merged: BTreeMap<String, Histogram> = BTreeMap::new();
    for (labels, took) in requests.iter().filter(|it| !matches!(it.0.verb, "WATCH" | "CONNECT")) {
        merged.entry(labels.text()).or_default().add(took);
    }
    merged
}

/// As kube-apiserver names what was asked: methods, but for reads that are more than one, and long ones.
fn verb(info: &RequestInfo, content_type: &str, subresource: &str) -> &'static str {
    match info.verb {
        _ if matches!(subresource, "attach" | "exec" | "portforward" | "log") => "CONNECT",
        "get" => "GET",
        "head" => "HEAD",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" if content_type.starts_with("application/apply-patch") => "APPLY",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        _ => "other",
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    match info.kind() {
        None => "",
        Some(_) if !info.name.is_empty() || info.verb == "create" => "resource",
        Some(_) if !info.namespace.is_empty() => "namespace",
        Some(_) => "cluster",
    }
}

impl Labels {
    fn text(&self) -> String {
        let Self { verb, group, version, resource, subresource, scope, dry_run, .. } = self;
        format!(
            "verb=\"{verb}\",dry_run=\"{dry_run}\",group=\"{group}\",version=\"{version}\",resource=\"{resource}\",subresource=\"{subresource}\",scope=\"{scope}\",component=\"apiserver\""
        )
    }
}
