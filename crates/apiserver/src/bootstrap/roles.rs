//! How roles and bindings are written, and those that all clusters have for everybody. As upstream, where not said
//! otherwise.

use serde_json::{Value, json};

use super::{AUTOUPDATE, components, signers, users};

pub(super) const READ: &[&str] = &["get", "list", "watch"];
pub(super) const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
pub(super) const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
pub(super) const CREATE: &[&str] = &["create"];

pub(super) fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

pub(super) fn named(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resourceNames": names, "resources": resources, "verbs": verbs })
}

fn paths(paths: &[&str]) -> Value {
    json!({ "nonResourceURLs": paths, "verbs": ["get"] })
}

/// Events may be written by every loop.
pub(super) fn events() -> Value {
    rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"])
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { AUTOUPDATE: "true" },
    })
}

pub(super) fn role(name: &str, rules: Vec<Value>) -> Value {
    json!({ "metadata": metadata(name), "rules": rules })
}

/// Binds a role to a subject; both have the binding's name unless the role's is given.
pub(super) fn binding(name: &str, role: &str, subjects: Vec<Value>) -> Value {
    json!({
        "metadata": metadata(name),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    })
}

pub(super) fn group(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name })
}

pub(super) fn user(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name })
}

pub(super) fn account(name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "name": name, "namespace": "kube-system" })
}

pub(super) fn roles() -> Vec<Value> {
    let reviews = |tokens: &str, access: &[&str]| {
        vec![rule(CREATE, &["authorization.k8s.io"], access), rule(CREATE, &["authentication.k8s.io"], &[tokens])]
    };
    let mut roles = vec![
        role("cluster-admin", vec![rule(&["*"], &["*"], &["*"]), json!({ "nonResourceURLs": ["*"], "verbs": ["*"] })]),
        role("system:discovery", vec![paths(DISCOVERY)]),
        role("system:public-info-viewer", vec![paths(PUBLIC)]),
        role("system:monitoring", vec![paths(MONITORING)]),
        role("system:service-account-issuer-discovery", vec![paths(ISSUER)]),
        role(
            "system:basic-user",
            reviews("selfsubjectreviews", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        ),
        role("system:auth-delegator", reviews("tokenreviews", &["subjectaccessreviews"])),
    ];
    roles.extend(components::roles());
    roles.extend(signers::roles());
    roles.extend(users::roles());
    roles
}

const DISCOVERY: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
const MONITORING: &[&str] =
    &["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"];
const ISSUER: &[&str] = &["/.well-known/openid-configuration", "/openid/v1/jwks"];

pub(super) fn bindings() -> Vec<Value> {
    let same = |name: &str, subjects| binding(name, name, subjects);
    let mut bindings = vec![
        same("cluster-admin", vec![group("system:masters")]),
        same("system:discovery", vec![group("system:authenticated")]),
        same("system:basic-user", vec![group("system:authenticated")]),
        same("system:monitoring", vec![group("system:monitoring")]),
        same("system:public-info-viewer", vec![group("system:authenticated"), group("system:unauthenticated")]),
        same("system:service-account-issuer-discovery", vec![group("system:serviceaccounts")]),
    ];
    bindings.extend(components::bindings());
    bindings
}
