//! What a Node is labelled with, and what it says of its machine beside its status.

use std::collections::BTreeMap;

use corten_api::{cluster_network::WIREGUARD_PUBLIC_KEY, core::v1::Node};
use serde_json::{Value, json};

use crate::{Config, NodeFacts};

/// The Node's annotation that names, by commas, what the machine cannot do of what Kubernetes knows.
pub const LACKS: &str = "corten.dev/machine-lacks";

/// Labels that are missing, and what the machine lacks. Taints are for others to set: the server marks a node that is new,
/// the node controller any other.
pub(super) fn metadata_patch(config: &Config, facts: &NodeFacts, node: &Node) -> Option<Value> {
    let mut patch = json!({});
    let have = node.metadata.labels.clone().unwrap_or_default();
    let missing: BTreeMap<_, _> = labels(config, facts).into_iter().filter(|(k, v)| have.get(k) != Some(v)).collect();
    if !missing.is_empty() {
        patch["metadata"]["labels"] = json!(missing);
    }
    for (name, wanted) in told(facts) {
        let said = node.metadata.annotations.as_ref().and_then(|it| it.get(name));
        if said != wanted.as_ref() {
            patch["metadata"]["annotations"][name] = json!(wanted);
        }
    }
    // The server lets them be set once.
    let has_networks = node.spec.as_ref().is_some_and(|it| it.pod_cidr.as_ref().is_some_and(|it| !it.is_empty()));
    if !has_networks && !config.pod_cidrs.is_empty() {
        patch["spec"] = pod_networks(config);
    }
    if patch == json!({}) {
        return None;
    }
    Some(patch)
}

pub(super) fn annotations(facts: &NodeFacts) -> Value {
    let mut annotations = json!({"volumes.kubernetes.io/controller-managed-attach-detach": "true"});
    for (name, value) in told(facts) {
        if let Some(value) = value {
            annotations[name] = json!(value);
        }
    }
    annotations
}

/// The annotations that follow from what the machine is; one without a value is not there.
fn told(facts: &NodeFacts) -> [(&'static str, Option<String>); 2] {
    let lacks = Some(facts.lacks.join(",")).filter(|it| !it.is_empty());
    [(LACKS, lacks), (WIREGUARD_PUBLIC_KEY, facts.wireguard_public_key.clone())]
}

pub(super) fn pod_networks(config: &Config) -> Value {
    match config.pod_cidrs.first() {
        Some(first) => json!({"podCIDR": first, "podCIDRs": config.pod_cidrs}),
        None => json!({}),
    }
}

pub(super) fn labels(config: &Config, facts: &NodeFacts) -> BTreeMap<String, String> {
    let (os, arch) = (&facts.operating_system, &facts.architecture);
    let mut labels = config.labels.clone();
    for (name, value) in [
        ("kubernetes.io/hostname", &config.hostname),
        ("kubernetes.io/os", os),
        ("kubernetes.io/arch", arch),
        ("beta.kubernetes.io/os", os),
        ("beta.kubernetes.io/arch", arch),
    ] {
        labels.insert(name.into(), value.clone());
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_is_said_of_the_node_and_taken_back() {
        let config = Config::new("one", "192.0.2.1");
        let facts = |lacks: &[&'static str]| NodeFacts { lacks: lacks.to_vec(), ..NodeFacts::default() };
        let node = |said: Option<&str>| -> Node {
            let annotations = said.map(|it| json!({ LACKS: it, "other": "stays" })).unwrap_or_default();
            let metadata = json!({"name": "one", "labels": labels(&config, &facts(&[])), "annotations": annotations});
            serde_json::from_value(json!({"metadata": metadata})).expect("a Node")
        };
        for (said, lacks, patched) in [
            (None, &[][..], None),
            (None, &["AppArmor", "IPv6"][..], Some(json!("AppArmor,IPv6"))),
            (Some("AppArmor"), &["AppArmor"][..], None),
            (Some("AppArmor"), &[][..], Some(Value::Null)),
        ] {
            let patch = metadata_patch(&config, &facts(lacks), &node(said));
            let expected = patched.map(|it| json!({"metadata": {"annotations": { LACKS: it }}}));
            assert_eq!(patch, expected, "{said:?} {lacks:?}");
        }
    }

    #[test]
    fn the_key_of_its_tunnel_is_said_of_the_node_followed_and_taken_back() {
        let config = Config::new("one", "192.0.2.1");
        let facts = |key: Option<&str>| NodeFacts { wireguard_public_key: key.map(Into::into), ..NodeFacts::default() };
        for (said, key, patched) in [
            (None, None, None),
            (None, Some("first"), Some(json!("first"))),
            (Some("first"), Some("first"), None),
            (Some("first"), Some("second"), Some(json!("second"))),
            (Some("first"), None, Some(Value::Null)),
        ] {
            let annotations = said.map(|it| json!({ WIREGUARD_PUBLIC_KEY: it })).unwrap_or_default();
            let metadata = json!({"name": "one", "labels": labels(&config, &facts(None)), "annotations": annotations});
            let node: Node = serde_json::from_value(json!({ "metadata": metadata })).expect("a Node");
            let expected = patched.map(|it| json!({"metadata": {"annotations": { WIREGUARD_PUBLIC_KEY: it }}}));
            assert_eq!(metadata_patch(&config, &facts(key), &node), expected, "{said:?} {key:?}");
        }
        assert_eq!(annotations(&facts(Some("first")))[WIREGUARD_PUBLIC_KEY], "first");
    }
}
