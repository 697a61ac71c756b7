//! What metrics servers say: where it is asked for, and what came.
//!
//! ```text
//! metrics.k8s.io           what Pods and containers use: this server's own, or another's
//! custom.metrics.k8s.io    of Pods, and of any object
//! external.metrics.k8s.io  of what is no object
//! ```
//! These servers are others', and may say anything: what cannot be read is an error of the metric, sums stop at the end of all
//! numbers, and what is said of a Pod that is not the target's counts for nothing.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::{Key, LabelSelector, Quantity, Resource, Segment, Time, duration, shortened};
use corten_reconcile::{ApiPath, View, served::ApiService};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    pod::AutoscaledPod,
    spec::{Autoscaler, Identifier},
};
use crate::target::{Reference, resources_of};

const CUSTOM: &str = "custom.metrics.k8s.io";
const EXTERNAL: &str = "external.metrics.k8s.io";
/// Of a custom metric that does not say which time it covers (`metricServerDefaultMetricWindow`).
const WINDOW: Duration = Duration::from_secs(60);
/// No list for all autoscalers of a namespace is longer: it must be within what is read of an answer.
const PODS_MAX: usize = 5000;
/// For so many Pods of a namespace there must be an autoscaler.
const PODS_EACH_MAX: usize = 32;

pub(super) struct PodMetric {
    pub(super) timestamp: Time,
    pub(super) window: Duration,
    /// In thousandths.
    pub(super) value: i64,
}

/// By the Pods' names.
pub(super) type PodMetrics = BTreeMap<String, PodMetric>;

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

/// What Pods use, by their names. What is said of one and cannot be read is an error of that one.
pub(crate) type Usages = BTreeMap<String, Result<UsageOfPod, String>>;

#[derive(Deserialize)]
pub(crate) struct UsageOfPod {
    pub(crate) metadata: PodName,
    #[serde(default)]
    timestamp: Option<Time>,
    #[serde(default)]
    window: String,
    #[serde(default = "Vec::new")]
    pub(crate) containers: Vec<UsageOfContainer>,
}

/// What is said of a Pod, whatever that is.
#[derive(Deserialize)]
struct NamedPod {
    metadata: PodName,
}

/// Labels are left out: there may be many Pods.
#[derive(Deserialize)]
pub(crate) struct PodName {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
pub(crate) struct UsageOfContainer {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) usage: BTreeMap<String, Quantity>,
}

/// `MetricValue` of `v1beta1` and `v1beta2`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomValue {
    described_object: Reference,
    #[serde(default)]
    timestamp: Option<Time>,
    #[serde(default, alias = "window")]
    window_seconds: Option<i64>,
    value: Quantity,
}

