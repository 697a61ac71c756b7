//! What is told of Pods.

mod containers;

use corten_api::resources::PODS as RESOURCE;
use corten_meta::{ObjectMeta, Resource, Time};
use serde::Deserialize;

use self::containers::{Container, ContainerStatus};

use crate::{
    conditions::{self, Condition},
    exposition::Samples,
    family::{Family, KindMetrics},
    owners,
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
    priority_class_name: String,
    restart_policy: String,
    runtime_class_name: String,
    scheduler_name: String,
    service_account_name: String,
    volumes: Vec<Volume>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    claim_name: String,
    read_only: bool,
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

    /// When the last of its containers ended; `None` while one goes on.
    fn completed(&self) -> Option<Time> {
        let statuses = &self.status.container_statuses;
        if statuses.is_empty() {
            return None;
        }
        let ends: Option<Vec<Time>> = statuses.iter().map(ContainerStatus::finished).collect();
        ends?.into_iter().max()
    }
}

const PHASES: [&str; 5] = ["Pending", "Succeeded", "Failed", "Unknown", "Running"];
const QOS_CLASSES: [&str; 3] = ["BestEffort", "Burstable", "Guaranteed"];
const REASONS: [&str; 5] = ["Evicted", "NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"];

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
    containers::INIT_LAST_TERMINATED_REASON,
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
        "kube_pod_owner",
        "Information about the Pod's owner.",
        &["owner_kind", "owner_name", "owner_is_controller"],
        |it, out| owners::of(&it.metadata, out),
    ),
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
    Family::gauge(
        "kube_pod_spec_volumes_persistentvolumeclaims_info",
        "Information about persistentvolumeclaim volumes in a pod.",
        &["volume", "persistentvolumeclaim"],
        |it, out| {
            for (volume, claim) in claims(it) {
                out.add(&[&volume.name, &claim.claim_name], 1.0);
            }
        },
    ),
    Family::gauge(
        "kube_pod_spec_volumes_persistentvolumeclaims_readonly",
        "Describes whether a persistentvolumeclaim is mounted read only.",
        &["volume", "persistentvolumeclaim"],
        |it, out| {
            for (volume, claim) in claims(it) {
                out.add(&[&volume.name, &claim.claim_name], f64::from(u8::from(claim.read_only)));
            }
        },
    ),
    Family::gauge("kube_pod_start_time", "Start time in unix timestamp for a pod.", &[], |it, out| {
        out.one(it.status.start_time);
    }),
    Family::gauge(
        "kube_pod_status_container_ready_time",
        "Readiness achieved time in unix timestamp for a pod containers.",
        &[],
        |it, out| out.one(it.since("ContainersReady")),
    ),
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
    Family::gauge("kube_pod_status_reason", "The pod status reasons", &["reason"], reasons),
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
        |it, out| {
            if it.condition("PodScheduled").is_some_and(|it| it.status == "False" && it.reason == "Unschedulable") {
                out.one(true);
            }
        },
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

/// A reason counts whether the Pod's status has it or one of its containers, that ended for it.
fn reasons(pod: &Pod, out: &mut Samples<'_>) {
    for reason in REASONS {
        let mut ended = pod.status.container_statuses.iter().filter_map(ContainerStatus::terminated_reason);
        let holds = pod.status.reason == reason
            || pod.status.conditions.iter().any(|it| it.reason == reason)
            || ended.any(|it| it == reason);
        out.add(&[reason], f64::from(u8::from(holds)));
    }
}

fn claims(pod: &Pod) -> impl Iterator<Item = (&Volume, &ClaimSource)> {
    pod.spec.volumes.iter().filter_map(|it| Some((it, it.persistent_volume_claim.as_ref()?)))
}
