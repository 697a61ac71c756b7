//! A role for each loop, bound to the loop's service account in kube-system.
//!
//! Roles have upstream's names. In one process the loops read together, as the controller manager; one that runs alone reads
//! as itself, so the roles hold `list` and `watch` too. They write with patches where upstream's loops update.

mod cluster;
mod workloads;

use serde_json::{Value, json};

use crate::role_objects::{READ, binding, events, named, role, rule};

/// The loop's name at runtime, its role's name, and its rules beside those for events.
struct Loop {
    name: &'static str,
    role: &'static str,
    rules: fn() -> Vec<Value>,
}

impl Loop {
    /// The loop's service account. That of the autoscaler has upstream's name, which other API servers grant their metrics to.
    fn account(&self) -> String {
        if self.name == AUTOSCALER { AUTOSCALER.to_owned() } else { format!("{}-controller", self.name) }
    }
}

const AUTOSCALER: &str = "horizontal-pod-autoscaler";

const LOOPS: &[Loop] = &[
    Loop { name: "certificate", role: "certificate-controller", rules: certificate },
    Loop { name: "deployment", role: "deployment-controller", rules: deployment },
    Loop { name: "dns", role: "dns-controller", rules: dns },
    Loop { name: "event-expiry", role: "event-expiry-controller", rules: event_expiry },
    Loop { name: "replicaset", role: "replicaset-controller", rules: replica_set },
    Loop { name: "garbage-collector", role: "generic-garbage-collector", rules: garbage_collector },
    Loop { name: "namespace", role: "namespace-controller", rules: namespace },
    Loop { name: "service-account", role: "service-account-controller", rules: service_account },
];

const UPDATE: &[&str] = &["patch", "update"];

fn certificate() -> Vec<Value> {
    const GROUP: &[&str] = &["certificates.k8s.io"];
    let approves = named(
        &["approve"],
        GROUP,
        &["signers"],
        &["kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"],
    );
    vec![
        rule(&["delete", "get", "list", "watch"], GROUP, &["certificatesigningrequests"]),
        // A serving certificate has the names of its Node, and none that a Service or a Pod has.
        rule(&["get", "list", "watch"], &[""], &["nodes", "pods", "services"]),
        // Nor any that an API server has.
        rule(&["list", "watch"], &["coordination.k8s.io"], &["leases"]),
        named(&["list", "watch"], &[""], &["configmaps"], &["cluster-info"]),
        named(&["list", "watch"], &[""], &["endpoints"], &["kubernetes"]),
        rule(UPDATE, GROUP, &["certificatesigningrequests/approval", "certificatesigningrequests/status"]),
        approves,
        named(&["sign"], GROUP, &["signers"], &corten_pki::SIGNERS),
        rule(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
    ]
}

fn deployment() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &["apps"], &["deployments"]),
        rule(UPDATE, &["apps"], &["deployments/status"]),
        rule(&["update"], &["apps"], &["deployments/finalizers"]),
        rule(&["create", "delete", "get", "list", "patch", "update", "watch"], &["apps"], &["replicasets"]),
        rule(&["get", "list", "update", "watch"], &[""], &["pods"]),
    ]
}

/// What names are made of. What it writes it writes in one namespace: see `namespaced.rs`.
fn dns() -> Vec<Value> {
    let see = &["list", "watch"];
    vec![rule(see, &[""], &["namespaces", "services"]), rule(see, &["discovery.k8s.io"], &["endpointslices"])]
}

fn event_expiry() -> Vec<Value> {
    vec![rule(&["delete", "list", "watch"], &[""], &["events"])]
}

fn replica_set() -> Vec<Value> {
    vec![
        rule(&["get", "list", "update", "watch"], &["apps"], &["replicasets"]),
        rule(UPDATE, &["apps"], &["replicasets/status"]),
        rule(&["update"], &["apps"], &["replicasets/finalizers"]),
        rule(&["create", "delete", "get", "list", "patch", "watch"], &[""], &["pods"]),
    ]
}

fn garbage_collector() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "patch", "update", "watch"], &["*"], &["*"])]
}

fn namespace() -> Vec<Value> {
    vec![
        rule(&["delete", "get", "list", "patch", "watch"], &[""], &["namespaces"]),
        rule(UPDATE, &[""], &["namespaces/finalize", "namespaces/status"]),
        rule(&["delete", "deletecollection", "get", "list", "watch"], &["*"], &["*"]),
    ]
}

fn service_account() -> Vec<Value> {
    vec![rule(READ, &[""], &["namespaces", "serviceaccounts"]), rule(&["create"], &[""], &["serviceaccounts"])]
}

fn loops() -> impl Iterator<Item = &'static Loop> {
    LOOPS.iter().chain(cluster::LOOPS).chain(workloads::LOOPS)
}

pub(super) fn roles() -> impl Iterator<Item = Value> {
    loops().map(|it| {
        let mut rules = (it.rules)();
        rules.push(events());
        role(&format!("system:controller:{}", it.role), rules)
    })
}

pub(super) fn bindings() -> impl Iterator<Item = Value> {
    loops().map(|it| {
        let name = format!("system:controller:{}", it.role);
        let account = json!({ "kind": "ServiceAccount", "name": it.account(), "namespace": "kube-system" });
        binding(&name, &name, vec![account])
    })
}
