//! The roles of the cluster's own parts, here and on its nodes, and of the add-ons every cluster may have.

use serde_json::Value;

use super::roles::{CREATE, READ, account, binding, events, named, role, rule, user};

pub(super) fn roles() -> Vec<Value> {
    vec![
        role("system:kube-controller-manager", controller_manager()),
        role("system:kube-scheduler", scheduler()),
        role("system:volume-scheduler", volume_scheduler()),
        role("system:node", node()),
        role("system:node-bootstrapper", vec![signing_requests()]),
        role("system:node-problem-detector", problem_detector()),
        role("system:node-proxier", proxier()),
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
        same("system:node-proxier", vec![user("system:kube-proxy")]),
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
        rule(READ, &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["subjectaccessreviews"]),
        rule(READ, &["storage.k8s.io"], &["csinodes"]),
        rule(READ, &[""], &["namespaces"]),
        rule(READ, &["storage.k8s.io"], &["csidrivers"]),
        rule(READ, &["storage.k8s.io"], &["csistoragecapacities"]),
        rule(READ, &["resource.k8s.io"], &["deviceclasses"]),
        rule(&["get", "list", "patch", "update", "watch"], &["resource.k8s.io"], &["resourceclaims"]),
        rule(CHANGE, &["resource.k8s.io"], &["resourceclaims/status"]),
        rule(&["update"], &[""], &["pods/finalizers"]),
        rule(READ, &["resource.k8s.io"], &["resourceslices"]),
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
    ]
}

/// Which objects these rules are about the node authorizer narrows down (`access/node.rs`).
pub(super) fn node() -> Vec<Value> {
    let own = &["create", "delete", "get", "patch", "update"];
    let slices = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    vec![
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["localsubjectaccessreviews", "subjectaccessreviews"]),
        rule(READ, &[""], &["services"]),
        rule(&["create", "get", "list", "watch"], &[""], &["nodes"]),
        rule(CHANGE, &[""], &["nodes/status"]),
        rule(CHANGE, &[""], &["nodes"]),
        // Upstream's kubelets write events of the core group only.
        rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        rule(READ, &[""], &["pods"]),
        rule(&["create", "delete"], &[""], &["pods"]),
        rule(CHANGE, &[""], &["pods/status"]),
        rule(CREATE, &[""], &["pods/eviction"]),
        rule(READ, &[""], &["configmaps", "secrets"]),
        rule(&["get"], &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(&["get"], &[""], &["endpoints"]),
        signing_requests(),
        rule(own, &["coordination.k8s.io"], &["leases"]),
        rule(&["get"], &["storage.k8s.io"], &["volumeattachments"]),
        rule(CREATE, &[""], &["serviceaccounts/token"]),
        rule(&["get"], &[""], &["serviceaccounts"]),
        rule(&["get", "patch", "update"], &[""], &["persistentvolumeclaims/status"]),
        rule(READ, &["storage.k8s.io"], &["csidrivers"]),
        rule(own, &["storage.k8s.io"], &["csinodes"]),
        rule(READ, &["node.k8s.io"], &["runtimeclasses"]),
        rule(&["get"], &["resource.k8s.io"], &["resourceclaims"]),
        rule(slices, &["resource.k8s.io"], &["resourceslices"]),
        rule(READ, &["certificates.k8s.io"], &["clustertrustbundles"]),
    ]
}

fn signing_requests() -> Value {
    rule(&["create", "get", "list", "watch"], &["certificates.k8s.io"], &["certificatesigningrequests"])
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
