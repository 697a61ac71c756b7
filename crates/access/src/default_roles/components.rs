//! The roles of the cluster's own parts, here and on its nodes, and of the add-ons every cluster may have.

use serde_json::Value;

use super::paths;
use crate::{
    node,
    role_objects::{CREATE, READ, account, binding, events, named, role, rule, user},
};

pub(super) fn roles() -> Vec<Value> {
    vec![
        role("system:kube-controller-manager", controller_manager()),
        role("system:kube-scheduler", scheduler()),
        role("system:volume-scheduler", volume_scheduler()),
        role("system:labelled-pod-groups", labelled_pod_groups()),
        role("system:node", node::rules()),
        role("system:node-bootstrapper", vec![node::signing_requests()]),
        role("system:node-problem-detector", problem_detector()),
        role("system:node-proxier", proxier()),
        role("system:node-network-policy", network_policy()),
        role("system:node-volume-provisioner", volume_provisioner()),
        // Of Corten: what is asked of the built-in driver of a node on another machine goes over its kubelet's API.
        role("system:node-volumes", vec![rule(CREATE, &[""], &["nodes/proxy"])]),
        role("system:kubelet-api-admin", kubelet_admin()),
        role("system:kube-aggregator", vec![rule(READ, &[""], &["endpoints", "services"])]),
        role("system:kube-dns", vec![rule(LIST, &[""], &["endpoints", "services"])]),
        role("system:heapster", heapster()),
        role("system:persistent-volume-provisioner", provisioner()),
    ]
}

const LIST: &[&str] = &["list", "watch"];
const CHANGE: &[&str] = &["patch", "update"];

pub(super) fn bindings() -> Vec<Value> {
    let same = |name: &str, subjects| binding(name, name, subjects);
    vec![
        same("system:kube-controller-manager", vec![user("system:kube-controller-manager")]),
        same("system:kube-scheduler", vec![user("system:kube-scheduler")]),
        same("system:volume-scheduler", vec![user("system:kube-scheduler")]),
        same("system:labelled-pod-groups", vec![user("system:kube-scheduler")]),
        same("system:node-proxier", vec![user("system:kube-proxy")]),
        same("system:node-network-policy", vec![user("system:node-network-policy")]),
        same("system:node-volume-provisioner", vec![user("system:node-volume-provisioner")]),
        same("system:node-volumes", vec![user("system:node-volumes")]),
        same("system:kube-dns", vec![account("kube-dns")]),
        same("system:kubelet-api-admin", vec![user("kube-apiserver-kubelet-client")]),
        // To nobody: what it holds the node authorizer grants, to each node for itself.
        same("system:node", Vec::new()),
    ]
}

fn scheduler() -> Vec<Value> {
    vec![
        events(),
        rule(CREATE, &["coordination.k8s.io"], &["leases"]),
        named(&["get", "update"], &["coordination.k8s.io"], &["leases"], &["kube-scheduler"]),
        rule(READ, &[""], &["nodes"]),
        rule(&["delete", "get", "list", "watch"], &[""], &["pods"]),
        rule(CREATE, &[""], &["bindings", "pods/binding"]),
        rule(CHANGE, &[""], &["pods/status"]),
        rule(READ, &[""], &["replicationcontrollers", "services"]),
        rule(READ, &["apps", "extensions"], &["replicasets"]),
        rule(READ, &["apps"], &["statefulsets"]),
        rule(READ, &["policy"], &["poddisruptionbudgets"]),
        rule(READ, &["scheduling.k8s.io"], &["podgroups"]),
        rule(CHANGE, &["scheduling.k8s.io"], &["podgroups/status"]),
        rule(READ, &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["subjectaccessreviews"]),
        rule(READ, &["storage.k8s.io"], &["csinodes", "volumeattachments"]),
        rule(READ, &[""], &["namespaces"]),
        rule(READ, &["storage.k8s.io"], &["csidrivers"]),
        rule(READ, &["storage.k8s.io"], &["csistoragecapacities"]),
        rule(READ, &["resource.k8s.io"], &["deviceclasses"]),
        rule(
            &["create", "delete", "get", "list", "patch", "update", "watch"],
            &["resource.k8s.io"],
            &["resourceclaims"],
        ),
        rule(CHANGE, &["resource.k8s.io"], &["resourceclaims/status"]),
        rule(&["update"], &[""], &["pods/finalizers"]),
        rule(READ, &["resource.k8s.io"], &["resourceslices"]),
        rule(READ, &["resource.k8s.io"], &["devicetaintrules"]),
    ]
}

fn volume_scheduler() -> Vec<Value> {
    let bind = &["get", "list", "patch", "update", "watch"];
    vec![
        rule(bind, &[""], &["persistentvolumes"]),
        rule(READ, &["storage.k8s.io"], &["storageclasses"]),
        rule(bind, &[""], &["persistentvolumeclaims"]),
    ]
}

