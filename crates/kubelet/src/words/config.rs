//! What the kubelet is set to.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::cluster_network::ClusterNetwork;
use corten_meta::Time;
use serde::{Deserialize, Serialize};

use super::{
    managers::{ManagerStates, ManagersConfig},
    thresholds::EvictionConfig,
};

/// What does not change while the kubelet runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub node_name: String,
    pub hostname: String,
    /// The node's addresses; the first is `hostIP`. At most one per family.
    pub node_ips: Vec<String>,
    /// Where its Pods have their addresses, published as `podCIDRs`.
    pub pod_cidrs: Vec<String>,
    pub max_pods: i64,
    /// The kubelet's HTTPS port, published as `daemonEndpoints`.
    pub port: u16,
    /// Labels for the Node beyond the standard ones.
    pub labels: BTreeMap<String, String>,
    /// Kernel parameters that pods may set beyond the safe ones; one that ends in `*` stands for all that begin so.
    pub allowed_unsafe_sysctls: Vec<String>,
    /// What containers may use of the machine's swap.
    pub swap_behavior: SwapBehavior,
    /// There is a folder of manifests: nobody is a stranger before it is read.
    pub has_manifests: bool,
    /// Where the pods' DNS questions go; empty: to the node's own servers.
    pub cluster_dns: Vec<String>,
    pub cluster_domain: String,
    /// Kept for the system: subtracted from capacity.
    pub reserved_cpu_millis: i64,
    pub reserved_memory_bytes: i64,
    pub reserved_storage_bytes: i64,
    pub eviction: EvictionConfig,
    pub image_gc: ImageGcConfig,
    pub shutdown: ShutdownConfig,
    pub managers: ManagersConfig,
    /// What an earlier run of the kubelet has given, as it has written it down.
    pub manager_states: ManagerStates,
    /// Containers, by their ids, that were stopped when the machine's run before this one ended.
    pub stopped_with_machine: BTreeSet<String>,
    /// Of pods, by their uids: terminations that an earlier run of the kubelet has begun.
    pub terminations: BTreeMap<String, TerminationNote>,
    /// What the node says it is: a release of Kubernetes, `v1.37.0`.
    pub version: String,
}

/// How far the termination of a deleted pod is. Kept on the node, so that a new run of the kubelet neither begins the grace
/// period again nor calls a preStop hook twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminationNote {
    pub since: Time,
    /// Containers, by their ids, whose preStop hook is over.
    pub hooks: BTreeSet<String>,
}

impl Config {
    /// A node with this name and address, all else as usual.
    pub fn new(node_name: &str, node_ip: &str) -> Self {
        let network = ClusterNetwork::default();
        Self {
            node_name: node_name.into(),
            hostname: node_name.into(),
            node_ips: vec![node_ip.into()],
            pod_cidrs: Vec::new(),
            max_pods: 110,
            port: 10250,
            labels: BTreeMap::new(),
            allowed_unsafe_sysctls: Vec::new(),
            swap_behavior: SwapBehavior::default(),
            has_manifests: false,
            cluster_dns: network.cluster_dns().iter().map(ToString::to_string).collect(),
            cluster_domain: network.domain,
            reserved_cpu_millis: 0,
            reserved_memory_bytes: 0,
            reserved_storage_bytes: 0,
            eviction: EvictionConfig::default(),
            image_gc: ImageGcConfig::default(),
            shutdown: ShutdownConfig::default(),
            managers: ManagersConfig::default(),
            manager_states: ManagerStates::default(),
            stopped_with_machine: BTreeSet::new(),
            terminations: BTreeMap::new(),
            version: "v1.37.0".into(),
        }
    }
}

/// What containers may use of the machine's swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwapBehavior {
    /// Nothing.
    #[default]
    NoSwap,
    /// Those of Burstable Pods as great a part of it as they request of the memory.
    LimitedSwap,
}

/// When images are let go of: upstream's settings of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageGcConfig {
    /// From this use of their disk on, in percent, images go; 100: never.
    pub high_threshold_percent: i64,
    /// And until it is down to this.
    pub low_threshold_percent: i64,
    pub minimum_age: Duration,
    /// Images that were not used for longer go in any case; zero: they stay.
    pub maximum_age: Duration,
}

impl Default for ImageGcConfig {
    fn default() -> Self {
        Self {
            high_threshold_percent: 85,
            low_threshold_percent: 80,
            minimum_age: Duration::from_secs(120),
            maximum_age: Duration::ZERO,
        }
    }
}

/// How long pods have when the machine is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// For all together.
    pub grace: Duration,
    /// Of these, for critical pods, which end after all others.
    pub grace_critical: Duration,
    /// Graceful node shutdown (KEP-2000): every pod fails, so that others take over at once.
    pub fails_pods: bool,
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self { grace: Duration::from_secs(30), grace_critical: Duration::from_secs(10), fails_pods: false }
    }
}
