//! The roles and bindings every cluster has: those for everybody here, those of users, loops and parts in files of their own. As
//! upstream, where not said otherwise.

mod components;
mod controllers;
mod namespaced;
mod signers;
mod users;

use serde_json::{Value, json};

use crate::role_objects::{CREATE, binding, group, role, rule};

pub use crate::role_objects::AUTOUPDATE;
pub use namespaced::{bindings as namespaced_bindings, roles as namespaced_roles};

fn paths(paths: &[&str]) -> Value {
    json!({ "nonResourceURLs": paths, "verbs": ["get"] })
}

/// Cluster roles.
pub fn roles() -> Vec<Value> {
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
    roles.extend(controllers::roles());
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
const MONITORING: &[&str] = &[
    "/healthz",
    "/healthz/*",
    "/livez",
    "/livez/*",
    "/metrics",
    "/metrics/resources",
    "/metrics/slis",
    "/metrics/state",
    "/readyz",
    "/readyz/*",
];
const ISSUER: &[&str] = &["/.well-known/openid-configuration", "/openid/v1/jwks"];

/// Bindings of cluster roles.
pub fn bindings() -> Vec<Value> {
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
    bindings.extend(controllers::bindings());
    bindings
}
