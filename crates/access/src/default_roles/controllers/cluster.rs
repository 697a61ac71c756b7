//! What the loops may do that look after the cluster itself: services, nodes, budgets, quotas, accounts, certificates.

use serde_json::Value;

use super::{Loop, READ, UPDATE, named, rule};

const SERVER_TRUST: &str = "kube-apiserver-serving-clustertrustbundle-publisher";

pub(super) const LOOPS: &[Loop] = &[
    Loop { name: "attachdetach", role: "attachdetach-controller", rules: attach_detach },
    Loop { name: "cluster-network", role: "cluster-network-controller", rules: cluster_network },
    Loop { name: "clusterrole-aggregation", role: "clusterrole-aggregation-controller", rules: role_aggregation },
    Loop { name: "csrcleaner", role: "csrcleaner-controller", rules: csr_cleaner },
    Loop { name: "device-taint-eviction", role: "device-taint-eviction-controller", rules: device_taint_eviction },
    Loop {
        name: "device-taint-rule-status",
        role: "device-taint-rule-status-controller",
        rules: device_taint_rule_status,
    },
    Loop { name: "disruption", role: "disruption-controller", rules: disruption },
    Loop { name: "endpoint", role: "endpoint-controller", rules: endpoint },
    Loop { name: "endpointslice", role: "endpointslice-controller", rules: endpoint_slice },
    Loop { name: "endpointslicemirroring", role: "endpointslicemirroring-controller", rules: endpoint_slice_mirroring },
    Loop { name: "ephemeral-volume", role: "ephemeral-volume-controller", rules: ephemeral_volume },
    Loop { name: SERVER_TRUST, role: SERVER_TRUST, rules: server_trust },
    Loop { name: "leader-election", role: "leader-election-controller", rules: leader_election },
    Loop { name: "lease-candidate-expiry", role: "lease-candidate-expiry-controller", rules: candidate_expiry },
    Loop { name: "node", role: "node-controller", rules: node },
    Loop { name: "node-ipam", role: "node-ipam-controller", rules: node_ttl },
    Loop { name: "persistent-volume-binder", role: "persistent-volume-binder", rules: volume_binder },
    Loop { name: "pod-garbage-collector", role: "pod-garbage-collector", rules: pod_garbage_collector },
    Loop { name: "podcertificaterequestcleaner", role: "podcertificaterequestcleaner", rules: pod_certificate_cleaner },
    Loop { name: "pv-protection", role: "pv-protection-controller", rules: volume_protection },
    Loop { name: "pvc-protection", role: "pvc-protection-controller", rules: claim_protection },
    Loop { name: "resource-claim", role: "resource-claim-controller", rules: resource_claim },
    Loop { name: "resource-claim-release", role: "resource-claim-release-controller", rules: resource_claim },
    Loop { name: "resourcequota", role: "resourcequota-controller", rules: resource_quota },
    Loop { name: "root-ca-certificate-publisher", role: "root-ca-cert-publisher", rules: root_ca },
    Loop { name: "service", role: "service-controller", rules: service },
    Loop { name: "service-cidrs", role: "service-cidrs-controller", rules: service_cidrs },
    Loop { name: "serviceaccount-token", role: "serviceaccount-token-controller", rules: account_tokens },
    Loop { name: "storage-version-migrator", role: "storage-version-migrator-controller", rules: migrator },
    Loop { name: "taint-eviction", role: "taint-eviction-controller", rules: taint_eviction },
    Loop { name: "token-cleaner", role: "token-cleaner", rules: bootstrap_tokens },
    Loop { name: "ttl", role: "ttl-controller", rules: node_ttl },
    Loop {
        name: "validatingadmissionpolicy-status",
        role: "validatingadmissionpolicy-status-controller",
        rules: policy_status,
    },
    Loop { name: "volume-snapshot", role: "volume-snapshot-controller", rules: volume_snapshots },
    Loop {
        name: "volumeattributesclass-protection",
        role: "volumeattributesclass-protection-controller",
        rules: attributes_class_protection,
    },
];

fn migrator() -> Vec<Value> {
    vec![
        rule(&["list", "patch", "watch"], &["*"], &["*"]),
        rule(UPDATE, &["storagemigration.k8s.io"], &["storageversionmigrations/status"]),
    ]
}

/// Only this loop may give roles rules that it does not have itself.
fn role_aggregation() -> Vec<Value> {
    let verbs = &["escalate", "get", "list", "patch", "update", "watch"];
    vec![rule(verbs, &["rbac.authorization.k8s.io"], &["clusterroles"])]
}