/// What all loops see they see as this one; each writes as itself.
fn controller_manager() -> Vec<Value> {
    vec![
        events(),
        rule(CREATE, &["coordination.k8s.io"], &["leases"]),
        named(&["get", "update"], &["coordination.k8s.io"], &["leases"], &["kube-controller-manager"]),
        rule(CREATE, &[""], &["secrets", "serviceaccounts"]),
        rule(&["delete"], &[""], &["secrets"]),
        rule(&["get"], &[""], &["configmaps", "namespaces", "secrets", "serviceaccounts"]),
        rule(&["update"], &[""], &["secrets", "serviceaccounts"]),
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["subjectaccessreviews"]),
        rule(LIST, &["*"], &["*"]),
        rule(CREATE, &[""], &["serviceaccounts/token"]),
        // Of Corten: what it sees is put together to one revision.
        paths(&["/progress"]),
    ]
}

fn problem_detector() -> Vec<Value> {
    vec![rule(&["get"], &[""], &["nodes"]), rule(&["patch"], &[""], &["nodes/status"]), events()]
}

fn proxier() -> Vec<Value> {
    vec![
        rule(LIST, &[""], &["endpoints", "services"]),
        rule(READ, &[""], &["nodes"]),
        events(),
        rule(LIST, &["discovery.k8s.io"], &["endpointslices"]),
        rule(LIST, &["networking.k8s.io"], &["servicecidrs"]),
    ]
}

/// Of Corten: who lays the policies of a node's Pods, which are about the Pods of all nodes.
fn network_policy() -> Vec<Value> {
    let policies = rule(LIST, &["networking.k8s.io"], &["networkpolicies"]);
    // How far the cluster has come says whether they are as new as a Pod.
    vec![events(), rule(LIST, &[""], &["namespaces", "pods"]), policies, paths(&["/progress"])]
}

/// Of Corten: whether PodGroups that labels of Pods name are served, and which there are.
fn labelled_pod_groups() -> Vec<Value> {
    vec![
        rule(READ, &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
        rule(READ, &["scheduling.x-k8s.io"], &["podgroups"]),
    ]
}

/// Of Corten: who makes, attaches, grows and removes volumes with the drivers of a node, in place of the CSI sidecars. The
/// Secrets that classes and volumes name for drivers it reads by leave of the node authorizer; Node and CSINode it leaves to the node.
fn volume_provisioner() -> Vec<Value> {
    let (storage, snapshots) = (&["storage.k8s.io"], &["snapshot.storage.k8s.io"]);
    vec![
        events(),
        rule(READ, &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(&["patch"], &[""], &["persistentvolumeclaims", "persistentvolumeclaims/status"]),
        rule(&["create", "delete", "patch", "update"], &[""], &["persistentvolumes"]),
        rule(READ, storage, &["csidrivers", "storageclasses", "volumeattachments", "volumeattributesclasses"]),
        rule(CREATE, storage, &["csidrivers", "storageclasses"]),
        rule(READ, storage, &["csinodes"]),
        rule(&["create", "delete", "list", "patch"], storage, &["csistoragecapacities"]),
        rule(&["patch"], storage, &["volumeattachments", "volumeattachments/status"]),
        // The kinds of snapshots, which a cluster is given with its first node.
        rule(&["create", "get"], &["apiextensions.k8s.io"], &["customresourcedefinitions"]),
        rule(READ, snapshots, &["volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"]),
        rule(CREATE, snapshots, &["volumesnapshotclasses"]),
        rule(&["patch", "update"], snapshots, &["volumesnapshotcontents", "volumesnapshotcontents/status"]),
    ]
}

/// Upstream's API server may do anything at its kubelets, and the role leaves `nodes/checkpoint` out. Here it has this role alone.
fn kubelet_admin() -> Vec<Value> {
    let parts = [
        "nodes/checkpoint",
        "nodes/configz",
        "nodes/healthz",
        "nodes/log",
        "nodes/metrics",
        "nodes/pods",
        "nodes/proxy",
        "nodes/stats",
    ];
    vec![rule(READ, &[""], &["nodes"]), rule(&["proxy"], &[""], &["nodes"]), rule(&["*"], &[""], &parts)]
}

fn heapster() -> Vec<Value> {
    vec![rule(READ, &[""], &["events", "namespaces", "nodes", "pods"]), rule(READ, &["extensions"], &["deployments"])]
}

fn provisioner() -> Vec<Value> {
    vec![
        rule(&["create", "delete", "get", "list", "watch"], &[""], &["persistentvolumes"]),
        rule(&["get", "list", "update", "watch"], &[""], &["persistentvolumeclaims"]),
        rule(READ, &["storage.k8s.io"], &["storageclasses"]),
        rule(&["watch"], &[""], &["events"]),
        events(),
    ]
}
