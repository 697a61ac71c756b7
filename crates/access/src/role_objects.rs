//! Roles, their rules and bindings, as they are written.

use serde_json::{Value, json};

/// A role of the cluster's own is completed at each start while it says so.
pub const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

pub(crate) const READ: &[&str] = &["get", "list", "watch"];
pub(crate) const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
pub(crate) const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
pub(crate) const CREATE: &[&str] = &["create"];

pub(crate) fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

pub(crate) fn named(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resourceNames": names, "resources": resources, "verbs": verbs })
}

/// Events may be written by every loop.
pub(crate) fn events() -> Value {
    rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"])
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { AUTOUPDATE: "true" },
    })
}

pub(crate) fn role(name: &str, rules: Vec<Value>) -> Value {
    json!({ "metadata": metadata(name), "rules": rules })
}

/// Binds a role to a subject; both have the binding's name unless the role's is given.
pub(crate) fn binding(name: &str, role: &str, subjects: Vec<Value>) -> Value {
    json!({
        "metadata": metadata(name),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    })
}

pub(crate) fn group(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name })
}

pub(crate) fn user(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name })
}

pub(crate) fn account(name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "name": name, "namespace": "kube-system" })
}
