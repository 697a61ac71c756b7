//! The pod of a set on one node, and which pods are of the present version.

use corten_meta::ObjectMeta;
use serde_json::{Value, json};

use super::eligible::tolerated;
use crate::{
    names,
    pod_template::pod_of,
    projections::{DaemonSet, Pod},
};

pub(super) const HASH_LABEL: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION: &str = "deprecated.daemonset.template.generation";
/// How many pods before this one have failed on its node in a row: how long it is kept when it fails, too.
const FAILURES: &str = "corten.dev/daemon-pod-failures";

/// The node a pod is on, or is meant for.
pub(super) fn node(pod: &Pod) -> Option<&str> {
    let bound = Some(&*pod.spec.node_name).filter(|it| !it.is_empty());
    bound.or(pod.spec.only_node.as_deref())
}

/// As in `IsPodUpdated`: by the revision's hash, or by the generation of times before there were revisions.
pub(super) fn is_updated(set: &DaemonSet, hash: &str, pod: &Pod) -> bool {
    let labels = &pod.metadata.labels;
    let generation = set.metadata.annotations.get(GENERATION);
    labels.get(HASH_LABEL).is_some_and(|it| it == hash)
        || generation.is_some_and(|it| labels.get(GENERATION_LABEL) == Some(it))
}

pub(super) fn failures(meta: &ObjectMeta) -> u32 {
    meta.annotations.get(FAILURES).and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// The node that a pod which [`pod`] wrote is meant for.
pub(super) fn node_of(pod: &Value) -> Option<&str> {
    let affinity = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].as_str()
}

pub(super) fn pod(set: &DaemonSet, hash: &str, node: &str, name: &str, failures: u32) -> Value {
    let mut pod = pod_of::<DaemonSet>(&set.spec.template, &set.metadata, name, &names::prefix(&set.metadata.name));
    let metadata = &mut pod["metadata"];
    metadata["labels"][HASH_LABEL] = json!(hash);
    if let Some(generation) = set.metadata.annotations.get(GENERATION).filter(|it| it.parse::<i64>().is_ok()) {
        metadata["labels"][GENERATION_LABEL] = json!(generation);
    }
    if failures > 0 {
        metadata["annotations"][FAILURES] = json!(failures.to_string());
    }
    let spec = &mut pod["spec"];
    // As in `ReplaceDaemonSetPodNodeNameNodeAffinity`: the template's own terms have been looked at, the node is all that
    // is left to say.
    let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, effect) in tolerated(&set.spec.template) {
        let toleration = json!({ "key": key, "operator": "Exists", "effect": effect });
        let is_same =
            |it: &Value| ["key", "operator", "effect", "value"].iter().all(|field| it[field] == toleration[field]);
        match tolerations.iter_mut().find(|it| is_same(it)) {
            Some(same) => *same = toleration,
            None => tolerations.push(toleration),
        }
    }
    spec["tolerations"] = Value::Array(tolerations);
    pod
}