fn csr_cleaner() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "watch"], &["certificates.k8s.io"], &["certificatesigningrequests"])]
}

/// Who writes a bundle of a signer attests for it.
fn server_trust() -> Vec<Value> {
    const GROUP: &[&str] = &["certificates.k8s.io"];
    vec![
        named(&["attest"], GROUP, &["signers"], &["kubernetes.io/kube-apiserver-serving"]),
        rule(&["create", "delete", "list", "patch", "update", "watch"], GROUP, &["clustertrustbundles"]),
        rule(READ, &[""], &["configmaps"]),
    ]
}

fn pod_certificate_cleaner() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "watch"], &["certificates.k8s.io"], &["podcertificaterequests"])]
}

fn device_taint_eviction() -> Vec<Value> {
    vec![
        rule(&["delete", "get", "list", "watch"], &[""], &["pods"]),
        rule(UPDATE, &[""], &["pods/status"]),
        rule(READ, &["resource.k8s.io"], &["devicetaintrules", "resourceclaims", "resourceslices"]),
    ]
}

fn device_taint_rule_status() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["pods"]),
        rule(READ, &["resource.k8s.io"], &["devicetaintrules", "resourceclaims", "resourceslices"]),
        rule(UPDATE, &["resource.k8s.io"], &["devicetaintrules/status"]),
    ]
}

fn disruption() -> Vec<Value> {
    vec![
        rule(READ, &["apps"], &["deployments", "replicasets", "statefulsets"]),
        rule(READ, &[""], &["pods", "replicationcontrollers"]),
        rule(READ, &["policy"], &["poddisruptionbudgets"]),
        rule(UPDATE, &["policy"], &["poddisruptionbudgets/status"]),
    ]
}

fn endpoint() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["pods", "services"]),
        rule(&["create", "delete", "get", "list", "patch", "update", "watch"], &[""], &["endpoints"]),
        rule(&["create"], &[""], &["endpoints/restricted"]),
    ]
}

fn endpoint_slice() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["nodes", "pods", "services"]),
        rule(&["update"], &[""], &["services/finalizers"]),
        slices(),
    ]
}

fn endpoint_slice_mirroring() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["endpoints", "services"]),
        rule(&["update"], &[""], &["endpoints/finalizers", "services/finalizers"]),
        slices(),
    ]
}

fn slices() -> Value {
    let verbs = &["create", "delete", "get", "list", "patch", "update", "watch"];
    rule(verbs, &["discovery.k8s.io"], &["endpointslices", "endpointslices/restricted"])
}

fn node() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &[""], &["nodes"]),
        rule(UPDATE, &[""], &["nodes/status", "pods/status"]),
        rule(READ, &[""], &["pods"]),
        rule(READ, &["coordination.k8s.io"], &["leases"]),
    ]
}

fn pod_garbage_collector() -> Vec<Value> {
    vec![
        rule(&["delete", "get", "list", "watch"], &[""], &["pods"]),
        rule(READ, &[""], &["nodes"]),
        rule(UPDATE, &[""], &["pods/status"]),
    ]
}

fn taint_eviction() -> Vec<Value> {
    vec![
        rule(&["delete", "get", "list", "watch"], &[""], &["pods"]),
        rule(UPDATE, &[""], &["pods/status"]),
        rule(&["get", "list", "patch", "watch"], &[""], &["nodes"]),
    ]
}

fn ephemeral_volume() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["pods"]),
        rule(&["update"], &[""], &["pods/finalizers"]),
        rule(&["create", "get", "list", "watch"], &[""], &["persistentvolumeclaims"]),
    ]
}

fn resource_claim() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["pods"]),
        rule(&["update"], &[""], &["pods/finalizers"]),
        rule(UPDATE, &[""], &["pods/status"]),
        rule(
            &["create", "delete", "get", "list", "patch", "update", "watch"],
            &["resource.k8s.io"],
            &["resourceclaims"],
        ),
        rule(UPDATE, &["resource.k8s.io"], &["resourceclaims/status"]),
        rule(READ, &["resource.k8s.io"], &["resourceclaimtemplates"]),
    ]
}

fn attach_detach() -> Vec<Value> {
    let attachments = &["create", "delete", "get", "list", "patch", "watch"];
    vec![
        rule(READ, &[""], &["nodes", "persistentvolumeclaims", "persistentvolumes", "pods"]),
        rule(UPDATE, &[""], &["nodes/status"]),
        rule(attachments, &["storage.k8s.io"], &["volumeattachments"]),
        rule(READ, &["storage.k8s.io"], &["csidrivers", "csinodes"]),
    ]
}

