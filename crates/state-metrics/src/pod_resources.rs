//! What Pods ask for as a whole, as the scheduler and the kubelet add it up: kube-scheduler's `/metrics/resources`.

use corten_api::{
    resources::PODS as RESOURCE,
    scheduling::{Amounts as _, aggregate},
};
use corten_meta::{ObjectMeta, Resource};
use serde::{Deserialize, Deserializer};

use crate::{
    exposition::Samples,
    family::{Family, KindMetrics},
    quantities::Amounts,
};

static PODS_AT: Resource = RESOURCE;

pub(crate) static PODS: KindMetrics<Pod> = KindMetrics {
    resource: &PODS_AT,
    labels: &["namespace", "pod", "node", "scheduler", "priority"],
    identity: |it| {
        let Pod { metadata, spec, .. } = it;
        vec![&metadata.namespace, &metadata.name, &spec.node_name, &spec.scheduler_name, &spec.priority]
    },
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
    scheduler_name: String,
    /// Empty where there is none.
    #[serde(deserialize_with = "written")]
    priority: String,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: Amounts,
    resources: Requirements,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    restart_policy: String,
    resources: Requirements,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirements {
    requests: Amounts,
    limits: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<i32>::deserialize(deserializer)?.map_or_else(String::new, |it| it.to_string()))
}

impl Pod {
    /// It has run and takes nothing any more.
    fn is_over(&self) -> bool {
        !self.spec.node_name.is_empty() && matches!(&*self.status.phase, "Succeeded" | "Failed")
    }

    fn requests(&self) -> Amounts {
        let mut sum = self.of_containers(|it| &it.requests);
        sum.extend(self.spec.resources.requests.clone());
        sum.add(&self.spec.overhead);
        sum
    }

    /// The overhead bounds nothing that has no limit.
    fn limits(&self) -> Amounts {
        let mut sum = self.of_containers(|it| &it.limits);
        sum.extend(self.spec.resources.limits.clone());
        sum.add_of_same_name(&self.spec.overhead);
        sum
    }

    fn of_containers(&self, amounts: fn(&Requirements) -> &Amounts) -> Amounts {
        let own = |it: &Container| amounts(&it.resources).clone();
        let init = self.spec.init_containers.iter().map(|it| (own(it), it.restart_policy == "Always"));
        aggregate(self.spec.containers.iter().map(own), init)
    }
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "cores",
        "memory" | "storage" | "ephemeral-storage" => "bytes",
        _ if resource.starts_with("hugepages-") => "bytes",
        _ if resource.starts_with("attachable-volumes-") => "integer",
        _ => "",
    }
}

fn write(pod: &Pod, amounts: fn(&Pod) -> Amounts, out: &mut Samples<'_>) {
    if pod.is_over() {
        return;
    }
    for (resource, amount) in amounts(pod).iter().filter(|it| !it.1.is_zero()) {
        out.add(&[resource, unit(resource)], amount.approximate());
    }
}

const FAMILIES: &[Family<Pod>] = &[
    Family::gauge(
        "kube_pod_resource_limit",
        "Resources limit for workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.",
        &["resource", "unit"],
        |it, out| write(it, Pod::limits, out),
    ),
    Family::gauge(
        "kube_pod_resource_request",
        "Resources requested by workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.",
        &["resource", "unit"],
        |it, out| write(it, Pod::requests, out),
    ),
];
