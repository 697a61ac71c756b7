//! An object as its Scale, and back.

use corten_meta::LabelSelector;
use serde_json::{Value, json};

use crate::{Kind, Scale, Schema};

/// Where the object says how many replicas it wants.
pub fn place_of(kind: &Kind) -> Vec<&str> {
    match scale_paths(kind) {
        Some(scale) => scale.spec_replicas.iter().map(String::as_str).collect(),
        None => vec!["spec", "replicas"],
    }
}

/// What a definition says of its objects' scale.
fn scale_paths(kind: &Kind) -> Option<&Scale> {
    match &kind.schema {
        Schema::Structural(schema) => schema.scale.as_ref(),
        Schema::Table(_) => None,
    }
}

pub fn walked<'v>(object: &'v Value, path: &[impl AsRef<str>]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name.as_ref()))
}

pub fn set_replicas(kind: &Kind, object: &mut Value, replicas: i64) {
    let mut value = object;
    for name in place_of(kind) {
        if !value.is_object() {
            *value = json!({});
        }
        value = &mut value[name];
    }
    *value = replicas.into();
}

pub fn scale_of(kind: &Kind, object: &Value) -> Value {
    let meta = &object["metadata"];
    let count = |path: &[&str]| walked(object, path).and_then(Value::as_i64).unwrap_or_default();
    let (in_status, selector) = match scale_paths(kind) {
        Some(scale) => {
            let selector = walked(object, &scale.selector).filter(|_| !scale.selector.is_empty());
            let text = selector.and_then(Value::as_str).unwrap_or_default().to_owned();
            (scale.status_replicas.iter().map(String::as_str).collect(), text)
        }
        None => (vec!["status", "replicas"], selector_of(object).to_string()),
    };
    let mut status = json!({ "replicas": count(&in_status) });
    // `omitempty`
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": { "replicas": count(&place_of(kind)) },
        "status": status,
    })
}

/// A ReplicationController's selector is older: labels alone.
fn selector_of(object: &Value) -> LabelSelector {
    let selector = object["spec"]["selector"].clone();
    if object["kind"] == "ReplicationController" {
        let match_labels = serde_json::from_value(selector).unwrap_or_default();
        return LabelSelector { match_labels, ..LabelSelector::default() };
    }
    serde_json::from_value(selector).unwrap_or_default()
}
