//! The controllers: one file for each, one row in [`CONTROLLERS`].
//!
//! Each is a [`corten_reconcile::Controller`]: a pure function from what is seen to what is to be done.

mod certificates;
mod cluster_network;
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
mod settings;
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
use corten_reconcile::Controller;

pub use certificates::{CertificateApproval, CertificateCleaner, PodCertificateCleaner, ServerTrustPublisher};
pub use cluster_network::ClusterNetworkRecord;
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
pub use load_balancer::LoadBalancers;
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
pub use settings::Settings;
pub use snapshots::VolumeSnapshots;
pub use stateful_set::StatefulSets;
pub use storage_version_migration::StorageVersionMigrations;
pub use taint_eviction::TaintEviction;
pub use token_secrets::{BootstrapTokens, ServiceAccountTokens};
pub use ttl_after_finished::TtlAfterFinished;
pub use volumes::{
    AttachDetach, AttributesClassProtection, ClaimProtection, EphemeralVolumes, VolumeBinder, VolumeProtection,
};

/// Makes a controller.
pub type Make = fn(&Settings) -> Arc<dyn Controller>;

/// Every controller, in name order.
pub const CONTROLLERS: &[Make] = &[
    |_| Arc::new(AttachDetach),
    |it| Arc::new(CertificateApproval::new(&it.network.domain)),
    |it| Arc::new(ClusterNetworkRecord::new(it)),
    |_| Arc::new(ClusterRoleAggregation),
    |_| Arc::new(CronJobs),
    |_| Arc::new(CertificateCleaner),
    |_| Arc::new(DaemonSets),
    |_| Arc::new(Deployments),
    |_| Arc::new(DeviceTaintEviction),
    |_| Arc::new(DeviceTaintRuleStatus),
    |_| Arc::new(Disruption),
    |_| Arc::new(EndpointsOfServices),
    |_| Arc::new(EndpointSlices),
    |_| Arc::new(EndpointSliceMirroring),
    |_| Arc::new(EphemeralVolumes),
    |_| Arc::new(EventExpiry),
    |it| Arc::new(GarbageCollector::new(it)),
    |_| Arc::new(HorizontalPodAutoscalers),
    |_| Arc::new(Jobs),
    |_| Arc::new(ServerTrustPublisher),
    |_| Arc::new(LeaderElection),
    |_| Arc::new(LeaseCandidateExpiry),
    |it| Arc::new(Namespaces::new(it)),
    |_| Arc::new(NodeLifecycle),
    |it| Arc::new(NodeIpam::new(&it.network)),
    |_| Arc::new(VolumeBinder),
    |_| Arc::new(PodGarbageCollector),
    |_| Arc::new(PodCertificateCleaner),
    |_| Arc::new(VolumeProtection),
    |_| Arc::new(ClaimProtection),
    |_| Arc::new(ReplicaSets),
    |_| Arc::new(ReplicationControllers),
    |_| Arc::new(DeviceClaims),
    |_| Arc::new(DeviceClaimRelease),
    |_| Arc::new(ResourceQuotas),
    |it| Arc::new(RootCaPublisher::new(it)),
    |it| Arc::new(LoadBalancers::new(it)),
    |_| Arc::new(ServiceAccounts),
    |_| Arc::new(ServiceCidrs),
    |_| Arc::new(ServiceAccountTokens),
    |_| Arc::new(StatefulSets),
    |_| Arc::new(StorageVersionMigrations),
    |_| Arc::new(TaintEviction),
    |_| Arc::new(BootstrapTokens),
    |_| Arc::new(NodeTtl),
    |_| Arc::new(TtlAfterFinished),
    |_| Arc::new(PolicyStatus),
    |_| Arc::new(VerticalPodAutoscalers),
    |_| Arc::new(VolumeSnapshots),
    |_| Arc::new(AttributesClassProtection),
];
