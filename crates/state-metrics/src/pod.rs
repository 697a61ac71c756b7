//! What is told of Pods.

mod claims;
mod containers;
mod reasons;

use std::collections::BTreeSet;

use corten_api::resources::PODS as RESOURCE;
use corten_meta::{ObjectMeta, Resource, Time};
use serde::Deserialize;

use self::{
    claims::{ResourceClaim, ResourceClaimStatus, Volume},
    containers::{Container, ContainerStatus},
};

use crate::{
    conditions::{self, Condition},
    exposition::Samples,
    family::{Family, KindMetrics},
    owners,
    quantities::Amounts,
};

static PODS_AT: Resource = RESOURCE;

pub(crate) static PODS: KindMetrics<Pod> = KindMetrics {
    resource: &PODS_AT,
    labels: &["namespace", "pod", "uid"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name, &it.metadata.uid],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Pod {
    metadata: ObjectMeta,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) containers: Vec<Container>,
    pub(crate) init_containers: Vec<Container>,
    pub(crate) node_name: String,
    host_network: bool,
    overhead: Amounts,
    priority_class_name: String,
    resource_claims: Vec<ResourceClaim>,
    restart_policy: String,
    runtime_class_name: String,
    scheduler_name: String,
    service_account_name: String,
    tolerations: Vec<Toleration>,
    volumes: Vec<Volume>,
}

#[derive(Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Toleration {
    key: String,
    operator: String,
    value: String,
    effect: String,
    toleration_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    phase: String,
    reason: String,
    conditions: Vec<Condition>,
    #[serde(rename = "hostIP")]
    host_ip: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<PodIp>,
    qos_class: String,
    resource_claim_statuses: Vec<ResourceClaimStatus>,
    start_time: Option<Time>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodIp {
    ip: String,
}

impl Pod {
    fn condition(&self, of: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.of == of)
    }

    /// When a condition became true.
    fn since(&self, of: &str) -> Option<Time> {
        self.condition(of).filter(|it| it.is_true()).and_then(|it| it.last_transition_time)
    }

    /// When the last of its containers ended that did.
    fn completed(&self) -> Option<Time> {
        self.status.container_statuses.iter().filter_map(ContainerStatus::finished).max()
    }

    /// The condition that says that it has no node yet.
    fn unscheduled(&self) -> Option<&Condition> {
        self.condition("PodScheduled").filter(|it| it.status == "False")
    }
}

const PHASES: [&str; 5] = ["Pending", "Succeeded", "Failed", "Unknown", "Running"];
const QOS_CLASSES: [&str; 3] = ["BestEffort", "Burstable", "Guaranteed"];