#[derive(Deserialize)]
struct ExternalValue {
    value: Quantity,
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, String> {
    serde_json::from_slice::<List<T>>(body).map(|it| it.items).map_err(|error| unread(&error))
}

/// What cannot be read is as long as others make it.
fn unread(error: &serde_json::Error) -> String {
    shortened(&error.to_string()).into_owned()
}

fn label_selector(name: &'static str, selector: String) -> Vec<(&'static str, String)> {
    if selector.is_empty() { Vec::new() } else { vec![(name, selector)] }
}

/// Why a GET brought nothing. Of an answer that gives no reason of its own it is said, as client-go does, what was asked for
/// (`NewGenericServerResponse`): `the server could not find the requested resource (get pods.metrics.k8s.io)`.
pub(crate) fn unfetched(path: &ApiPath, why: &str) -> String {
    const NOT_FOUND: &str = "the server could not find the requested resource";
    const UNAVAILABLE: &str = "the server is currently unable to handle the request";
    let why = match why.trim_end() {
        NOT_FOUND | "404 page not found" => NOT_FOUND,
        // Of a server behind an APIService that cannot be reached.
        UNAVAILABLE | "service unavailable" => UNAVAILABLE,
        own => return own.to_owned(),
    };
    let mut segments = path.path.split('/').skip_while(|it| *it != "apis").skip(1);
    let group = segments.next().unwrap_or_default();
    // The version, and the namespace.
    let mut segments = segments.skip(3);
    match (segments.next(), segments.next()) {
        (Some(resource), Some(name)) => format!("{why} (get {}.{group} {})", unescaped(resource), unescaped(name)),
        (Some(resource), None) => format!("{why} (get {}.{group})", unescaped(resource)),
        (None, _) => why.to_owned(),
    }
}

/// As it was before [`Segment`] wrote it.
fn unescaped(segment: &str) -> String {
    let mut parts = segment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        bytes.extend(u8::from_str_radix(code, 16));
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

// ---- metrics.k8s.io ----

pub(crate) fn resource_path(namespace: &str, selector: &str) -> ApiPath {
    const PODS: Resource = corten_api::resources::POD_METRICS;
    ApiPath { path: PODS.collection_path(namespace), query: label_selector("labelSelector", selector.to_owned()) }
}

fn no_usages(error: &str) -> String {
    format!("unable to fetch metrics from resource metrics API: {error}")
}

/// What each container of the Pods uses, of each Pod what was said last. One of them that cannot be read is nothing to the others.
pub(crate) fn usages_by_name(body: &[u8]) -> Result<Usages, String> {
    if let Ok(all) = read::<UsageOfPod>(body) {
        return Ok(all.into_iter().map(|it| (it.metadata.name.clone(), Ok(it))).collect());
    }
    let all = serde_json::from_slice::<List<&RawValue>>(body).map_err(|error| no_usages(&unread(&error)))?.items;
    let read_one = |it: &RawValue| {
        let name = serde_json::from_str::<NamedPod>(it.get()).ok()?.metadata.name;
        Some((name, serde_json::from_str::<UsageOfPod>(it.get()).map_err(|error| no_usages(&unread(&error)))))
    };
    Ok(all.into_iter().filter_map(read_one).collect())
}

/// Is one list for all autoscalers of a namespace less than a list for each? It is where there are several, and where most of
/// what it tells is likely to be of Pods that one of them has.
pub(super) fn is_measured_together(view: &View, namespace: &str) -> bool {
    let n_pods = view.count_in_namespace::<AutoscaledPod>(namespace);
    let n_wanted = n_pods.div_ceil(PODS_EACH_MAX).max(2);
    n_pods <= PODS_MAX && view.in_namespace::<Autoscaler>(namespace).nth(n_wanted - 1).is_some()
}

/// What Pods use of a resource, or one of their containers (`GetResourceMetric`).
pub(super) fn resource_usage<'a>(
    pods: impl Iterator<Item = &'a UsageOfPod>,
    resource: &str,
    container: &str,
) -> Result<PodMetrics, String> {
    let mut pods = pods.peekable();
    if pods.peek().is_none() {
        return Err("no metrics returned from resource metrics API".into());
    }
    let mut metrics = PodMetrics::new();
    for pod in pods {
        let value = match container.is_empty() {
            true => pod.usage(resource),
            false => pod.usage_of_container(resource, container)?,
        };
        let Some(value) = value else { continue };
        let window = duration::nanos(&pod.window).ok().and_then(|it| u64::try_from(it).ok());
        let window = window.map_or(Duration::ZERO, Duration::from_nanos);
        let timestamp = pod.timestamp.unwrap_or(Time::MIN);
        metrics.insert(pod.metadata.name.clone(), PodMetric { timestamp, window, value });
    }
    Ok(metrics)
}

impl UsageOfPod {
    /// Of all containers; of a Pod with one that says nothing of the resource nothing is known.
    fn usage(&self, resource: &str) -> Option<i64> {
        let used: Option<Vec<i64>> =
            self.containers.iter().map(|it| Some(it.usage.get(resource)?.milli_value())).collect();
        used.filter(|it| !it.is_empty()).map(|it| it.into_iter().fold(0, i64::saturating_add))
    }

