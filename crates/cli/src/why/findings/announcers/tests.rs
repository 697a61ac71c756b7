use serde_json::json;

use super::*;

/// `n1`, `n1!` (not ready), `n1-` (excluded), `n1~` (on its way out).
fn node(text: &str) -> Value {
    let name = text.trim_end_matches(['!', '-', '~']);
    let mut node = json!({
        "metadata": {"name": name},
        "status": {
            "addresses": [{"type": "InternalIP", "address": format!("192.168.0.{}", &name[1..])}],
            "conditions": [{"type": "Ready", "status": if text.ends_with('!') { "Unknown" } else { "True" }}],
        },
    });
    if text.ends_with('-') {
        node["metadata"]["labels"] = json!({EXCLUDED: ""});
    }
    if text.ends_with('~') {
        node["metadata"]["deletionTimestamp"] = json!("2026-11-26T10:00:00Z");
    }
    node
}

/// `n1`, `n1!` (not ready), `n1~` (ends and serves).
fn slice(endpoints: &str) -> Value {
    let endpoint = |text: &str| {
        let conditions = match text.chars().last() {
            Some('!') => json!({"ready": false, "serving": false}),
            Some('~') => json!({"ready": false, "serving": true, "terminating": true}),
            _ => json!({}),
        };
        json!({"nodeName": text.trim_end_matches(['!', '~']), "conditions": conditions})
    };
    json!({"endpoints": endpoints.split_whitespace().map(endpoint).collect::<Vec<_>>()})
}

/// The rows are those of `corten_proxy::announcements`; whether another one is ready is only told here.
#[test]
fn one_node_answers_as_the_nodes_say_themselves() {
    for (policy, nodes, endpoints, expected) in [
        ("Cluster", "n1 n2 n3", "", Some(("n2", true))),
        ("Cluster", "n1 n2", "", Some(("n2", true))),
        ("Cluster", "n1 n2! n3", "", Some(("n1", true))),
        ("Cluster", "n1 n2- n3", "", Some(("n1", true))),
        ("Cluster", "n1- n2~ n3", "", Some(("n3", false))),
        ("Cluster", "n1! n2! n3!", "", Some(("n2", false))),
        ("Cluster", "n1- n2-", "", None),
        ("Cluster", "", "", None),
        ("Local", "n1 n2 n3", "n1 n3", Some(("n1", true))),
        ("Local", "n1 n2 n3", "n1 n2! n3", Some(("n1", true))),
        ("Local", "n1 n2 n3", "n3~ n2!", Some(("n3", false))),
        ("Local", "n1! n2- n3", "n1 n2 n3", Some(("n3", false))),
        ("Local", "n1 n2 n3", "", None),
    ] {
        let service = json!({"spec": {"externalTrafficPolicy": policy}});
        let nodes: Vec<Value> = nodes.split_whitespace().map(node).collect();
        let slice = slice(endpoints);
        let candidates = candidates(&service, &nodes, &[&slice]);
        let address = "10.0.0.10".parse().expect("an address");
        assert_eq!(of(&candidates, &nodes, address), expected, "{policy} {nodes:?} / {endpoints}");
        let own = "192.168.0.1".parse().expect("an address");
        assert!(nodes.is_empty() || of(&candidates, &nodes, own).is_none(), "a node's own is never another's");
    }
}

#[test]
fn only_addresses_of_the_pool_are_answered_for() {
    let addresses = |r#type: &str, class: Value, condition: &str, mode: &str| {
        let service = json!({
            "spec": {"type": r#type, "loadBalancerClass": class},
            "status": {
                "loadBalancer": {"ingress": [{"ip": "10.0.0.10", "ipMode": mode}]},
                "conditions": [{"type": condition, "status": "True"}],
            },
        });
        pool_addresses(&service).len()
    };
    for (r#type, class, condition, mode, expected) in [
        ("LoadBalancer", Value::Null, POOL_ADDRESSES, "VIP", 1),
        ("ClusterIP", Value::Null, POOL_ADDRESSES, "VIP", 0),
        ("LoadBalancer", json!("example.com/lb"), POOL_ADDRESSES, "VIP", 0),
        ("LoadBalancer", Value::Null, "Ready", "VIP", 0),
        ("LoadBalancer", Value::Null, POOL_ADDRESSES, "Proxy", 0),
    ] {
        assert_eq!(addresses(r#type, class, condition, mode), expected, "{type} {condition} {mode}");
    }
}
