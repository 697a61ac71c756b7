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

/// Can a custom resource be shown as a Scale? (`scaleFromCustomResource`)
///
/// # Errors
/// Something else stands where a number or a text is to be found, or on the way there: in upstream's words.
pub fn check(kind: &Kind, object: &Value) -> Result<(), String> {
    let Some(scale) = scale_paths(kind) else { return Ok(()) };
    for path in [&scale.spec_replicas, &scale.status_replicas] {
        expect(object, path, "int64", Value::is_i64)?;
    }
    expect(object, &scale.selector, "string", Value::is_string)
}

/// As `NestedFieldNoCopy`, and what reads its answer.
fn expect(object: &Value, path: &[String], expected: &str, is_so: fn(&Value) -> bool) -> Result<(), String> {
    if path.is_empty() {
        return Ok(());
    }
    let error = |n_names: usize, found: &Value, expected: &str| {
        let at = path[..n_names].join(".");
        Err(format!(".{at} accessor error: {found} is of the type {}, expected {expected}", go_type(found)))
    };
    let mut value = object;
    for (idx, name) in path.iter().enumerate() {
        if value.is_null() {
            return Ok(());
        }
        let Some(entries) = value.as_object() else { return error(idx + 1, value, "map[string]interface{}") };
        let Some(found) = entries.get(name) else { return Ok(()) };
        value = found;
    }
    if is_so(value) { Ok(()) } else { error(path.len(), value, expected) }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(it) if it.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// As `SetNestedField`.
///
/// # Errors
/// Something that is no object stands in the way.
pub fn set_replicas(kind: &Kind, object: &mut Value, replicas: i64) -> Result<(), String> {
    let path = place_of(kind);
    let mut value = object;
    for (idx, name) in path.iter().enumerate() {
        let Some(entries) = value.as_object_mut() else {
            let at = path[..idx].join(".");
            return Err(format!("value cannot be set because .{at} is not a map[string]interface{{}}"));
        };
        let missing = if idx + 1 < path.len() { json!({}) } else { Value::Null };
        value = entries.entry(*name).or_insert(missing);
    }
    *value = replicas.into();
    Ok(())
}

pub fn scale_of(kind: &Kind, object: &Value) -> Value {
    let meta = &object["metadata"];
    let count = |path: &[&str]| int32(walked(object, path).and_then(Value::as_i64).unwrap_or_default());
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

/// The fields of a Scale are of 32 bits: as Go converts to those.
fn int32(number: i64) -> i64 {
    let low = number.rem_euclid(1 << 32);
    if low < 1 << 31 { low } else { low - (1 << 32) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_with_its_path() {
        let path = ["spec".to_owned(), "replicas".to_owned()];
        let told = |object: Value| expect(&object, &path, "int64", Value::is_i64).err().unwrap_or_default();
        for (object, error) in [
            (json!({}), ""),
            (json!({ "spec": null }), ""),
            (json!({ "spec": { "replicas": 3 } }), ""),
            (
                json!({ "spec": [1] }),
                ".spec.replicas accessor error: [1] is of the type []interface {}, expected map[string]interface{}",
            ),
            (
                json!({ "spec": { "replicas": 1.5 } }),
                ".spec.replicas accessor error: 1.5 is of the type float64, expected int64",
            ),
        ] {
            assert_eq!(told(object), error);
        }
    }

    #[test]
    fn numbers_are_cut_to_32_bits() {
        assert_eq!([3, -1, 1 << 31, (1 << 32) + 7].map(int32), [3, -1, -(1 << 31), 7]);
    }
}
