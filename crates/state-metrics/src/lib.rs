//! What `/metrics/state` tells of objects, under the names and labels of kube-state-metrics v2: an object in, its samples out.
//!
//! Each kind is a file and a row of [`KINDS`]. All samples of a family stand together in the text, so whoever writes it goes through
//! the objects once for each family, or for as many at a time as there is room for.

mod conditions;
mod config_map;
mod cron_job;
mod daemon_set;
mod deployment;
mod exposition;
mod family;
mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod limit_range;
mod namespace;
mod node;
mod owners;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod pod_resources;
mod quantities;
mod replica_set;
mod replication_controller;
mod resource_quota;
mod rollouts;
mod secret;
mod service;
mod stateful_set;
mod storage_class;
#[cfg(test)]
mod tests;

pub use family::{Described, FamilyType, StateMetrics};

/// In the order in which they are written.
pub const KINDS: &[&dyn StateMetrics] = &[
    &config_map::CONFIG_MAPS,
    &cron_job::CRON_JOBS,
    &daemon_set::DAEMON_SETS,
    &deployment::DEPLOYMENTS,
    &horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS,
    &ingress::INGRESSES,
    &job::JOBS,
    &limit_range::LIMIT_RANGES,
    &namespace::NAMESPACES,
    &node::NODES,
    &persistent_volume::PERSISTENT_VOLUMES,
    &persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS,
    &pod_disruption_budget::POD_DISRUPTION_BUDGETS,
    &pod::PODS,
    &replica_set::REPLICA_SETS,
    &replication_controller::REPLICATION_CONTROLLERS,
    &resource_quota::RESOURCE_QUOTAS,
    &secret::SECRETS,
    &service::SERVICES,
    &stateful_set::STATEFUL_SETS,
    &storage_class::STORAGE_CLASSES,
];

/// What `/metrics/resources` tells, in the words of kube-scheduler.
pub const POD_RESOURCES: &[&dyn StateMetrics] = &[&pod_resources::PODS];
