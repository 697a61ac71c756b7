//! The nodes and Pods of upstream's scheduler_perf.

use serde_json::{Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// The namespaces that the terms of affinity name.
const NAMESPACES: [&str; 2] = ["sched-1", "sched-0"];

/// A node of 4 processors and 32 GiB, in a zone where one is named.
pub(super) fn node(name: &str, zone: &str, n_pods: usize) -> Value {
    let mut labels = json!({ HOSTNAME: name });
    if !zone.is_empty() {
        labels[ZONE] = zone.into();
    }
    let amounts = json!({ "pods": n_pods.to_string(), "cpu": "4", "memory": "32Gi" });
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": { "name": name, "labels": labels },
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    })
}

/// What a Pod is like, its name and its namespace aside.
#[derive(Clone, Copy)]
pub(super) enum Template {
    Default,
    /// It takes 900m of a node's 4 processors.
    LowPriority,
    /// It takes 3 processors, and has priority 10.
    HighPriority,
    /// It takes 9 processors, which no node has, and has priority 10.
    TooLarge,
    Affinity,
    AntiAffinity,
    PreferredAffinity,
    PreferredAntiAffinity,
    Spread,
    PreferredSpread,
    /// As of a DaemonSet: for one node, by its name.
    ForNode(&'static str),
    /// One of so many in the gang.
    OfGang(usize),
    /// It takes the port 80 of its node.
    HostPort,
}

impl Template {
    pub(super) fn pod(self, namespace: &str, name: &str, idx: usize) -> Value {
        let metadata = json!({ "name": name, "namespace": namespace, "labels": self.labels() });
        json!({ "kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": self.spec(idx) })
    }

    fn labels(self) -> Value {
        match self {
            Self::Affinity | Self::Spread | Self::PreferredSpread => json!({ "color": "blue" }),
            Self::AntiAffinity => json!({ "color": "green" }),
            Self::PreferredAffinity => json!({ "color": "red" }),
            Self::PreferredAntiAffinity => json!({ "color": "yellow" }),
            _ => json!({}),
        }
    }

    fn spec(self, idx: usize) -> Value {
        let (cpu, memory) = match self {
            Self::LowPriority => ("900m", "500Mi"),
            Self::HighPriority => ("3", "500Mi"),
            Self::TooLarge => ("9", "500Mi"),
            Self::OfGang(_) => ("100m", "100Mi"),
            _ => ("100m", "500Mi"),
        };
        let port = json!({ "containerPort": 80 });
        let mut container = json!({
            "name": "pause", "image": "registry.k8s.io/pause:3.10.1", "ports": [port],
            "resources": { "requests": { "cpu": cpu, "memory": memory } },
        });
        let mut spec = json!({});
        match self {
            Self::HighPriority | Self::TooLarge => spec["priority"] = 10.into(),
            Self::ForNode(name) => {
                container = json!({ "name": "pause", "image": "registry.k8s.io/pause:3.10.1" });
                spec["affinity"] = for_node(name);
            }
            Self::OfGang(size) => spec["schedulingGroup"] = json!({ "podGroupName": format!("gang-{}", idx / size) }),
            Self::HostPort => container["ports"][0]["hostPort"] = 80.into(),
            Self::Spread => spec["topologySpreadConstraints"] = spread("DoNotSchedule"),
            Self::PreferredSpread => spec["topologySpreadConstraints"] = spread("ScheduleAnyway"),
            _ => {}
        }
        if let Some(affinity) = self.affinity() {
            spec["affinity"] = affinity;
        }
        spec["containers"] = json!([container]);
        spec
    }

    fn affinity(self) -> Option<Value> {
        let term = |color: &str, key: &str| json!({ "labelSelector": { "matchLabels": { "color": color } }, "topologyKey": key, "namespaces": NAMESPACES });
        let required = |term: Value| json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
        let preferred = |term: Value| json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": term }] });
        match self {
            Self::Affinity => Some(json!({ "podAffinity": required(term("blue", ZONE)) })),
            Self::AntiAffinity => Some(json!({ "podAntiAffinity": required(term("green", HOSTNAME)) })),
            Self::PreferredAffinity => Some(json!({ "podAffinity": preferred(term("red", HOSTNAME)) })),
            Self::PreferredAntiAffinity => Some(json!({ "podAntiAffinity": preferred(term("yellow", HOSTNAME)) })),
            _ => None,
        }
    }
}

fn for_node(name: &str) -> Value {
    let field = json!({ "key": "metadata.name", "operator": "In", "values": [name] });
    let terms = json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } })
}

fn spread(when_unsatisfiable: &str) -> Value {
    json!([{
        "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": { "matchLabels": { "color": "blue" } },
    }])
}

pub(super) fn pod_group(name: &str, namespace: &str, size: usize) -> Value {
    let policy = json!({ "gang": { "minCount": size } });
    json!({ "metadata": { "name": name, "namespace": namespace, "uid": name }, "spec": { "schedulingPolicy": policy } })
}
