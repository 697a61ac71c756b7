//! The controllers that look after the cluster itself, each against its text worlds.

use corten_api::{cluster_network::ClusterNetwork, load_balancer::AddressPool};

use super::check;
use crate::{
    BootstrapTokens, CertificateApproval, CertificateCleaner, ClaimProtection, ClusterNetworkRecord,
    ClusterRoleAggregation, Disruption, EndpointSliceMirroring, EndpointSlices, EndpointsOfServices, LeaderElection,
    LeaseCandidateExpiry, NodeIpam, NodeLifecycle, NodeTtl, PodCertificateCleaner, PodGarbageCollector, ResourceQuotas,
    RootCaPublisher, ServerTrustPublisher, ServiceAccountTokens, ServiceCidrs, Settings, StorageVersionMigrations,
    TaintEviction, VolumeProtection,
};

#[test]
fn endpoint_slice() {
    check(&EndpointSlices, "endpoint_slice");
}

#[test]
fn endpoints() {
    check(&EndpointsOfServices, "endpoints");
}

#[test]
fn endpoint_slice_mirroring() {
    check(&EndpointSliceMirroring, "endpoint_slice_mirroring");
}

#[test]
fn node_lifecycle() {
    check(&NodeLifecycle, "node_lifecycle");
}

#[test]
fn leader_election() {
    check(&LeaderElection, "leader_election");
}

#[test]
fn candidate_expiry() {
    check(&LeaseCandidateExpiry, "candidate_expiry");
}

#[test]
fn node_ipam() {
    check(&NodeIpam::new(&ClusterNetwork::default()), "node_ipam");
}

#[test]
fn cluster_network() {
    let pool = AddressPool::parse(&["10.0.0.10-10.0.0.12"]).expect("a pool");
    let settings = Settings { load_balancer_pool: pool, ..Settings::default() };
    check(&ClusterNetworkRecord::new(&settings), "cluster_network");
}

#[test]
fn node_ttl() {
    check(&NodeTtl, "node_ttl");
}

#[test]
fn taint_eviction() {
    check(&TaintEviction, "taint_eviction");
}

#[test]
fn pod_garbage_collector() {
    check(&PodGarbageCollector, "pod_garbage_collector");
}

#[test]
fn disruption() {
    check(&Disruption, "disruption");
}

#[test]
fn resource_quota() {
    check(&ResourceQuotas, "resource_quota");
}

#[test]
fn root_ca() {
    check(&RootCaPublisher::default(), "root_ca");
}

#[test]
fn server_trust() {
    check(&ServerTrustPublisher, "server_trust");
}

#[test]
fn storage_version_migration() {
    check(&StorageVersionMigrations, "storage_version_migration");
}

#[test]
fn service_account_tokens() {
    check(&ServiceAccountTokens, "service_account_tokens");
}

#[test]
fn bootstrap_tokens() {
    check(&BootstrapTokens, "bootstrap_tokens");
}

#[test]
fn certificate_approval() {
    check(&CertificateApproval::new("cluster.local"), "certificate_approval");
}

#[test]
fn certificate_cleaner() {
    check(&CertificateCleaner, "certificate_cleaner");
}

#[test]
fn pod_certificate_cleaner() {
    check(&PodCertificateCleaner, "pod_certificate_cleaner");
}

#[test]
fn cluster_role_aggregation() {
    check(&ClusterRoleAggregation, "cluster_role_aggregation");
}

#[test]
fn claim_protection() {
    check(&ClaimProtection, "claim_protection");
}

#[test]
fn volume_protection() {
    check(&VolumeProtection, "volume_protection");
}

#[test]
fn service_cidr() {
    check(&ServiceCidrs, "service_cidr");
}
