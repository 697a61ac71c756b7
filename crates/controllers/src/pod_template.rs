//! Pod templates: the pods made from them, which two are equal, and the hash that names a version.

use corten_api::resources;
use corten_meta::ObjectMeta;
use corten_reconcile::{Effect, Projection, Propagation};
use serde_json::{Value, json};

use crate::{ownership::controller_reference, projections::Pod};

/// The label that tells the pods of one ReplicaSet from those of its siblings. It is not part of a template's content.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

const PATCH_MARK: &str = "$patch";

/// The pod `name` that `owner` makes from its template.
pub(crate) fn pod_of<O: Projection>(template: &Value, owner: &ObjectMeta, name: &str, prefix: &str) -> Value {
    let mut metadata = json!({
        "name": name,
        "generateName": prefix,
        "namespace": owner.namespace,
        "ownerReferences": [controller_reference::<O>(owner)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if !template["metadata"][field].is_null() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] })
}

pub(crate) fn delete_pod(pod: &Pod) -> Effect {
    Effect::Delete {
        resource: resources::PODS,
        key: pod.metadata.key(),
        uid: pod.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

/// Are they the same version of the pod? The hash label is not part of it, nor is the mark of a revision's patch.
pub(crate) fn are_equal(a: &Value, b: &Value) -> bool {
    canonical(a) == canonical(b)
}

/// The name of a template, which depends on nothing but its content and the number of past collisions.
///
/// As in `ComputeHash`: the decimal digits of a 32-bit number, written in the characters names are made of.
pub(crate) fn hash(template: &Value, collision_count: i64) -> String {
    let text = format!("{}#{collision_count}", canonical(template));
    let hash = corten_meta::stable_hash(text.as_bytes());
    // FNV's low bits change most evenly; folding keeps the high ones from being lost.
    let folded = (hash ^ (hash >> 32)) & u64::from(u32::MAX);
    const DIGITS: &[u8; 10] = b"456789bcdf";
    folded.to_string().bytes().map(|it| char::from(DIGITS[usize::from(it - b'0')])).collect()
}

/// With members in name order, without nulls (which mean absent) and without the hash label.
fn canonical(template: &Value) -> String {
    let mut text = String::new();
    write(template, &mut Vec::new(), &mut text);
    text
}

fn write<'a>(value: &'a Value, path: &mut Vec<&'a str>, text: &mut String) {
    match value {
        Value::Object(map) => {
            let is_labels = **path == ["metadata", "labels"];
            let is_left_out = |name: &str| (is_labels && name == HASH_LABEL) || (path.is_empty() && name == PATCH_MARK);
            let mut members: Vec<_> = map.iter().filter(|it| !it.1.is_null() && !is_left_out(it.0)).collect();
            members.sort_by_key(|it| it.0);
            text.push('{');
            for (name, value) in members {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                path.push(name);
                write(value, path, text);
                path.pop();
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            path.push("[]");
            for value in list {
                write(value, path, text);
                text.push(',');
            }
            path.pop();
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
