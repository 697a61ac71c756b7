//! The fields of nodes and pods that the scheduler reads.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{LabelSelector, Named, ObjectMeta, Quantity, Resource, Time};
use corten_reconcile::Projection;
use serde::Deserialize;

pub(crate) type Quantities = BTreeMap<String, Quantity>;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Node {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: NodeSpec,
    #[serde(default)]
    pub(crate) status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    pub(crate) unschedulable: bool,
    pub(crate) taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeStatus {
    pub(crate) allocatable: Quantities,
    pub(crate) declared_features: Vec<String>,
    pub(crate) images: Vec<ContainerImage>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerImage {
    pub(crate) names: Vec<String>,
    pub(crate) size_bytes: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: PodSpec,
    #[serde(default)]
    pub(crate) status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
    pub(crate) scheduler_name: String,
    pub(crate) scheduling_gates: Vec<Gate>,
    pub(crate) scheduling_group: Option<SchedulingGroup>,
    pub(crate) priority: i32,
    pub(crate) preemption_policy: String,
    pub(crate) containers: Vec<Container>,
    pub(crate) init_containers: Vec<Container>,
    pub(crate) resources: Requirements,
    pub(crate) overhead: Quantities,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) affinity: Affinity,
    pub(crate) host_network: bool,
    pub(crate) topology_spread_constraints: Vec<TopologySpreadConstraint>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) resource_claims: Vec<ResourceClaim>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TopologySpreadConstraint {
    pub(crate) max_skew: i64,
    pub(crate) topology_key: String,
    pub(crate) when_unsatisfiable: String,
    pub(crate) label_selector: Option<LabelSelector>,
    pub(crate) match_label_keys: Vec<String>,
    pub(crate) min_domains: Option<i64>,
    pub(crate) node_affinity_policy: String,
    pub(crate) node_taints_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) persistent_volume_claim: Option<ClaimSource>,
    pub(crate) ephemeral: Option<serde_json::Value>,
    pub(crate) image: Option<ImageSource>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ImageSource {
    pub(crate) reference: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClaimSource {
    pub(crate) claim_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceClaim {
    pub(crate) name: String,
    pub(crate) resource_claim_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SchedulingGroup {
    pub(crate) pod_group_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Gate {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) resources: Requirements,
    pub(crate) ports: Vec<ContainerPort>,
    pub(crate) restart_policy: String,
    pub(crate) restart_policy_rules: Vec<RestartRule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RestartRule {
    pub(crate) action: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Requirements {
    pub(crate) requests: Quantities,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerPort {
    pub(crate) name: String,
    pub(crate) container_port: i32,
    pub(crate) host_port: i32,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: String,
    pub(crate) protocol: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Toleration {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Affinity {
    pub(crate) node_affinity: NodeAffinity,
    pub(crate) pod_affinity: PodAffinity,
    pub(crate) pod_anti_affinity: PodAffinity,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: Vec<PodAffinityTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) preferred: Vec<WeightedPodAffinityTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WeightedPodAffinityTerm {
    pub(crate) weight: i64,
    pub(crate) pod_affinity_term: PodAffinityTerm,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodAffinityTerm {
    pub(crate) label_selector: Option<LabelSelector>,
    pub(crate) namespaces: Vec<String>,
    pub(crate) namespace_selector: Option<LabelSelector>,
    pub(crate) topology_key: String,
    pub(crate) match_label_keys: Vec<String>,
    pub(crate) mismatch_label_keys: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: Option<NodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) preferred: Vec<PreferredTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeSelector {
    pub(crate) node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PreferredTerm {
    pub(crate) weight: i64,
    pub(crate) preference: NodeSelectorTerm,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeSelectorTerm {
    pub(crate) match_expressions: Vec<NodeSelectorRequirement>,
    pub(crate) match_fields: Vec<NodeSelectorRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSelectorRequirement {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) values: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    pub(crate) nominated_node_name: String,
    pub(crate) start_time: Option<Time>,
    pub(crate) conditions: Vec<serde_json::Value>,
    pub(crate) resource_claim_statuses: Vec<ResourceClaim>,
    pub(crate) extended_resource_claim_status: Option<serde_json::Value>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    /// What the pod as a whole has, once its node has said so, and what it is allowed.
    pub(crate) resources: Option<Requirements>,
    pub(crate) allocated_resources: Quantities,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    /// What it has, once its node has said so, and what it is allowed.
    pub(crate) resources: Option<Requirements>,
    pub(crate) allocated_resources: Quantities,
}

impl Pod {
    /// Has its node said that it never gives what the pod has been changed to ask for?
    pub(crate) fn is_resize_infeasible(&self) -> bool {
        self.status.conditions.iter().any(|it| it["type"] == "PodResizePending" && it["reason"] == "Infeasible")
    }

    /// The message of its PodScheduled condition, where that says False.
    pub(crate) fn scheduled_message(&self) -> Option<String> {
        let condition =
            self.status.conditions.iter().find(|it| it["type"] == "PodScheduled" && it["status"] == "False")?;
        condition["message"].as_str().map(str::to_owned)
    }
}

impl Named for Node {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for Node {
    const RESOURCE: Resource = corten_api::resources::NODES;
}
impl Named for Pod {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for Pod {
    const RESOURCE: Resource = corten_api::resources::PODS;
}
