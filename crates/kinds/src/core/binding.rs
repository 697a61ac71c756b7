//! A scheduler's decision, sent to the server and never stored: it becomes the Pod's node.

use corten_api::resources::BINDINGS;
use corten_meta::{Time, Violation};
use serde_json::{Value, json};

use super::pod::annotations;
use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: BINDINGS,
    singular: "binding",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.core.v1.Binding",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &Binding,
};

struct Binding;

impl Policy for Binding {}

/// What is wrong with a Binding, wherever it is sent.
pub fn violations(binding: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let target = &binding["target"];
    if !matches!(target["kind"].as_str(), None | Some("" | "Node")) {
        let kind = target["kind"].as_str().unwrap_or_default();
        found.push(Violation::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if target["name"].as_str().unwrap_or_default().is_empty() {
        found.push(Violation::required("target.name", ""));
    }
    // The Pod gets the annotations of its Binding.
    for (key, _) in binding["metadata"]["annotations"].as_object().into_iter().flatten() {
        if let Some(what) = annotations::for_good(key) {
            found.push(Violation::forbidden(format!("metadata.annotations[{key}]"), &format!("may not add {what}")));
        }
    }
    found
}

/// The Pod with its node, and with what the Binding says besides.
pub fn bound(pod: &Value, binding: &Value, now: Time) -> Value {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    // Whoever bound it, where it was expected to go is over (KEP-5278, `ClearingNominatedNodeNameAfterBinding`).
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    for field in ["annotations", "labels"] {
        for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
            pod["metadata"][field][key.as_str()] = value.clone();
        }
    }
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now.to_string(),
    });
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let conditions = pod["status"]["conditions"].as_array_mut().expect("made a list above");
    conditions.retain(|it| it["type"] != "PodScheduled");
    conditions.push(scheduled);
    pod
}