/// Less than upstream's, whose loop makes and deletes volumes itself.
fn volume_binder() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(UPDATE, &[""], &["persistentvolumeclaims/status", "persistentvolumes/status"]),
        rule(READ, &["storage.k8s.io"], &["storageclasses"]),
        rule(READ, &[""], &["pods"]),
    ]
}

/// Upstream's snapshot-controller is installed with a role of its own, `snapshot-controller-runner`.
fn volume_snapshots() -> Vec<Value> {
    const GROUP: &[&str] = &["snapshot.storage.k8s.io"];
    vec![
        rule(READ, &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
        rule(READ, &["apiregistration.k8s.io"], &["apiservices"]),
        rule(READ, &[""], &["nodes", "persistentvolumes"]),
        rule(&["get", "list", "patch", "update", "watch"], &[""], &["persistentvolumeclaims"]),
        rule(READ, GROUP, &["volumesnapshotclasses"]),
        rule(&["create", "delete", "get", "list", "patch", "update", "watch"], GROUP, &["volumesnapshotcontents"]),
        rule(&["get", "list", "patch", "update", "watch"], GROUP, &["volumesnapshots"]),
        rule(UPDATE, GROUP, &["volumesnapshots/status"]),
    ]
}

fn attributes_class_protection() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(&["get", "list", "patch", "update", "watch"], &["storage.k8s.io"], &["volumeattributesclasses"]),
    ]
}

fn volume_protection() -> Vec<Value> {
    vec![rule(&["get", "list", "patch", "update", "watch"], &[""], &["persistentvolumes"])]
}

fn claim_protection() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &[""], &["persistentvolumeclaims"]),
        rule(UPDATE, &[""], &["persistentvolumeclaims/status"]),
        rule(READ, &[""], &["pods"]),
    ]
}

fn root_ca() -> Vec<Value> {
    vec![
        rule(&["create", "get", "list", "patch", "update", "watch"], &[""], &["configmaps"]),
        rule(READ, &[""], &["namespaces"]),
    ]
}

/// A create names nothing that a rule could hold it to.
fn cluster_network() -> Vec<Value> {
    vec![
        rule(&["create"], &[""], &["configmaps"]),
        named(&["get", "list", "patch", "update", "watch"], &[""], &["configmaps"], &["corten-cluster-network"]),
        rule(READ, &[""], &["namespaces"]),
    ]
}

fn service() -> Vec<Value> {
    vec![
        rule(READ, &[""], &["services"]),
        rule(UPDATE, &[""], &["services/status"]),
        rule(&["list", "watch"], &[""], &["nodes"]),
        rule(&["list", "watch"], &["discovery.k8s.io"], &["endpointslices"]),
    ]
}

fn service_cidrs() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &["networking.k8s.io"], &["servicecidrs"]),
        rule(UPDATE, &["networking.k8s.io"], &["servicecidrs/finalizers", "servicecidrs/status"]),
        rule(READ, &["networking.k8s.io"], &["ipaddresses"]),
    ]
}

fn account_tokens() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "watch"], &[""], &["secrets"]), rule(READ, &[""], &["serviceaccounts"])]
}

fn leader_election() -> Vec<Value> {
    const GROUP: &[&str] = &["coordination.k8s.io"];
    vec![
        rule(&["create", "get", "list", "patch", "watch"], GROUP, &["leases"]),
        rule(&["get", "list", "patch", "watch"], GROUP, &["leasecandidates"]),
    ]
}

fn candidate_expiry() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "watch"], &["coordination.k8s.io"], &["leasecandidates"])]
}

fn policy_status() -> Vec<Value> {
    vec![
        rule(READ, &["admissionregistration.k8s.io"], &["validatingadmissionpolicies"]),
        rule(UPDATE, &["admissionregistration.k8s.io"], &["validatingadmissionpolicies/status"]),
        rule(READ, &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
    ]
}

fn node_ttl() -> Vec<Value> {
    vec![rule(&["get", "list", "patch", "update", "watch"], &[""], &["nodes"])]
}

fn bootstrap_tokens() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "watch"], &[""], &["secrets"])]
}

/// Anything may be counted.
fn resource_quota() -> Vec<Value> {
    vec![rule(&["list", "watch"], &["*"], &["*"]), rule(UPDATE, &[""], &["resourcequotas/status"])]
}
