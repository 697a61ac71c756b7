//! The roles of people: `admin`, `edit` and `view` of a namespace.

use serde_json::{Value, json};

use crate::role_objects::{ALL, CREATE, READ, WRITE, role, rule};

const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// `admin`, `edit` and `view` are sums of the three roles below them. A loop keeps them so; they begin as what it will make
/// of them.
pub(super) fn roles() -> Vec<Value> {
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
    let (view_rules, edit_rules) = ([view(), metrics()].concat(), [edit(), metrics(), view()].concat());
    let mut reader = role("system:aggregated-metrics-reader", metrics());
    for sum in ["admin", "edit", "view"] {
        reader["metadata"]["labels"][format!("{AGGREGATE}{sum}")] = json!("true");
    }
    let admin_rules = [admin(), edit_rules.clone()].concat();
    vec![
        reader,
        part("admin", admin()),
        part("edit", edit()),
        part("view", view()),
        sums("admin", None, admin_rules),
        sums("edit", Some("admin"), edit_rules),
        sums("view", Some("edit"), view_rules),
    ]
}

/// As metrics-server's manifest has it.
fn metrics() -> Vec<Value> {
    vec![rule(READ, &["metrics.k8s.io"], &["nodes", "pods"])]
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
        rule(WRITE, &["corten.dev"], &["verticalpodautoscalers"]),
        rule(WRITE, &["batch"], &["cronjobs", "jobs"]),
        rule(
            WRITE,
            &["extensions"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "ingresses",
                "networkpolicies",
                "replicasets",
                "replicasets/scale",
                "replicationcontrollers/scale",
            ],
        ),
        rule(WRITE, &["policy"], &["poddisruptionbudgets"]),
        rule(WRITE, &["networking.k8s.io"], &["ingresses", "networkpolicies"]),
        rule(ALL, &["coordination.k8s.io"], &["leases"]),
        rule(WRITE, &["resource.k8s.io"], &["resourceclaims", "resourceclaimtemplates"]),
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
        rule(READ, &["corten.dev"], &["verticalpodautoscalers", "verticalpodautoscalers/status"]),
        rule(READ, &["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
        rule(
            READ,
            &["extensions"],
            &[
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "ingresses",
                "ingresses/status",
                "networkpolicies",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "replicationcontrollers/scale",
            ],
        ),
        rule(READ, &["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
        rule(READ, &["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"]),
        rule(READ, &["resource.k8s.io"], &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]),
        // Corten's own: whoever sees an object may see what the loops say of it.
        rule(&["get", "list"], &["corten.dev"], &["journals"]),
    ]
}
