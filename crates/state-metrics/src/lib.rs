//! What `/metrics/state` tells of objects, under the names and labels of kube-state-metrics v2: an object in, its samples out.
//!
//! Each kind is a file and a row of [`KINDS`]. All samples of a family stand together in the text, so whoever writes it goes through
//! the objects once for each family, or for as many at a time as there is room for.

mod admission_policy;
mod admission_policy_binding;
mod certificate_signing_request;
mod conditions;
mod config_map;
mod cron_job;
mod daemon_set;
mod deployment;
mod endpoint_slice;
mod exposition;
mod family;
mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod lease;
mod limit_range;
mod namespace;
mod network_policy;
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
mod resource_version;
mod rollouts;
mod secret;
mod service;
mod stateful_set;
mod storage_class;
#[cfg(test)]
mod tests;
mod volume_attachment;
mod webhook_configuration;

pub use family::{Described, FamilyType, StateMetrics};

/// In the order in which they are written.
pub const KINDS: &[&dyn StateMetrics] = &[
    &certificate_signing_request::CERTIFICATE_SIGNING_REQUESTS,
    &config_map::CONFIG_MAPS,
    &cron_job::CRON_JOBS,
    &daemon_set::DAEMON_SETS,
    &deployment::DEPLOYMENTS,
    &endpoint_slice::ENDPOINT_SLICES,
    &horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS,
    &ingress::INGRESSES,
    &job::JOBS,
    &lease::LEASES,
    &limit_range::LIMIT_RANGES,
    &admission_policy::MUTATING_ADMISSION_POLICIES,
    &admission_policy_binding::MUTATING_ADMISSION_POLICY_BINDINGS,
    &webhook_configuration::MUTATING_WEBHOOK_CONFIGURATIONS,
    &namespace::NAMESPACES,
    &network_policy::NETWORK_POLICIES,
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
    &admission_policy::VALIDATING_ADMISSION_POLICIES,
    &admission_policy_binding::VALIDATING_ADMISSION_POLICY_BINDINGS,
    &webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS,
    &volume_attachment::VOLUME_ATTACHMENTS,
];

/// What `/metrics/resources` tells, in the words of kube-scheduler.
pub const POD_RESOURCES: &[&dyn StateMetrics] = &[&pod_resources::PODS];