const FAMILIES: &[Family<Pod>] = &[
    Family::gauge("kube_pod_completion_time", "Completion time in unix timestamp for a pod.", &[], |it, out| {
        out.one(it.completed());
    }),
    containers::INFO,
    containers::LIMITS,
    containers::REQUESTS,
    containers::STATE_STARTED,
    containers::LAST_TERMINATED_REASON,
    containers::LAST_TERMINATED_EXIT_CODE,
    containers::LAST_TERMINATED_TIMESTAMP,
    containers::READY,
    containers::RESTARTS,
    containers::RUNNING,
    containers::TERMINATED,
    containers::TERMINATED_REASON,
    containers::WAITING,
    containers::WAITING_REASON,
    Family::gauge("kube_pod_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp);
    }),
    Family::gauge("kube_pod_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp);
    }),
    Family::gauge("kube_pod_info", "Information about pod.", INFO_LABELS, info),
    containers::INIT_INFO,
    containers::INIT_LIMITS,
    containers::INIT_REQUESTS,
    containers::INIT_STATE_STARTED,
    containers::INIT_LAST_TERMINATED_REASON,
    containers::INIT_LAST_TERMINATED_EXIT_CODE,
    containers::INIT_LAST_TERMINATED_TIMESTAMP,
    containers::INIT_READY,
    containers::INIT_RESTARTS,
    containers::INIT_RUNNING,
    containers::INIT_TERMINATED,
    containers::INIT_TERMINATED_REASON,
    containers::INIT_WAITING,
    containers::INIT_WAITING_REASON,
    Family::gauge("kube_pod_ips", "Pod IP addresses", &["ip", "ip_family"], |it, out| {
        for address in &it.status.pod_ips {
            let family = if address.ip.contains(':') { "6" } else { "4" };
            out.add(&[&address.ip, family], 1.0);
        }
    }),
    Family::gauge(
        "kube_pod_overhead_cpu_cores",
        "The pod overhead in regards to cpu cores associated with running a pod.",
        &[],
        |it, out| out.one(it.spec.overhead.get("cpu").copied()),
    ),
    Family::gauge(
        "kube_pod_overhead_memory_bytes",
        "The pod overhead in regards to memory associated with running a pod.",
        &[],
        |it, out| out.one(it.spec.overhead.get("memory").copied()),
    ),
    Family::gauge(
        "kube_pod_owner",
        "Information about the Pod's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
    claims::RESOURCE_CLAIMS,
    Family::gauge(
        "kube_pod_restart_policy",
        "Describes the restart policy in use by this pod.",
        &["type"],
        |it, out| out.add(&[&it.spec.restart_policy], 1.0),
    ),
    Family::gauge(
        "kube_pod_runtimeclass_name_info",
        "The runtimeclass associated with the pod.",
        &["runtimeclass_name"],
        |it, out| {
            if !it.spec.runtime_class_name.is_empty() {
                out.add(&[&it.spec.runtime_class_name], 1.0);
            }
        },
    ),
    Family::gauge("kube_pod_scheduler", "The scheduler for a pod.", &["name"], |it, out| {
        if !it.spec.scheduler_name.is_empty() {
            out.add(&[&it.spec.scheduler_name], 1.0);
        }
    }),
    Family::gauge("kube_pod_service_account", "The service account for a pod.", &["service_account"], |it, out| {
        out.add(&[&it.spec.service_account_name], 1.0);
    }),
    claims::VOLUMES,
    claims::VOLUMES_READ_ONLY,
    Family::gauge("kube_pod_start_time", "Start time in unix timestamp for a pod.", &[], |it, out| {
        out.one(it.status.start_time);
    }),
    Family::gauge(
        "kube_pod_status_container_ready_time",
        "Readiness achieved time in unix timestamp for a pod containers.",
        &[],
        |it, out| out.one(it.since("ContainersReady")),
    ),
    reasons::DISRUPTION,
    Family::gauge(
        "kube_pod_status_initialized_time",
        "Initialized time in unix timestamp for a pod.",
        &[],
        |it, out| out.one(it.since("Initialized")),
    ),
    Family::gauge("kube_pod_status_phase", "The pods current phase.", &["phase"], |it, out| {
        if !it.status.phase.is_empty() {
            out.one_of(&PHASES, &it.status.phase);
        }
    }),
    Family::gauge("kube_pod_status_qos_class", "The pods current qosClass.", &["qos_class"], |it, out| {
        if !it.status.qos_class.is_empty() {
            out.one_of(&QOS_CLASSES, &it.status.qos_class);
        }
    }),
    Family::gauge(
        "kube_pod_status_ready",
        "Describes whether the pod is ready to serve requests.",
        &["condition"],
        |it, out| it.condition("Ready").into_iter().for_each(|it| conditions::of_one(it, out)),
    ),
    Family::gauge(
        "kube_pod_status_ready_time",
        "Readiness achieved time in unix timestamp for a pod.",
        &[],
        |it, out| out.one(it.since("Ready")),
    ),
    reasons::STATUS,
    Family::gauge(
        "kube_pod_status_scheduled",
        "Describes the status of the scheduling process for the pod.",
        &["condition"],
        |it, out| it.condition("PodScheduled").into_iter().for_each(|it| conditions::of_one(it, out)),
    ),
    Family::gauge(
        "kube_pod_status_scheduled_time",
        "Unix timestamp when pod moved into scheduled status",
        &[],
        |it, out| out.one(it.since("PodScheduled")),
    ),
    Family::gauge(
        "kube_pod_status_unschedulable",
        "Describes the unschedulable status for the pod.",
        &[],
        |it, out| out.one(it.unscheduled().map(|_| true)),
    ),
    Family::gauge(
        "kube_pod_status_unscheduled_time",
        "Unix timestamp when pod moved into unscheduled status",
        &[],
        |it, out| out.one(it.unscheduled().and_then(|it| it.last_transition_time)),
    ),
    Family::gauge(
        "kube_pod_tolerations",
        "Information about the pod tolerations",
        &["key", "operator", "value", "effect", "toleration_seconds"],
        tolerations,
    ),
];

const INFO_LABELS: &[&str] =
    &["host_ip", "pod_ip", "node", "created_by_kind", "created_by_name", "priority_class", "host_network"];

fn info(pod: &Pod, out: &mut Samples<'_>) {
    let creator = pod.metadata.owner_references.iter().find(|it| it.controller == Some(true));
    let (kind, name) = creator.map_or(("", ""), |it| (&*it.kind, &*it.name));
    let host_network = if pod.spec.host_network { "true" } else { "false" };
    let (status, spec) = (&pod.status, &pod.spec);
    let values =
        [&*status.host_ip, &*status.pod_ip, &*spec.node_name, kind, name, &*spec.priority_class_name, host_network];
    out.add(&values, 1.0);
}

/// What is tolerated twice is told once.
fn tolerations(pod: &Pod, out: &mut Samples<'_>) {
    let different: BTreeSet<&Toleration> = pod.spec.tolerations.iter().collect();
    for it in different {
        let seconds = it.toleration_seconds.map_or_else(String::new, |it| it.to_string());
        out.add(&[&it.key, &it.operator, &it.value, &it.effect, &seconds], 1.0);
    }
}
