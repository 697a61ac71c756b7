//! What each metric of an autoscaler asks for, in upstream's words (`computeReplicasForMetric`).

use corten_meta::{Key, LabelSelector, Quantity, Time};
use corten_reconcile::{ApiPath, View};
use serde_json::{Value, json};

use super::{
    measured::{self, PodMetrics, UsageOfPod, Usages},
    pod::AutoscaledPod,
    replicas::{Count, OfPods, Tolerances, by_value, by_value_per_replica},
    spec::{Identifier, MetricSpec, Source},
};

/// What a metric is looked at with.
pub(super) struct Looking<'a> {
    pub(super) view: &'a View,
    /// The autoscaler's.
    pub(super) key: &'a Key,
    pub(super) selector: &'a str,
    /// Is what Pods use told of all Pods of the namespace at once?
    pub(super) is_together: bool,
    pub(super) pods: &'a [&'a AutoscaledPod],
    pub(super) spec_replicas: i64,
    pub(super) status_replicas: i64,
    pub(super) tolerances: Tolerances,
    pub(super) now: Time,
}

pub(super) struct Proposal {
    pub(super) replicas: i64,
    /// What asks for them.
    pub(super) name: String,
    /// A MetricStatus.
    pub(super) status: Value,
}

/// A metric that says nothing.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// With what it is the value of.
    pub(super) error: String,
}

impl Failed {
    /// Is it the Pods that do not ask for what is measured, or the metric that names what there is not?
    pub(super) fn is_of_author(&self) -> bool {
        const OF_PODS: [&str; 4] = [
            "missing request for ",
            "missing pod-level request for ",
            " not found in Pod ",
            " not present in metrics for pod ",
        ];
        const OF_METRIC: [&str; 2] = ["no matches for kind ", "unexpected GroupVersion string: "];
        OF_PODS.iter().chain(&OF_METRIC).any(|it| self.message.contains(it))
    }

    /// May it be that the Pods do not run, so that there is nothing to measure?
    pub(super) fn is_for_want_of_pods(&self) -> bool {
        ["FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetPodsMetric"].contains(&self.reason)
            && ["no metrics returned ", "did not receive metrics for targeted pods", "no pods returned by selector"]
                .iter()
                .any(|it| self.message.contains(it))
    }
}

/// What is to be fetched for this metric of Pods with the selector; nothing where that is known to be in vain.
pub(super) fn path(view: &View, namespace: &str, selector: &str, metric: &MetricSpec) -> Option<ApiPath> {
    let source = metric.source()?;
    match &*metric.r#type {
        "Resource" | "ContainerResource" => Some(measured::resource_path(namespace, selector)),
        "Pods" => measured::pods_path(view, namespace, selector, &source.metric).ok(),
        "Object" => measured::object_path(view, namespace, &source.described_object, &source.metric).ok(),
        _ => Some(measured::external_path(namespace, &source.metric)),
    }
}

