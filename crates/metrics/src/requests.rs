//! Requests that are under way, and how long those took that were answered.

use std::{collections::BTreeMap, time::Duration};

use corten_kinds::{Kind, Subresource};
use corten_meta::Resource;
use corten_routes::RequestInfo;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use crate::{
    bounded::forget_resource,
    registered::{buckets_of_requests, counter, gauge, histogram},
};

/// The names of a resource: of a built-in kind, or what a definition calls its own.
pub(crate) type Word = std::borrow::Cow<'static, str>;

const SHARDS: usize = 8;

pub struct Requests {
    total: IntCounterVec,
    took: HistogramVec,
    /// The same, without what others take and without waiting for a seat.
    own: HistogramVec,
    /// How large answers to reads are.
    sizes: HistogramVec,
    /// Those that were not served, so that the server can go on: refused for want of a seat, out of time, panicked.
    terminated: IntCounterVec,
    deprecated: IntGaugeVec,
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
    /// `None` for what is meant to take long: the whole time, and the server's own.
    took: Option<[Histogram; 2]>,
    /// Of reads alone.
    size: Option<Histogram>,
}

/// How long a request took, and how long of that it waited for a seat or for webhooks.
#[derive(Clone, Copy)]
pub struct RequestTime {
    pub whole: Duration,
    pub waited: Duration,
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

/// As kube-apiserver calls itself.
pub(crate) const COMPONENT: &str = "apiserver";
/// What [`scope`] says of what is a resource.
pub(crate) const SCOPES: [&str; 3] = ["resource", "namespace", "cluster"];

const LABELS: [&str; 8] = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];

const SLI_LABELS: [&str; 7] = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
/// kube-apiserver's buckets of what it promises, in seconds.
const SECONDS_OF_SLI: [f64; 21] =
    [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0];

/// kube-apiserver's buckets of answers, in bytes.
const BYTES_OF_ANSWERS: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

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
        let own = histogram(
            registry,
            "apiserver_request_sli_duration_seconds",
            "Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.",
            SECONDS_OF_SLI.to_vec(),
            &SLI_LABELS,
        );
        let sizes = histogram(
            registry,
            "apiserver_response_sizes",
            "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
            BYTES_OF_ANSWERS.to_vec(),
            &SLI_LABELS,
        );
        let in_flight = gauge(
            registry,
            "apiserver_current_inflight_requests",
            "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
            &["request_kind"],
        );
        let terminated = counter(
            registry,
            "apiserver_request_terminations_total",
            "Number of requests which apiserver terminated in self-defense.",
            &[&SLI_LABELS[..], &["code"]].concat(),
        );
        let deprecated = gauge(
            registry,
            "apiserver_requested_deprecated_apis",
            "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.",
            &["group", "version", "resource", "subresource", "removed_release"],
        );
        let [reading, mutating] = ["readOnly", "mutating"].map(|it| in_flight.with_label_values(&[it]));
        Self { total, took, own, sizes, terminated, deprecated, known: Default::default(), reading, mutating }
    }

    pub fn begin(&self, verb: &str) -> Underway {
        let mutating = matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        Underway::up(if mutating { &self.mutating } else { &self.reading })
    }

    /// Requests that have no answer yet.
    pub fn in_flight(&self) -> i64 {
        self.reading.get() + self.mutating.get()
    }

    /// The answer is still to be sent: what is given is told how large it is, where that is counted.
    pub fn record(&self, info: &RequestInfo, content_type: &str, code: u16, time: RequestTime) -> Option<Histogram> {
        let labels = Labels::of(info, content_type, code);
        let shard = usize::try_from(time.whole.subsec_nanos()).unwrap_or_default() % SHARDS;
        let counters = {
            let mut known = self.known[shard].lock();
            match known.get(&labels) {
                Some(it) => it.clone(),
                None => known.entry(labels.clone()).or_insert_with(|| self.counters(&labels)).clone(),
            }
        };
        counters.total.inc();
        if let Some([whole, own]) = counters.took {
            whole.observe(time.whole.as_secs_f64());
            own.observe(time.whole.saturating_sub(time.waited).as_secs_f64());
        }
        counters.size
    }

    /// Beside [`Requests::record`], of a request that was not served for the server's sake.
    pub fn terminate(&self, info: &RequestInfo, content_type: &str, code: u16) {
        let labels = Labels::of(info, content_type, code);
        self.terminated.with_label_values(&[&labels.sli_values()[..], &[&*code.to_string()]].concat()).inc();
    }

    /// Somebody uses a resource that is deprecated.
    pub fn note_deprecated(&self, info: &RequestInfo, removed_release: &str) {
        let (group, version, resource) = resource_labels(info.kind().map(|it| &**it));
        let subresource = info.route.subresource().map_or("", Subresource::as_str);
        self.deprecated.with_label_values(&[&*group, &*version, &*resource, subresource, removed_release]).set(1);
    }

    fn counters(&self, labels: &Labels) -> Counters {
        let values = labels.values();
        let code = labels.code.to_string();
        let total = self.total.with_label_values(&[&values[..], &[&*code]].concat());
        let is_long = matches!(labels.verb, "WATCH" | "CONNECT");
        let took = || [self.took.with_label_values(&values), self.own.with_label_values(&labels.sli_values())];
        let is_read = matches!(labels.verb, "GET" | "LIST");
        let size = is_read.then(|| self.sizes.with_label_values(&labels.sli_values()));
        Counters { total, took: (!is_long).then(took), size }
    }

    pub(crate) fn forget(&self, resource: &Resource) {
        forget_resource(&self.terminated, resource);
        forget_resource(&self.deprecated, resource);
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
                    let _ = self.own.remove_label_values(&labels.sli_values());
                    let _ = self.sizes.remove_label_values(&labels.sli_values());
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
        [verb, dry_run, group, version, resource, subresource, scope, COMPONENT]
    }

    fn sli_values(&self) -> [&str; 7] {
        let Self { verb, group, version, resource, subresource, scope, .. } = self;
        [verb, group, version, resource, subresource, scope, COMPONENT]
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

pub(crate) fn scope(info: &RequestInfo) -> &'static str {
    match info.kind() {
        None => "",
        Some(_) if !info.name.is_empty() || info.verb == "create" => "resource",
        Some(_) if !info.namespace.is_empty() => "namespace",
        Some(_) => "cluster",
    }
}
