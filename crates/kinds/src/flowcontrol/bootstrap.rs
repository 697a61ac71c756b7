//! The flow schemas and priority levels every cluster begins with. Two of each are mandatory: nobody may change them.

use serde_json::{Value, json};

/// What the server may bring up to date; `false` leaves it to the user.
pub const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// Every priority level, each with all of its fields.
pub fn priority_levels() -> Vec<Value> {
    let level = |name: &str, spec: Value| object("PriorityLevelConfiguration", name, spec);
    let queued = |name: &str, shares: i64, lendable: i64, queues: i64, hand: i64| {
        let queuing = json!({ "queues": queues, "handSize": hand, "queueLengthLimit": 50 });
        let limited = json!({ "nominalConcurrencyShares": shares, "lendablePercent": lendable,
            "limitResponse": { "type": "Queue", "queuing": queuing } });
        level(name, json!({ "type": "Limited", "limited": limited }))
    };
    let rejected =
        json!({ "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": { "type": "Reject" } });
    vec![
        level("exempt", json!({ "type": "Exempt", "exempt": { "nominalConcurrencyShares": 0, "lendablePercent": 0 } })),
        level("catch-all", json!({ "type": "Limited", "limited": rejected })),
        queued("system", 30, 33, 64, 6),
        queued("node-high", 40, 25, 64, 6),
        queued("leader-election", 10, 0, 16, 4),
        queued("workload-high", 40, 50, 128, 6),
        queued("workload-low", 100, 90, 128, 6),
        queued("global-default", 20, 50, 128, 6),
    ]
}

/// Every flow schema, in the order requests are matched.
pub fn flow_schemas() -> Vec<Value> {
    let everybody = || groups(&["system:unauthenticated", "system:authenticated"]);
    let everything = || vec![resources(&["*"], &["*"], &["*"], true)];
    let leases = || vec![resources(&["get", "create", "update"], &["coordination.k8s.io"], &["leases"], false)];
    let all_paths = || vec![paths(&["*"], &["*"])];
    let system_accounts = || account("*");
    let managers = || users(&["system:kube-controller-manager", "system:kube-scheduler"]);
    vec![
        schema("exempt", "exempt", 1, "", groups(&["system:masters"]), everything(), all_paths()),
        schema(
            "probes",
            "exempt",
            2,
            "",
            everybody(),
            Vec::new(),
            vec![paths(&["get"], &["/healthz", "/readyz", "/livez"])],
        ),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            "ByUser",
            [managers(), system_accounts()].concat(),
            leases(),
            Vec::new(),
        ),
        schema(
            "endpoint-controller",
            "workload-high",
            150,
            "ByUser",
            endpoint_writers(),
            vec![resources(&["get", "create", "update"], &[""], &["endpoints"], false)],
            Vec::new(),
        ),
        schema("workload-leader-election", "leader-election", 200, "ByUser", system_accounts(), leases(), Vec::new()),
        schema("system-node-high", "node-high", 400, "ByUser", groups(&["system:nodes"]), heartbeats(), Vec::new()),
        schema("system-nodes", "system", 500, "ByUser", groups(&["system:nodes"]), everything(), all_paths()),
        schema(
            "kube-controller-manager",
            "workload-high",
            800,
            "ByNamespace",
            users(&["system:kube-controller-manager"]),
            everything(),
            all_paths(),
        ),
        schema(
            "kube-scheduler",
            "workload-high",
            800,
            "ByNamespace",
            users(&["system:kube-scheduler"]),
            everything(),
            all_paths(),
        ),
        schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            "ByNamespace",
            system_accounts(),
            everything(),
            all_paths(),
        ),
        schema(
            "service-accounts",
            "workload-low",
            9000,
            "ByUser",
            groups(&["system:serviceaccounts"]),
            everything(),
            all_paths(),
        ),
        schema("global-default", "global-default", 9900, "ByUser", everybody(), everything(), all_paths()),
        schema("catch-all", "catch-all", 10000, "ByUser", everybody(), everything(), all_paths()),
    ]
}

fn endpoint_writers() -> Vec<Value> {
    [
        users(&["system:kube-controller-manager"]),
        account("endpoint-controller"),
        account("endpointslicemirroring-controller"),
    ]
    .concat()
}

fn heartbeats() -> Vec<Value> {
    vec![
        resources(&["*"], &[""], &["nodes", "nodes/status"], true),
        resources(&["*"], &["coordination.k8s.io"], &["leases"], false),
    ]
}

/// The spec an object of this name must have, where it is mandatory.
pub(super) fn mandatory(all: Vec<Value>, name: &str) -> Option<Value> {
    let is_it = |it: &Value| it["metadata"]["name"] == name && matches!(name, "exempt" | "catch-all");
    all.into_iter().find(is_it).map(|mut it| it["spec"].take())
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "kind": kind,
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": { "name": name, "annotations": { AUTOUPDATE: "true" } },
        "spec": spec,
    })
}

fn schema(
    name: &str,
    level: &str,
    precedence: i64,
    distinguisher: &str,
    subjects: Vec<Value>,
    resource_rules: Vec<Value>,
    path_rules: Vec<Value>,
) -> Value {
    let mut rule = json!({ "subjects": subjects });
    for (field, rules) in [("resourceRules", resource_rules), ("nonResourceRules", path_rules)] {
        if !rules.is_empty() {
            rule[field] = rules.into();
        }
    }
    let mut spec = json!({ "priorityLevelConfiguration": { "name": level }, "matchingPrecedence": precedence });
    if !distinguisher.is_empty() {
        spec["distinguisherMethod"] = json!({ "type": distinguisher });
    }
    spec["rules"] = json!([rule]);
    object("FlowSchema", name, spec)
}

fn groups(names: &[&str]) -> Vec<Value> {
    names.iter().map(|it| json!({ "kind": "Group", "group": { "name": it } })).collect()
}

fn users(names: &[&str]) -> Vec<Value> {
    names.iter().map(|it| json!({ "kind": "User", "user": { "name": it } })).collect()
}

fn account(name: &str) -> Vec<Value> {
    vec![json!({ "kind": "ServiceAccount", "serviceAccount": { "name": name, "namespace": "kube-system" } })]
}

fn resources(verbs: &[&str], groups: &[&str], resources: &[&str], cluster: bool) -> Value {
    let mut rule = json!({ "verbs": verbs, "apiGroups": groups, "resources": resources });
    if cluster {
        rule["clusterScope"] = true.into();
    }
    rule["namespaces"] = json!(["*"]);
    rule
}

fn paths(verbs: &[&str], urls: &[&str]) -> Value {
    json!({ "verbs": verbs, "nonResourceURLs": urls })
}
