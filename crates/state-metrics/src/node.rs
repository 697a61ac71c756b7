//! What is told of Nodes.

use corten_api::resources::NODES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    conditions::{self, Condition},
    exposition::Samples,
    family::{Family, KindMetrics},
    quantities::{self, Amounts},
};

static NODES_AT: Resource = RESOURCE;

pub(crate) static NODES: KindMetrics<Node> =
    KindMetrics { resource: &NODES_AT, labels: &["node"], identity: |it| vec![&it.metadata.name], families: FAMILIES };

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(rename = "podCIDR")]
    pod_cidr: String,
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
    #[serde(rename = "providerID")]
    provider_id: String,
    unschedulable: bool,
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
    value: String,
    effect: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    addresses: Vec<Address>,
    allocatable: Amounts,
    capacity: Amounts,
    conditions: Vec<Condition>,
    node_info: NodeInfo,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    #[serde(rename = "type")]
    of: String,
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    kernel_version: String,
    os_image: String,
    container_runtime_version: String,
    kubelet_version: String,
    kube_proxy_version: String,
    #[serde(rename = "systemUUID")]
    system_uuid: String,
}

const FAMILIES: &[Family<Node>] = &[
    Family::gauge("kube_node_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp);
    }),
    Family::gauge("kube_node_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp);
    }),
    Family::gauge("kube_node_info", "Information about a cluster node.", INFO_LABELS, info),
    Family::gauge("kube_node_role", "The role of a cluster node.", &["role"], |it, out| {
        let roles = it.metadata.labels.keys().filter_map(|it| it.strip_prefix("node-role.kubernetes.io/"));
        roles.for_each(|role| out.add(&[role], 1.0));
    }),
    Family::gauge("kube_node_spec_pod_cidrs", "The pod CIDRs of a cluster node.", &["pod_cidr"], |it, out| {
        it.spec.pod_cidrs.iter().for_each(|cidr| out.add(&[cidr], 1.0));
    }),
    Family::gauge("kube_node_spec_taint", "The taint of a cluster node.", &["key", "value", "effect"], |it, out| {
        for taint in &it.spec.taints {
            out.add(&[&taint.key, &taint.value, &taint.effect], 1.0);
        }
    }),
    Family::gauge("kube_node_spec_unschedulable", "Whether a node can schedule new pods.", &[], |it, out| {
        out.one(it.spec.unschedulable)
    }),
    Family::gauge("kube_node_status_addresses", "Node address information.", &["type", "address"], |it, out| {
        it.status.addresses.iter().for_each(|it| out.add(&[&it.of, &it.address], 1.0));
    }),
    Family::gauge(
        "kube_node_status_allocatable",
        "The allocatable for different resources of a node that are available for scheduling.",
        &["resource", "unit"],
        |it, out| quantities::of(&it.status.allocatable, &[], out),
    ),
    Family::gauge(
        "kube_node_status_capacity",
        "The capacity for different resources of a node.",
        &["resource", "unit"],
        |it, out| quantities::of(&it.status.capacity, &[], out),
    ),
    Family::gauge(
        "kube_node_status_condition",
        "The condition of a cluster node.",
        &["condition", "status"],
        |it, out| conditions::of_each(&it.status.conditions, out),
    ),
];

const INFO_LABELS: &[&str] = &[
    "kernel_version",
    "os_image",
    "container_runtime_version",
    "kubelet_version",
    "kubeproxy_version",
    "provider_id",
    "pod_cidr",
    "system_uuid",
    "internal_ip",
];

fn info(node: &Node, out: &mut Samples<'_>) {
    let internal = node.status.addresses.iter().find(|it| it.of == "InternalIP").map_or("", |it| &*it.address);
    // Upstream says so where a node's status names no version: it does no longer.
    let proxy = match &*node.status.node_info.kube_proxy_version {
        "" => "deprecated",
        version => version,
    };
    let (info, spec) = (&node.status.node_info, &node.spec);
    let values = [
        &*info.kernel_version,
        &*info.os_image,
        &*info.container_runtime_version,
        &*info.kubelet_version,
        proxy,
        &*spec.provider_id,
        &*spec.pod_cidr,
        &*info.system_uuid,
        internal,
    ];
    out.add(&values, 1.0);
}
