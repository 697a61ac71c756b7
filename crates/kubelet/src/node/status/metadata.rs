//! What a Node is labelled with, and what it says of its machine beside its status.

use std::collections::BTreeMap;

use corten_api::core::v1::Node;
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
    let said = node.metadata.annotations.as_ref().and_then(|it| it.get(LACKS)).map_or("", String::as_str);
    let lacks = facts.lacks.join(",");
    if said != lacks {
        patch["metadata"]["annotations"] = json!({ LACKS: Some(lacks).filter(|it| !it.is_empty()) });
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
    if !facts.lacks.is_empty() {
        annotations[LACKS] = json!(facts.lacks.join(","));
    }
    annotations
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
}