impl Looking<'_> {
    pub(super) fn proposal(&self, metric: &MetricSpec) -> Result<Proposal, Failed> {
        let Some(source) = metric.source() else {
            let message = format!("unknown metric source type {:?}", metric.r#type);
            return Err(Failed { reason: "InvalidMetricSourceType", error: message.clone(), message });
        };
        match &*metric.r#type {
            "Resource" => self.of_resource(source),
            "ContainerResource" => self.of_container(source),
            "Pods" => self.of_pods(source),
            "Object" => self.of_object(source),
            _ => self.of_external(source),
        }
    }

    /// The body, or what the client of `api` says where there is none.
    fn fetched(&self, path: &ApiPath, api: &str) -> Result<&[u8], String> {
        match self.view.fetched(self.key, path) {
            Some(Ok(body)) => Ok(body),
            Some(Err(why)) => {
                Err(format!("unable to fetch metrics from {api} metrics API: {}", measured::unfetched(path, why)))
            }
            None => Err(format!("unable to fetch metrics from {api} metrics API: it has not been asked")),
        }
    }

    /// What the Pods use, as `metrics.k8s.io` tells it.
    fn used(&self, resource: &str, container: &str) -> Result<PodMetrics, String> {
        let (view, key) = (self.view, self.key);
        let path = measured::resource_path(&key.namespace, if self.is_together { "" } else { self.selector });
        let brought = match self.is_together {
            true => view.brought_for_all(key, &path, self.now),
            false => view.brought(key, &path),
        };
        let failed = |why: &str| format!("unable to fetch metrics from resource metrics API: {why}");
        let brought = brought.ok_or_else(|| failed("it has not been asked"))?;
        let usages =
            brought.read_as(measured::usages_by_name).map_err(|why| failed(&measured::unfetched(&path, why)))?;
        let usages: &Usages = usages.as_ref().map_err(Clone::clone)?;
        let of_pods: Result<Vec<&UsageOfPod>, &String> = match self.is_together {
            true => self.pods.iter().filter_map(|it| usages.get(&it.metadata.name)).map(Result::as_ref).collect(),
            false => usages.values().map(Result::as_ref).collect(),
        };
        measured::resource_usage(of_pods.map_err(Clone::clone)?.into_iter(), resource, container)
    }

    fn of_resource(&self, source: &Source) -> Result<Proposal, Failed> {
        let Source { name, .. } = source;
        let (count, label) = self.used_resource(source, "").map_err(|message| Failed {
            reason: "FailedGetResourceMetric",
            error: format!("failed to get {name} resource metric value: {message}"),
            message,
        })?;
        let status = json!({ "type": "Resource", "resource": { "name": name, "current": current(name, &count) } });
        Ok(Proposal { replicas: count.replicas, name: label, status })
    }

    fn of_container(&self, source: &Source) -> Result<Proposal, Failed> {
        let Source { name, container, .. } = source;
        let (count, label) = self.used_resource(source, container).map_err(|message| Failed {
            reason: "FailedGetContainerResourceMetric",
            error: format!("failed to get {container} container metric value: {message}"),
            message,
        })?;
        let current = current(name, &count);
        let of = json!({ "name": name, "container": container, "current": current });
        let status = json!({ "type": "ContainerResource", "containerResource": of });
        Ok(Proposal { replicas: count.replicas, name: label, status })
    }

    /// `computeStatusForResourceMetricGeneric`
    fn used_resource(&self, source: &Source, container: &str) -> Result<(Count, String), String> {
        let (target, resource) = (&source.target, &*source.name);
        let metrics = || {
            let metrics = self.used(resource, container);
            metrics.map_err(|why| format!("unable to get metrics for resource {resource}: {why}"))
        };
        if let Some(average) = target.average_value {
            let count = metrics().and_then(|it| self.of_each(it, resource).by_average(average.milli_value()));
            let count = count.map_err(|why| format!("failed to get {resource} usage: {why}"))?;
            return Ok((count, format!("{resource} resource")));
        }
        let Some(percent) = target.average_utilization else {
            return Err(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) \
                        target was set"
                    .into(),
            );
        };
        let count = metrics().and_then(|it| self.of_each(it, resource).by_utilization(percent, container, resource));
        let count = count.map_err(|why| format!("failed to get {resource} utilization: {why}"))?;
        let of = if container.is_empty() { "" } else { "container " };
        Ok((count, format!("{resource} {of}resource utilization (percentage of request)")))
    }

    fn of_each(&self, metrics: PodMetrics, resource: &str) -> OfPods<'_> {
        OfPods {
            pods: self.pods,
            metrics,
            is_of_cpu: resource == "cpu",
            current: self.spec_replicas,
            tolerances: self.tolerances,
            now: self.now,
        }
    }

    fn of_pods(&self, source: &Source) -> Result<Proposal, Failed> {
        let Source { metric, target, .. } = source;
        let body = measured::pods_path(self.view, &self.key.namespace, self.selector, metric)
            .and_then(|path| self.fetched(&path, "custom"));
        let metrics = body.and_then(measured::pods_values);
        let metrics = metrics.map_err(|why| format!("unable to get metric {}: {why}", metric.name));
        let average = target.average_value.unwrap_or_default().milli_value();
        let count = metrics.and_then(|it| self.of_each(it, "").by_average(average)).map_err(|message| Failed {
            reason: "FailedGetPodsMetric",
            error: format!("failed to get pods metric value: {message}"),
            message,
        })?;
        let current = json!({ "averageValue": Quantity::millis(count.usage) });
        let status = json!({ "type": "Pods", "pods": { "metric": metric, "current": current } });
        Ok(Proposal { replicas: count.replicas, name: format!("pods metric {}", metric.name), status })
    }

    /// `computeStatusForObjectMetric`
    fn of_object(&self, source: &Source) -> Result<Proposal, Failed> {
        let Source { metric, target, described_object: object, .. } = source;
        let namespace = &self.key.namespace;
        let value = || {
            let path = measured::object_path(self.view, namespace, object, metric);
            let value = path.and_then(|it| self.fetched(&it, "custom").and_then(measured::object_value));
            let of = |why| {
                format!("unable to get metric {}: {} on {namespace} {}/{why}", metric.name, object.kind, object.name)
            };
            value.map_err(of)
        };
        let failed = |error: &str, message: String| Failed {
            reason: "FailedGetObjectMetric",
            error: format!("failed to get object metric value: {error}{message}"),
            message,
        };
        let status = |current: Value| json!({ "type": "Object", "object": { "describedObject": object, "metric": metric, "current": current } });
        match (&*target.r#type, target.value, target.average_value) {
            ("Value", Some(wanted), _) => {
                let count = value()
                    .and_then(|it| by_value(it, wanted.milli_value(), self.spec_replicas, self.pods, self.tolerances));
                let count = count.map_err(|message| failed("", message))?;
                let status = status(json!({ "value": Quantity::millis(count.usage) }));
                Ok(Proposal {
                    replicas: count.replicas,
                    name: format!("{} metric {}", object.kind, metric.name),
                    status,
                })
            }
            ("AverageValue", _, Some(wanted)) => {
                let value = value()
                    .map_err(|message| failed(&format!("failed to get {} object metric: ", metric.name), message))?;
                let count = by_value_per_replica(value, wanted.milli_value(), self.status_replicas, self.tolerances);
                let status = status(json!({ "averageValue": Quantity::millis(count.usage) }));
                Ok(Proposal { replicas: count.replicas, name: external_name(metric), status })
            }
            _ => Err(failed(
                "",
                "invalid object metric source: neither a value target nor an average value target was set".into(),
            )),
        }
    }

    /// `computeStatusForExternalMetric`
    fn of_external(&self, source: &Source) -> Result<Proposal, Failed> {
        let Source { metric, target, .. } = source;
        let namespace = &self.key.namespace;
        let value = || {
            let body = self.fetched(&measured::external_path(namespace, metric), "external");
            let of =
                |why| format!("unable to get external metric {namespace}/{}/{}: {why}", metric.name, in_go(metric));
            body.and_then(measured::external_value).map_err(of)
        };
        let failed = |error: &str, message: String| Failed {
            reason: "FailedGetExternalMetric",
            error: format!("failed to get {} external metric value: {error}{message}", metric.name),
            message,
        };
        let status =
            |current: Value| json!({ "type": "External", "external": { "metric": metric, "current": current } });
        let name = external_name(metric);
        if let Some(wanted) = target.average_value {
            let value = value()
                .map_err(|message| failed(&format!("failed to get {} external metric: ", metric.name), message))?;
            let count = by_value_per_replica(value, wanted.milli_value(), self.status_replicas, self.tolerances);
            let status = status(json!({ "averageValue": Quantity::millis(count.usage) }));
            return Ok(Proposal { replicas: count.replicas, name, status });
        }
        let Some(wanted) = target.value else {
            let message = "invalid external metric source: neither a value target nor an average value target was set";
            return Err(failed("", message.into()));
        };
        let count = value()
            .and_then(|it| by_value(it, wanted.milli_value(), self.spec_replicas, self.pods, self.tolerances))
            .map_err(|message| failed(&format!("failed to get external metric {}: ", metric.name), message))?;
        let status = status(json!({ "value": Quantity::millis(count.usage) }));
        Ok(Proposal { replicas: count.replicas, name, status })
    }
}

/// What is used of a resource: memory in bytes, as metrics servers say it (`buildQuantity`).
fn current(resource: &str, count: &Count) -> Value {
    let average = Quantity::millis(count.usage);
    let average = if resource == "memory" { Quantity::bytes(average.value()) } else { average };
    let mut current = json!({ "averageValue": average });
    if let Some(percent) = count.utilization {
        current["averageUtilization"] = percent.into();
    }
    current
}

fn external_name(metric: &Identifier) -> String {
    format!("external metric {}({})", metric.name, in_go(metric))
}

/// The metric's selector as Go prints one.
fn in_go(metric: &Identifier) -> String {
    let Some(LabelSelector { match_labels, match_expressions }) = &metric.selector else { return "nil".into() };
    let labels: String = match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let requirement = |it: &corten_meta::LabelSelectorRequirement| {
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            it.key,
            it.operator,
            it.values.join(" ")
        )
    };
    let expressions: String = match_expressions.iter().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
