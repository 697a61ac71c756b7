//! A role for each loop, bound to the loop's service account in kube-system.
//!
//! Roles have upstream's names. Our loops each watch through their own identity and write with patches, so the roles hold
//! `list`, `watch` and `patch` where upstream's loops share informers and update.

use serde_json::{Value, json};

use super::roles::{READ, binding, events, role, rule};

/// The loop's name at runtime, its role's name, and its rules beside those for events.
struct Loop {
    name: &'static str,
    role: &'static str,
    rules: fn() -> Vec<Value>,
}

const LOOPS: &[Loop] = &[
    Loop { name: "deployment", role: "deployment-controller", rules: deployment },
    Loop { name: "event-expiry", role: "event-expiry-controller", rules: event_expiry },
    Loop { name: "replicaset", role: "replicaset-controller", rules: replica_set },
    Loop { name: "garbage-collector", role: "generic-garbage-collector", rules: garbage_collector },
    Loop { name: "namespace", role: "namespace-controller", rules: namespace },
    Loop { name: "service-account", role: "service-account-controller", rules: service_account },
];

const UPDATE: &[&str] = &["patch", "update"];

fn deployment() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &["apps"], &["deployments"]),
        rule(UPDATE, &["apps"], &["deployments/status"]),
        rule(&["update"], &["apps"], &["deployments/finalizers"]),
        rule(&["create", "delete", "get", "list", "patch", "update", "watch"], &["apps"], &["replicasets"]),
        rule(&["get", "list", "update", "watch"], &[""], &["pods"]),
    ]
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

pub(super) fn roles() -> impl Iterator<Item = Value> {
    LOOPS.iter().map(|it| {
        let mut rules = (it.rules)();
        rules.push(events());
        role(&format!("system:controller:{}", it.role), rules)
    })
}

pub(super) fn bindings() -> impl Iterator<Item = Value> {
    LOOPS.iter().map(|it| {
        let name = format!("system:controller:{}", it.role);
        let account =
            json!({ "kind": "ServiceAccount", "name": format!("{}-controller", it.name), "namespace": "kube-system" });
        binding(&name, &name, vec![account])
    })
}
