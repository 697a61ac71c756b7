//! The controllers: one file for each, one row in [`CONTROLLERS`].
//!
//! Each is a [`corten_reconcile::Controller`]: a pure function from what is seen to what is to be done.

mod certificates;
mod cluster_role_aggregation;
mod cron_job;
mod daemon_set;
mod deployment;
mod device_claims;
mod disruption;
mod elsewhere;
mod endpoint_slice;
mod endpoint_slice_mirroring;
mod endpoints;
mod event_expiry;
mod everything;
mod garbage_collector;
mod int_or_percent;
mod job;
mod leader_election;
mod load_balancer;
mod metrics;
mod names;
mod namespace;
mod node_ipam;
mod node_lifecycle;
mod node_ttl;
mod ownership;
mod pod_garbage_collector;
mod pod_template;
mod policy_status;
mod projections;
mod replica_set;
mod resource_quota;
mod revision_history;
mod root_ca;
mod service_account;
mod service_cidr;
mod snapshots;
mod stateful_set;
mod storage_version_migration;
mod taint_eviction;
#[cfg(test)]
mod tests;
mod token_secrets;
mod ttl_after_finished;
mod volumes;

use std::sync::Arc;

use corten_autoscaling::{HorizontalPodAutoscalers, VerticalPodAutoscalers};
use corten_reconcile::{Controller, EFFECTS_MAX, go_on_after_failed, status};

pub use certificates::{CertificateApproval, CertificateCleaner, PodCertificateCleaner};
pub use cluster_role_aggregation::ClusterRoleAggregation;
pub use cron_job::CronJobs;
pub use daemon_set::DaemonSets;
pub use deployment::Deployments;
pub use device_claims::{DeviceClaimRelease, DeviceClaims, DeviceTaintEviction, DeviceTaintRuleStatus};
pub use disruption::Disruption;
pub use endpoint_slice::EndpointSlices;
pub use endpoint_slice_mirroring::EndpointSliceMirroring;
pub use endpoints::EndpointsOfServices;
pub use event_expiry::EventExpiry;
pub use garbage_collector::GarbageCollector;
pub use job::Jobs;
pub use leader_election::{LeaderElection, LeaseCandidateExpiry};
pub use load_balancer::{AddressPool, LoadBalancers};
pub use namespace::Namespaces;
pub use node_ipam::{ClusterRange, NodeIpam};
pub use node_lifecycle::NodeLifecycle;
pub use node_ttl::NodeTtl;
pub use pod_garbage_collector::PodGarbageCollector;
pub use policy_status::PolicyStatus;
pub use replica_set::{ReplicaSets, ReplicationControllers};
pub use resource_quota::ResourceQuotas;
pub use root_ca::RootCaPublisher;
pub use service_account::ServiceAccounts;
pub use service_cidr::ServiceCidrs;
pub use snapshots::VolumeSnapshots;
pub use stateful_set::StatefulSets;
pub use storage_version_migration::StorageVersionMigrations;
pub use taint_eviction::TaintEviction;
pub use token_secrets::{BootstrapTokens, ServiceAccountTokens};
pub use ttl_after_finished::TtlAfterFinished;
pub use volumes::{
    AttachDetach, AttributesClassProtection, ClaimProtection, EphemeralVolumes, VolumeBinder, VolumeProtection,
};

/// Every controller, in name order.
pub const CONTROLLERS: &[fn() -> Arc<dyn Controller>] = &[
    || Arc::new(AttachDetach),
    || Arc::new(CertificateApproval),
    || Arc::new(ClusterRoleAggregation),
    || Arc::new(CronJobs),
    || Arc::new(CertificateCleaner),
    || Arc::new(DaemonSets),
    || Arc::new(Deployments),
    || Arc::new(DeviceTaintEviction),
    || Arc::new(DeviceTaintRuleStatus),
    || Arc::new(Disruption),
    || Arc::new(EndpointsOfServices),
    || Arc::new(EndpointSlices),
    || Arc::new(EndpointSliceMirroring),
    || Arc::new(EphemeralVolumes),
    || Arc::new(EventExpiry),
    || Arc::new(GarbageCollector),
    || Arc::new(HorizontalPodAutoscalers),
    || Arc::new(Jobs),
    || Arc::new(LeaderElection),
    || Arc::new(LeaseCandidateExpiry),
    || Arc::new(Namespaces),
    || Arc::new(NodeLifecycle),
    || Arc::new(NodeIpam::default()),
    || Arc::new(VolumeBinder),
    || Arc::new(PodGarbageCollector),
    || Arc::new(PodCertificateCleaner),
    || Arc::new(VolumeProtection),
    || Arc::new(ClaimProtection),
    || Arc::new(ReplicaSets),
    || Arc::new(ReplicationControllers),
    || Arc::new(DeviceClaims),
    || Arc::new(DeviceClaimRelease),
    || Arc::new(ResourceQuotas),
    || Arc::new(RootCaPublisher),
    || Arc::new(LoadBalancers::default()),
    || Arc::new(ServiceAccounts),
    || Arc::new(ServiceCidrs),
    || Arc::new(ServiceAccountTokens),
    || Arc::new(StatefulSets),
    || Arc::new(StorageVersionMigrations),
    || Arc::new(TaintEviction),
    || Arc::new(BootstrapTokens),
    || Arc::new(NodeTtl),
    || Arc::new(TtlAfterFinished),
    || Arc::new(PolicyStatus),
    || Arc::new(VerticalPodAutoscalers),
    || Arc::new(VolumeSnapshots),
    || Arc::new(AttributesClassProtection),
];