    fn usage_of_container(&self, resource: &str, container: &str) -> Result<Option<i64>, String> {
        let found = self.containers.iter().find(|it| it.name == container).ok_or_else(|| {
            let PodName { namespace, name } = &self.metadata;
            format!(
                "failed to get container metrics: container {container} not present in metrics for pod {namespace}/{name}"
            )
        })?;
        Ok(found.usage.get(resource).map(|it| it.milli_value()))
    }
}

// ---- custom.metrics.k8s.io ----

/// Of the versions that are registered the newest that is known.
fn custom_group(view: &View) -> Result<Resource, String> {
    let is_registered = |version: &&str| view.get::<ApiService>(&Key::cluster(format!("{version}.{CUSTOM}"))).is_some();
    let version = ["v1beta2", "v1beta1"].into_iter().find(is_registered);
    let version = version.ok_or_else(|| {
        format!("unable to fetch metrics from custom metrics API: no custom metrics API ({CUSTOM}) registered")
    })?;
    Ok(Resource::namespaced(CUSTOM, version, "MetricValueList", ""))
}

pub(super) fn pods_path(view: &View, namespace: &str, selector: &str, metric: &Identifier) -> Result<ApiPath, String> {
    let of_pods = Resource { plural: "pods".into(), ..custom_group(view)? };
    let mut query = label_selector("labelSelector", selector.to_owned());
    query.extend(label_selector("metricLabelSelector", written(metric)));
    Ok(ApiPath { path: format!("{}/*/{}", of_pods.collection_path(namespace), Segment(&metric.name)), query })
}

pub(super) fn pods_values(body: &[u8]) -> Result<PodMetrics, String> {
    let values: Vec<CustomValue> =
        read(body).map_err(|error| format!("unable to fetch metrics from custom metrics API: {error}"))?;
    if values.is_empty() {
        return Err("no metrics returned from custom metrics API".into());
    }
    let metric = |it: CustomValue| {
        let seconds = it.window_seconds.map(|it| u64::try_from(it).unwrap_or_default());
        let window = seconds.map_or(WINDOW, Duration::from_secs);
        let value = it.value.milli_value();
        (it.described_object.name, PodMetric { timestamp: it.timestamp.unwrap_or(Time::MIN), window, value })
    };
    Ok(values.into_iter().map(metric).collect())
}

/// Of one object in the namespace, or of the namespace itself: an autoscaler does not see beyond (`GetObjectMetric`).
pub(super) fn object_path(
    view: &View,
    namespace: &str,
    object: &Reference,
    metric: &Identifier,
) -> Result<ApiPath, String> {
    let group = custom_group(view)?;
    let query = label_selector("metricLabelSelector", written(metric));
    if object.kind == "Namespace" && !object.api_version.contains('/') {
        let path =
            format!("{}/metrics/{}", group.collection_path(namespace).trim_end_matches('/'), Segment(&metric.name));
        return Ok(ApiPath { path, query });
    }
    let resources = resources_of(view, object)
        .map_err(|error| format!("unable to fetch metrics from custom metrics API: {error}"))?;
    let plural = resources.first().map(Resource::qualified).unwrap_or_default();
    let key = Key::new(namespace, &*object.name);
    let of = Resource { plural: plural.into(), ..group };
    Ok(ApiPath { path: format!("{}/{}", of.path(&key), Segment(&metric.name)), query })
}

pub(super) fn object_value(body: &[u8]) -> Result<i64, String> {
    let values: Vec<CustomValue> =
        read(body).map_err(|error| format!("unable to fetch metrics from custom metrics API: {error}"))?;
    match &values[..] {
        [value] => Ok(value.value.milli_value()),
        _ => Err(format!(
            "unable to fetch metrics from custom metrics API: the custom metrics API server returned {} results when we asked \
             for exactly one",
            values.len()
        )),
    }
}

// ---- external.metrics.k8s.io ----

pub(super) fn external_path(namespace: &str, metric: &Identifier) -> ApiPath {
    const VALUES: Resource = Resource::namespaced(EXTERNAL, "v1beta1", "ExternalMetricValueList", "");
    let path = format!("{}{}", VALUES.collection_path(namespace), Segment(&metric.name));
    ApiPath { path, query: label_selector("labelSelector", written(metric)) }
}

/// All that have the metric's labels, together.
pub(super) fn external_value(body: &[u8]) -> Result<i64, String> {
    let values: Vec<ExternalValue> =
        read(body).map_err(|error| format!("unable to fetch metrics from external metrics API: {error}"))?;
    if values.is_empty() {
        return Err("no metrics returned from external metrics API".into());
    }
    Ok(values.iter().map(|it| it.value.milli_value()).fold(0, i64::saturating_add))
}

// ---- selectors ----

/// The metric's selector in its text form; empty where it has none.
fn written(metric: &Identifier) -> String {
    metric.selector.as_ref().map(LabelSelector::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_stands_behind_what_no_server_says_of_its_own() {
        const UNAVAILABLE: &str = "the server is currently unable to handle the request";
        const NOT_FOUND: &str = "the server could not find the requested resource";
        let custom = "custom.metrics.k8s.io/v1beta2/namespaces/default";
        for (path, why, said) in [
            ("metrics.k8s.io/v1beta1/namespaces/default/pods", NOT_FOUND, "(get pods.metrics.k8s.io)"),
            (&format!("{custom}/pods/*/m"), UNAVAILABLE, "(get pods.custom.metrics.k8s.io *)"),
            (
                &format!("{custom}/ingresses.networking.k8s.io/main/hits"),
                "service unavailable",
                "(get ingresses.networking.k8s.io.custom.metrics.k8s.io main)",
            ),
            (&format!("{custom}/metrics/hits"), NOT_FOUND, "(get metrics.custom.metrics.k8s.io hits)"),
            ("external.metrics.k8s.io/v1beta1/namespaces/default/q", NOT_FOUND, "(get q.external.metrics.k8s.io)"),
            (
                "external.metrics.k8s.io/v1beta1/namespaces/default/a.io%7Cq%7C%C3%BC",
                "404 page not found\n",
                "(get a.io|q|ü.external.metrics.k8s.io)",
            ),
        ] {
            let generic = if why.contains("unavailable") || why == UNAVAILABLE { UNAVAILABLE } else { NOT_FOUND };
            let path = ApiPath { path: format!("/apis/{path}"), query: Vec::new() };
            assert_eq!(unfetched(&path, why), format!("{generic} {said}"));
        }
        let own = "the server could not find the metric m for pods";
        let path =
            ApiPath { path: "/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/*/m".into(), query: Vec::new() };
        assert_eq!(unfetched(&path, own), own);
    }
}
