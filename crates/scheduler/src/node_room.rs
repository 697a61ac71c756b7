//! Has a node room for one more pod? By the rules of NodeResourcesFit and NodePorts, for whoever commits the bindings of all
//! schedulers.
//!
//! Less is known there than a scheduler knows. What a node does not say that it has is not counted: somebody else hands it out, or the
//! node has not begun.

use std::collections::BTreeMap;

use corten_api::scheduling::Amounts as _;
use serde::Deserialize;

use crate::{
    pod_info::HostPort,
    projections::{NodeStatus, Pod},
    requests::{self, Amounts},
};

/// What a node says that it has. The default is of one that says nothing, and has room for all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "StatusOfNode")]
pub struct NodeCapacity {
    amounts: Amounts,
    pods_max: usize,
    says_nothing: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusOfNode {
    status: NodeStatus,
}

impl Default for NodeCapacity {
    fn default() -> Self {
        StatusOfNode::default().into()
    }
}

impl From<StatusOfNode> for NodeCapacity {
    fn from(node: StatusOfNode) -> Self {
        let allocatable = node.status.allocatable;
        let mut amounts = Amounts::of(&allocatable);
        let unbounded_unless_named = |amount: &mut i64, name: &str| {
            if !allocatable.contains_key(name) {
                *amount = i64::MAX;
            }
        };
        unbounded_unless_named(&mut amounts.cpu_millis, "cpu");
        unbounded_unless_named(&mut amounts.memory_bytes, "memory");
        unbounded_unless_named(&mut amounts.ephemeral_storage_bytes, "ephemeral-storage");
        let pods_max = allocatable.get("pods").map_or(usize::MAX, |it| usize::try_from(it.value()).unwrap_or(0));
        Self { amounts, pods_max, says_nothing: allocatable.is_empty() }
    }
}

impl NodeCapacity {
    /// Has it room for all, because it does not say yet what it has?
    pub fn says_nothing(&self) -> bool {
        self.says_nothing
    }
}

/// What a pod takes of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Pod")]
pub struct PodDemand {
    node: String,
    requested: Amounts,
    ports: Vec<HostPort>,
}

impl From<Pod> for PodDemand {
    fn from(pod: Pod) -> Self {
        let has_ended = matches!(&*pod.status.phase, "Succeeded" | "Failed");
        let (requested, ports) = (requests::requested(&pod), HostPort::of(&pod));
        Self { node: if has_ended { String::new() } else { pod.spec.node_name }, requested, ports }
    }
}

impl PodDemand {
    /// The node of which it takes that; empty where it has none, or has ended.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What a node has too little of for this pod, beside those that it has; nothing where it fits.
    pub fn shortages<'d>(&self, capacity: &NodeCapacity, others: impl IntoIterator<Item = &'d Self>) -> Vec<String> {
        if capacity.says_nothing {
            return Vec::new();
        }
        // Of extended resources only those that are wanted are added up: the others may have thousands.
        let extended = self.requested.extended.keys().map(|it| (it.clone(), 0)).collect();
        let mut used = Amounts { extended, ..Amounts::default() };
        let (mut n_pods, mut ports) = (0, BTreeMap::new());
        for other in others {
            n_pods += 1;
            used.add_of_same_name(&other.requested);
            if !self.ports.is_empty() {
                ports.extend(other.ports.iter().map(|it| (it.clone(), 1)));
            }
        }
        let mut short = Vec::new();
        if n_pods >= capacity.pods_max {
            short.push("too many pods".to_owned());
        }
        // One of which the node has none may be a device's: whoever hands those out says whether there are any.
        let is_counted = |name: &str| {
            capacity.amounts.extended.get(name).is_some_and(|it| *it > 0 || name.starts_with("hugepages-"))
        };
        requests::for_each_lack(&self.requested, &capacity.amounts, &used, is_counted, |it| {
            short.push(format!("insufficient {}", it.resource));
        });
        let taken = self.ports.iter().filter(|it| it.collides_with_any(&ports));
        short.extend(taken.map(|it| format!("host port {}/{} is taken", it.port, it.protocol)));
        short
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn capacity(allocatable: &Value) -> NodeCapacity {
        serde_json::from_value(json!({ "status": { "allocatable": allocatable } })).expect("a node")
    }

    fn demand(spec: &Value) -> PodDemand {
        serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": spec })).expect("a pod")
    }

    fn asking(requests: &Value) -> Value {
        json!({ "nodeName": "n", "containers": [{ "name": "c", "resources": { "requests": requests } }] })
    }

    fn with_port(port: &Value) -> Value {
        json!({ "nodeName": "n", "containers": [{ "name": "c", "ports": [port] }] })
    }

    #[test]
    fn what_is_short_is_said() {
        let full =
            json!({ "cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": "2", "example.com/gpu": "1" });
        let ports = |ip: &str, protocol: &str| {
            with_port(&json!({ "containerPort": 1, "hostPort": 80, "hostIP": ip, "protocol": protocol }))
        };
        let small = asking(&json!({ "cpu": "600m" }));
        let overhead = json!({ "containers": [], "overhead": { "cpu": "500m" } });
        let as_a_whole = json!({ "containers": [{ "name": "c" }], "resources": { "requests": { "memory": "2Gi" } } });
        let init = json!({ "containers": [], "initContainers": [{ "name": "i", "resources": { "requests": { "cpu": "500m" } } }] });
        for (allocatable, there, wanted, expected) in [
            (&full, vec![], asking(&json!({ "cpu": "1" })), &[][..]),
            (&full, vec![&small], asking(&json!({ "cpu": "400m" })), &[]),
            (
                &full,
                vec![&small],
                asking(&json!({ "cpu": "401m", "memory": "2Gi" })),
                &["insufficient cpu", "insufficient memory"],
            ),
            (&full, vec![&small], overhead, &["insufficient cpu"]),
            (&full, vec![&small], init, &["insufficient cpu"]),
            (&full, vec![], as_a_whole, &["insufficient memory"]),
            (&full, vec![], asking(&json!({ "ephemeral-storage": "2Gi" })), &["insufficient ephemeral-storage"]),
            (&full, vec![&small; 2], asking(&json!({})), &["too many pods"]),
            (&full, vec![], asking(&json!({ "example.com/gpu": "2" })), &["insufficient example.com/gpu"]),
            // A claim for devices may be made for it, or an extender hands it out.
            (&full, vec![], asking(&json!({ "example.com/other": "2" })), &[]),
            // It does not say yet what it has, or not of all.
            (&json!({}), vec![&small; 3], asking(&json!({ "cpu": "9", "example.com/gpu": "2" })), &[]),
            (&json!({ "memory": "1Gi" }), vec![&small; 3], asking(&json!({ "cpu": "9" })), &[]),
            (&json!({ "memory": "1Gi" }), vec![], asking(&json!({ "memory": "2Gi" })), &["insufficient memory"]),
            (
                &json!({ "cpu": "0", "pods": "0" }),
                vec![],
                asking(&json!({ "cpu": "1" })),
                &["too many pods", "insufficient cpu"],
            ),
            (&full, vec![&ports("", "TCP")], ports("10.0.0.1", "TCP"), &["host port 80/TCP is taken"]),
            (&full, vec![&ports("10.0.0.1", "TCP")], ports("10.0.0.2", "TCP"), &[]),
            (&full, vec![&ports("", "TCP")], ports("", "UDP"), &[]),
        ] {
            let there: Vec<PodDemand> = there.into_iter().map(demand).collect();
            let found = demand(&wanted).shortages(&capacity(allocatable), &there);
            assert_eq!(found, expected, "{allocatable} {wanted}");
        }
    }

    #[test]
    fn what_has_ended_takes_nothing() {
        for (phase, node) in [("", "n"), ("Running", "n"), ("Succeeded", ""), ("Failed", "")] {
            let pod = json!({ "metadata": { "name": "p" }, "spec": { "nodeName": "n" }, "status": { "phase": phase } });
            let demand: PodDemand = serde_json::from_value(pod).expect("a pod");
            assert_eq!(demand.node(), node, "{phase}");
        }
    }
}
