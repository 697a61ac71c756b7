//! The roles of users, of the scheduler and of nodes, and whom they are bound to. As upstream, where not said otherwise.

use serde_json::{Value, json};

use super::AUTOUPDATE;

pub(super) const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

pub(super) fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn named(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Value {
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

fn group(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name })
}

fn user(name: &str) -> Value {
    json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name })
}

pub(super) fn roles() -> Vec<Value> {
    let mut roles = vec![
        role("cluster-admin", vec![rule(&["*"], &["*"], &["*"]), json!({ "nonResourceURLs": ["*"], "verbs": ["*"] })]),
        role("system:discovery", vec![paths(DISCOVERY)]),
        role("system:public-info-viewer", vec![paths(PUBLIC)]),
        role("system:monitoring", vec![paths(MONITORING)]),
        role(
            "system:basic-user",
            vec![
                rule(CREATE, &["authorization.k8s.io"], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                rule(CREATE, &["authentication.k8s.io"], &["selfsubjectreviews"]),
            ],
        ),
        role(
            "system:auth-delegator",
            vec![
                rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
                rule(CREATE, &["authorization.k8s.io"], &["subjectaccessreviews"]),
            ],
        ),
        role("system:kube-scheduler", scheduler()),
        role("system:node", node()),
    ];
    roles.extend(for_users());
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

/// `admin`, `edit` and `view` are sums of the three roles below them. Until a loop does the summing, they are written
/// with their sums.
fn for_users() -> Vec<Value> {
    let sums = |to: &str, from: Option<&str>, rules: Vec<Value>| {
        let mut sum = role(to, rules);
        let label = format!("{AGGREGATE}{to}");
        sum["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] });
        if let Some(from) = from {
            sum["metadata"]["labels"][format!("{AGGREGATE}{from}")] = json!("true");
        }
        sum
    };
    let part = |to: &str, rules: Vec<Value>| {
        let mut part = role(&format!("system:aggregate-to-{to}"), rules);
        part["metadata"]["labels"][format!("{AGGREGATE}{to}")] = json!("true");
        part
    };
    let (view_rules, edit_rules) = (view(), [edit(), view()].concat());
    let admin_rules = [admin(), edit_rules.clone()].concat();
    vec![
        part("admin", admin()),
        part("edit", edit()),
        part("view", view()),
        sums("admin", None, admin_rules),
        sums("edit", Some("admin"), edit_rules),
        sums("view", Some("edit"), view_rules),
    ]
}

fn admin() -> Vec<Value> {
    vec![
        rule(CREATE, &["authorization.k8s.io"], &["localsubjectaccessreviews"]),
        rule(ALL, &["rbac.authorization.k8s.io"], &["rolebindings", "roles"]),
    ]
}

fn edit() -> Vec<Value> {
    const TUNNELS: [&str; 4] = ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy"];
    vec![
        rule(READ, &[""], &[&TUNNELS[..], &["secrets", "services/proxy"]].concat()),
        rule(&["impersonate"], &[""], &["serviceaccounts"]),
        rule(WRITE, &[""], &[&["pods"], &TUNNELS[..]].concat()),
        rule(CREATE, &[""], &["pods/eviction"]),
        rule(
            WRITE,
            &[""],
            &[
                "configmaps",
                "events",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "secrets",
                "serviceaccounts",
                "services",
                "services/proxy",
            ],
        ),
        rule(CREATE, &[""], &["serviceaccounts/token"]),
        rule(
            WRITE,
            &["apps"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "replicasets",
                "replicasets/scale",
                "statefulsets",
                "statefulsets/scale",
            ],
        ),
        rule(WRITE, &["autoscaling"], &["horizontalpodautoscalers"]),
        rule(WRITE, &["batch"], &["cronjobs", "jobs"]),
        rule(WRITE, &["policy"], &["poddisruptionbudgets"]),
        rule(WRITE, &["networking.k8s.io"], &["ingresses", "networkpolicies"]),
        rule(ALL, &["coordination.k8s.io"], &["leases"]),
    ]
}

fn view() -> Vec<Value> {
    vec![
        rule(
            READ,
            &[""],
            &[
                "configmaps",
                "endpoints",
                "persistentvolumeclaims",
                "persistentvolumeclaims/status",
                "pods",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "serviceaccounts",
                "services",
                "services/status",
            ],
        ),
        rule(
            READ,
            &[""],
            &[
                "bindings",
                "events",
                "limitranges",
                "namespaces/status",
                "pods/log",
                "pods/status",
                "replicationcontrollers/status",
                "resourcequotas",
                "resourcequotas/status",
            ],
        ),
        rule(READ, &[""], &["namespaces"]),
        rule(READ, &["discovery.k8s.io"], &["endpointslices"]),
        rule(
            READ,
            &["apps"],
            &[
                "controllerrevisions",
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "statefulsets",
                "statefulsets/scale",
                "statefulsets/status",
            ],
        ),
        rule(READ, &["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
        rule(READ, &["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
        rule(READ, &["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
        rule(READ, &["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"]),
        // Corten's own: whoever sees an object may see what the loops say of it.
        rule(&["get"], &["corten.dev"], &["journals"]),
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
        rule(&["patch", "update"], &[""], &["pods/status"]),
        rule(READ, &[""], &["replicationcontrollers", "services"]),
        rule(READ, &["apps"], &["replicasets", "statefulsets"]),
        rule(READ, &["policy"], &["poddisruptionbudgets"]),
        rule(READ, &[""], &["persistentvolumeclaims", "persistentvolumes"]),
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["subjectaccessreviews"]),
        rule(READ, &["storage.k8s.io"], &["csidrivers", "csinodes", "csistoragecapacities", "storageclasses"]),
        rule(READ, &[""], &["namespaces"]),
    ]
}

/// Less than upstream's, since this role is bound to every node and no authorizer looks at which node asks: single
/// secrets and config maps can be read by name only (`access/node.rs`), and no Pod can be created.
fn node() -> Vec<Value> {
    vec![
        rule(CREATE, &["authentication.k8s.io"], &["tokenreviews"]),
        rule(CREATE, &["authorization.k8s.io"], &["localsubjectaccessreviews", "subjectaccessreviews"]),
        rule(READ, &[""], &["services"]),
        rule(&["create", "get", "list", "watch"], &[""], &["nodes"]),
        rule(&["patch", "update"], &[""], &["nodes/status"]),
        rule(&["patch", "update"], &[""], &["nodes"]),
        rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
        rule(READ, &[""], &["pods"]),
        rule(&["delete"], &[""], &["pods"]),
        rule(&["patch", "update"], &[""], &["pods/status"]),
        rule(CREATE, &[""], &["pods/eviction"]),
        rule(&["get"], &[""], &["configmaps", "secrets", "serviceaccounts"]),
        rule(&["create", "delete", "get", "patch", "update"], &["coordination.k8s.io"], &["leases"]),
        rule(READ, &["node.k8s.io"], &["runtimeclasses"]),
    ]
}

pub(super) fn bindings() -> Vec<Value> {
    let same = |name: &str, subjects| binding(name, name, subjects);
    vec![
        same("cluster-admin", vec![group("system:masters")]),
        same("system:discovery", vec![group("system:authenticated")]),
        same("system:basic-user", vec![group("system:authenticated")]),
        same("system:monitoring", vec![group("system:monitoring")]),
        same("system:public-info-viewer", vec![group("system:authenticated"), group("system:unauthenticated")]),
        same("system:kube-scheduler", vec![user("system:kube-scheduler")]),
        // Upstream binds this role to nobody: there, its node authorizer grants what it holds.
        same("system:node", vec![group("system:nodes")]),
    ]
}
