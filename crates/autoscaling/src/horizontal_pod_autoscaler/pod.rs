//! A Pod as an autoscaler sees it: what it asks for, and whether what is measured of it says anything yet.

use std::{collections::BTreeMap, time::Duration};

use corten_api::{resources, scheduling::aggregate};
use corten_meta::{ObjectMeta, Quantity, Time};
use corten_reconcile::{Condition, or_default, projection};
use serde::{Deserialize, Deserializer};

use super::measured::PodMetric;

/// What a Pod uses right after its start says nothing of its load (`--horizontal-pod-autoscaler-cpu-initialization-period`).
const CPU_INITIALIZATION: Duration = Duration::from_secs(300);
/// A Pod that is not ready since then has never been (`--horizontal-pod-autoscaler-initial-readiness-delay`).
const INITIAL_READINESS_DELAY: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
pub(super) struct AutoscaledPod {
    #[serde(deserialize_with = "labelled")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}
projection!(AutoscaledPod, resources::PODS);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    containers: Box<[Container]>,
    #[serde(deserialize_with = "or_default")]
    init_containers: Box<[Container]>,
    resources: Requests,
    #[serde(deserialize_with = "or_default")]
    overhead: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: Box<str>,
    restart_policy: Box<str>,
    resources: Requests,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requests {
    #[serde(deserialize_with = "or_default")]
    requests: Amounts,
}

type Amounts = BTreeMap<String, Quantity>;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Box<str>,
    #[serde(rename = "conditions", deserialize_with = "readiness")]
    ready: Option<Box<Condition>>,
    start_time: Option<Time>,
}

/// Only what selectors and caches read: the projection is held of every Pod.
fn labelled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let ObjectMeta { name, namespace, uid, resource_version, labels, deletion_timestamp, .. } =
        ObjectMeta::deserialize(deserializer)?;
    Ok(ObjectMeta { name, namespace, uid, resource_version, labels, deletion_timestamp, ..ObjectMeta::default() })
}

fn readiness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Condition>>, D::Error> {
    let conditions: Vec<Condition> = or_default(deserializer)?;
    Ok(conditions.into_iter().find(|it| it.r#type == "Ready").map(Box::new))
}

/// What a calculation makes of a Pod (`groupPods`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Counts,
    Unready,
    /// Nothing was measured of it.
    Missing,
    /// It is on its way out.
    Ignored,
}

impl AutoscaledPod {
    pub(super) fn standing(&self, metric: Option<&PodMetric>, is_of_cpu: bool, now: Time) -> Standing {
        if self.metadata.is_deleting() || &*self.status.phase == "Failed" {
            return Standing::Ignored;
        }
        if &*self.status.phase == "Pending" {
            return Standing::Unready;
        }
        match metric {
            None => Standing::Missing,
            Some(metric) if is_of_cpu && self.is_unready(metric, now) => Standing::Unready,
            Some(_) => Standing::Counts,
        }
    }

    fn is_unready(&self, metric: &PodMetric, now: Time) -> bool {
        let (Some(ready), Some(started)) = (&self.status.ready, self.status.start_time) else { return true };
        let is_unready = ready.status == "False";
        let changed_at = ready.last_transition_time.unwrap_or(Time::MIN);
        if started.after(CPU_INITIALIZATION) > now {
            // The measure covers time before the change.
            return is_unready || metric.timestamp < changed_at.after(metric.window);
        }
        is_unready && started.after(INITIAL_READINESS_DELAY) > changed_at
    }

    pub(super) fn is_running_and_ready(&self) -> bool {
        &*self.status.phase == "Running" && self.status.ready.as_ref().is_some_and(|it| it.status == "True")
    }

    /// In thousandths; of one container where that is not empty (`calculateRequests`).
    pub(super) fn request(&self, container: &str, resource: &str) -> Result<i64, String> {
        let spec = &self.spec;
        let is_for_pods = |it: &str| matches!(it, "cpu" | "memory") || it.starts_with("hugepages-");
        if container.is_empty() && spec.resources.requests.keys().any(|it| is_for_pods(it)) {
            return self.request_of_all(resource, is_for_pods(resource));
        }
        let sidecars = spec.init_containers.iter().filter(|it| it.is_sidecar());
        let mut sum = 0_i64;
        for it in spec.containers.iter().chain(sidecars).filter(|it| container.is_empty() || *it.name == *container) {
            let request = it.resources.requests.get(resource).ok_or_else(|| {
                format!("missing request for {resource} in container {} of Pod {}", it.name, self.metadata.name)
            })?;
            sum = sum.saturating_add(request.milli_value());
            if !container.is_empty() {
                return Ok(sum);
            }
        }
        if container.is_empty() {
            Ok(sum)
        } else {
            Err(format!("container {container} not found in Pod {}", self.metadata.name))
        }
    }

    /// What the Pod asks for as a whole, and else what its containers do (KEP-2837; `resource.PodRequests`).
    fn request_of_all(&self, resource: &str, is_for_pods: bool) -> Result<i64, String> {
        let spec = &self.spec;
        let whole = spec.resources.requests.get(resource).filter(|_| is_for_pods).copied();
        let of_containers = || {
            let own = spec.containers.iter().map(|it| it.resources.requests.clone());
            let init = spec.init_containers.iter().map(|it| (it.resources.requests.clone(), it.is_sidecar()));
            aggregate(own, init).get(resource).copied()
        };
        let request = whole.or_else(of_containers);
        let overhead = spec.overhead.get(resource).copied();
        let sum = request.into_iter().chain(overhead).reduce(Quantity::plus);
        let missing = || format!("missing pod-level request for {resource} in Pod {}", self.metadata.name);
        sum.map(Quantity::milli_value).ok_or_else(missing)
    }
}

impl Container {
    fn is_sidecar(&self) -> bool {
        &*self.restart_policy == "Always"
    }
}
