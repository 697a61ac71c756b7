//! What there are many of. Each is the same by its number, and says what the one says whose number is `like`.

use std::net::Ipv4Addr;

use corten_meta::Key;
use corten_netpolicy::PodSandbox;
use serde_json::{Value, json};

pub(super) const NAMESPACES: usize = 100;
/// Of so many Pods one is on this node: of 5,000 as many as its range has addresses, some of each namespace.
pub(super) const NODES: usize = 20;
/// What Pods of one namespace are called by policies. Each Pod is chosen by some of its namespace's.
const APPS: usize = 10;
const CHOSEN_APPS: usize = 4;
/// The node whose policies are laid.
pub(super) const HERE: &str = "n0";

pub(super) fn is_here(n: usize) -> bool {
    let of_namespace = n / NAMESPACES;
    (n + of_namespace + of_namespace / NODES).is_multiple_of(NODES)
}

pub(super) fn namespace_name(n: usize) -> String {
    format!("ns-{}", n % NAMESPACES)
}

pub(super) fn pod_name(n: usize) -> String {
    format!("pod-{n}")
}

pub(super) fn policy_name(n: usize) -> String {
    format!("p{n}")
}

fn app(n: usize) -> String {
    format!("a{}", n % APPS)
}

fn address(n: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0af4_0002 + u32::try_from(n).expect("Pods are few"))
}

pub(super) fn plugged(n: usize, uid: &str) -> PodSandbox {
    PodSandbox {
        sandbox: pod_name(n),
        pod: Key::new(namespace_name(n), pod_name(n)),
        uid: uid.to_owned(),
        addresses: vec![address(n).into()],
        labels: None,
    }
}

pub(super) fn namespace(n: usize) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": namespace_name(n), "labels": {"team": format!("t{}", n % 10)}},
    })
}

pub(super) fn pod(n: usize, like: usize) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": pod_name(n), "namespace": namespace_name(n), "uid": pod_name(n),
            "labels": {"app": app(like / NAMESPACES), "tier": format!("t{}", like % 7)},
        },
        "spec": {
            "nodeName": if is_here(n) { HERE.to_owned() } else { format!("n{}", 1 + n % (NODES - 1)) },
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "main", "image": "registry.example/main:1", "ports": [{"name": "http", "containerPort": 8080}],
            }],
        },
        "status": {"phase": "Running", "podIP": address(n), "podIPs": [{"ip": address(n)}]},
    })
}

/// Peers of the namespace and of others, named and numbered ports, and what lies outside.
pub(super) fn policy(n: usize, like: usize) -> Value {
    let elsewhere = json!({
        "namespaceSelector": {"matchLabels": {"team": format!("t{}", like % 10)}},
        "podSelector": {"matchLabels": {"app": app(like / NAMESPACES)}},
    });
    let chosen: Vec<String> = (0..CHOSEN_APPS).map(|it| app(n / NAMESPACES + it)).collect();
    let outside = json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": [format!("10.{}.0.0/16", like % 200)]}});
    json!({
        "kind": "NetworkPolicy", "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": policy_name(n), "namespace": namespace_name(n)},
        "spec": {
            "podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": chosen}]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{
                "from": [{"podSelector": {"matchLabels": {"tier": format!("t{}", like % 7)}}}, elsewhere],
                "ports": [{"port": "http"}, {"port": 443}],
            }],
            "egress": [{"to": [outside]}, {"to": [{"podSelector": {}}]}],
        },
    })
}
