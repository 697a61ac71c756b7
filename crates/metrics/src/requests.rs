//! Requests that are under way, and how long those took that were answered.

use std::{collections::BTreeMap, time::Duration};

use corten_kinds::{Kind, Subresource};
use corten_meta::Resource;
use corten_routes::RequestInfo;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, Registry};

use crate::registered::{buckets_of_requests, counter, gauge, histogram};

/// The names of a resource: of a built-in kind, or what a definition calls its own.
pub(crate) type Word = std::borrow::Cow<'static, str>;

const SHARDS: usize = 8;

pub struct Requests {
    total: IntCounterVec,
    took: HistogramVec,
    /// In shards, so that requests on different threads seldom meet.
    known: [Mutex<BTreeMap<Labels, Counters>>; SHARDS],
    reading: IntGauge,
    mutating: IntGauge,
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

#[derive(Clone)]
struct Counters {
    total: IntCounter,
    /// `None` for what is meant to take long.
    took: Option<Histogram>,
}

/// Counts one down when it is dropped.
pub struct Underway(IntGauge);

impl Underway {
    pub(crate) fn up(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.dec();
    }
}

const LABELS: [&str; 8] = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];

impl Requests {
    pub(crate) fn new(registry: &Registry) -> Self {
        let total = counter(
            registry,
            "apiserver_request_total",
            "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
            &[&LABELS[..], &["code"]].concat(),
        );
        let took = histogram(
            registry,
            "apiserver_request_duration_seconds",
            "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
            buckets_of_requests(),
            &LABELS,
        );
        let in_flight = gauge(
            registry,
            "apiserver_current_inflight_requests",
            "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
            &["request_kind"],
        );
        let [reading, mutating] = ["readOnly", "mutating"].map(|it| in_flight.with_label_values(&[it]));
        Self { total, took, known: Default::default(), reading, mutating }
    }

    pub fn begin(&self, verb: &str) -> Underway {
        let mutating = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        Underway::up(if mutating { &self.mutating } else { &self.reading })
    }

    /// Requests that have no answer yet.
    pub fn in_flight(&self) -> i64 {
        self.reading.get() + self.mutating.get()
    }

    pub fn record(&self, info: &RequestInfo, content_type: &str, code: u16, took: Duration) {
        let labels = Labels::of(info, content_type, code);
        let shard = usize::try_from(took.subsec_nanos()).unwrap_or_default() % SHARDS;
        let counters = {
            let mut known = self.known[shard].lock();
            match known.get(&labels) {
                Some(it) => it.clone(),
                None => known.entry(labels.clone()).or_insert_with(|| self.counters(&labels)).clone(),
            }
        };
        counters.total.inc();
        if let Some(histogram) = counters.took {
            histogram.observe(took.as_secs_f64());
        }
    }

    fn counters(&self, labels: &Labels) -> Counters {
        let values = labels.values();
        let code = labels.code.to_string();
        let total = self.total.with_label_values(&[&values[..], &[&*code]].concat());
        let is_long = matches!(labels.verb, "WATCH" | "CONNECT");
        Counters { total, took: (!is_long).then(|| self.took.with_label_values(&values)) }
    }

    pub(crate) fn forget(&self, resource: &Resource) {
        for shard in &self.known {
            shard.lock().retain(|labels, _| {
                let is_of = labels.group == resource.group
                    && labels.version == resource.version
                    && labels.resource == resource.plural;
                if is_of {
                    let values = labels.values();
                    let code = labels.code.to_string();
                    // The histogram does not tell codes apart, and shards share both: it may be gone already.
                    let _ = self.total.remove_label_values(&[&values[..], &[&*code]].concat());
                    let _ = self.took.remove_label_values(&values);
                }
                !is_of
            });
        }
    }
}

impl Labels {
    fn of(info: &RequestInfo, content_type: &str, code: u16) -> Self {
        let (group, version, resource) = resource_labels(info.kind().map(|it| &**it));
        let subresource = info.route.subresource().map_or("", Subresource::as_str);
        let dry_run = if info.query.all("dryRun").next().is_some() { "All" } else { "" };
        let verb = verb(info, content_type, subresource);
        Self { verb, group, version, resource, subresource, scope: scope(info), dry_run, code }
    }

    fn values(&self) -> [&str; 8] {
        let Self { verb, group, version, resource, subresource, scope, dry_run, .. } = self;
        [verb, dry_run, group, version, resource, subresource, scope, "apiserver"]
    }
}

/// Group, version and plural; empty for what is no resource.
pub(crate) fn resource_labels(kind: Option<&Kind>) -> (Word, Word, Word) {
    kind.map(|it| &it.resource)
        .map_or_else(Default::default, |it| (it.group.clone(), it.version.clone(), it.plural.clone()))
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
