//! What a converted object must be, and what of it a webhook may change: all but its metadata, and of that labels and annotations
//! (`validateConvertedObject` and `restoreObjectMeta` of apiextensions-apiserver).

use corten_cacher::body::BODY_BYTES_MAX;
use corten_meta::{
    Resource, Violation, aggregate,
    depth::{self, LEVELS_MAX},
    field,
};
use serde_json::{Map, Value};

const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// What is wrong with a converted object.
pub(crate) enum Unfit {
    Object(String),
    Metadata(String),
}

/// The converted object with the metadata of the original.
///
/// # Errors
/// It is not the original in the wanted version.
pub(crate) fn restored(original: &Value, mut converted: Value, to: &Resource) -> Result<Value, Unfit> {
    identity(original, &converted, to).map_err(Unfit::Object)?;
    if !depth::fits(&converted, LEVELS_MAX) {
        return Err(Unfit::Object(format!("nested more than {LEVELS_MAX} levels deep")));
    }
    if converted.to_string().len() > BODY_BYTES_MAX {
        return Err(Unfit::Object(format!("larger than {BODY_BYTES_MAX} bytes")));
    }
    let given = match &mut converted["metadata"] {
        Value::Null => return Err(Unfit::Metadata("missing metadata in converted object".into())),
        Value::Object(metadata) => std::mem::take(metadata),
        _ => return Err(Unfit::Metadata("invalid metadata of another type than object in converted object".into())),
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        take(&mut metadata, given.get(name), name).map_err(Unfit::Metadata)?;
    }
    converted["metadata"] = Value::Object(metadata);
    Ok(converted)
}

fn identity(original: &Value, converted: &Value, to: &Resource) -> Result<(), String> {
    let text = |object: &Value, name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(converted, "apiVersion"), text(converted, "kind"));
    if api_version != to.api_version() {
        return Err(format!("invalid groupVersion (expected {}, received {api_version})", to.api_version()));
    }
    if kind != *to.kind {
        return Err(format!("invalid kind (expected {}, received {kind})", to.kind));
    }
    for (field, called) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (is, has) = (text(&original["metadata"], field), text(&converted["metadata"], field));
        if is != has {
            return Err(format!("must have the same {called}: {is} != {has}"));
        }
    }
    Ok(())
}

fn take(metadata: &mut Map<String, Value>, given: Option<&Value>, name: &str) -> Result<(), String> {
    let given = match given {
        None | Some(Value::Null) => {
            metadata.shift_remove(name);
            return Ok(());
        }
        Some(Value::Object(given)) => given,
        Some(_) => return Err(format!("invalid metadata.{name} of another type than object in converted object")),
    };
    if let Some((key, _)) = given.iter().find(|it| !it.1.is_string()) {
        return Err(format!("metadata.{name}[{key}] must be a string, but is none in converted object"));
    }
    if metadata.get(name).and_then(Value::as_object) == Some(given) {
        return Ok(());
    }
    let found = violations(given, name);
    if let Some(found) = aggregate(found.iter().map(ToString::to_string)) {
        return Err(found);
    }
    metadata.insert(name.to_owned(), Value::Object(given.clone()));
    Ok(())
}

fn violations(given: &Map<String, Value>, name: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut bytes = 0;
    for (key, value) in given {
        let value = value.as_str().unwrap_or_default();
        bytes += key.len() + value.len();
        if name == "labels" {
            let reasons = field::qualified_name(key);
            found.extend(reasons.iter().map(|it| Violation::invalid("metadata.labels", format!("{key:?}"), it)));
            let reasons = field::label_value(value);
            found.extend(reasons.iter().map(|it| Violation::invalid("metadata.labels", format!("{value:?}"), it)));
        } else {
            let reasons = field::qualified_name(&key.to_lowercase());
            // `restoreObjectMeta` names this path.
            found.extend(reasons.iter().map(|it| Violation::invalid("metadata.annotation", format!("{key:?}"), it)));
        }
        if found.len() >= Violation::MOST {
            return found;
        }
    }
    if name == "annotations" && bytes > ANNOTATIONS_BYTES_MAX {
        found.push(Violation::too_long("metadata.annotation", ANNOTATIONS_BYTES_MAX));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TO: Resource = Resource::namespaced("example.com", "v2", "Socket", "sockets");

    fn original() -> Value {
        json!({ "apiVersion": "example.com/v1", "kind": "Socket", "metadata": { "name": "a", "namespace": "n", "uid": "u",
            "generation": 3, "finalizers": ["example.com/held"], "labels": { "a": "b" }, "annotations": { "c": "d" } } })
    }

    fn converted(change: impl FnOnce(&mut Value)) -> Result<Value, Unfit> {
        let mut object = original();
        object["apiVersion"] = "example.com/v2".into();
        change(&mut object);
        restored(&original(), object, &TO)
    }

    #[test]
    fn of_metadata_labels_and_annotations_are_the_webhooks() {
        let of = |change: fn(&mut Value)| {
            let found = converted(|it| change(&mut it["metadata"])).ok().expect("it fits");
            assert_eq!(
                (&found["metadata"]["generation"], &found["metadata"]["finalizers"][0]),
                (&json!(3), &json!("example.com/held"))
            );
            (found["metadata"]["labels"].clone(), found["metadata"]["annotations"].clone())
        };
        let (labels, annotations) = (json!({ "a": "b" }), json!({ "c": "d" }));
        assert_eq!(of(|_| {}), (labels.clone(), annotations.clone()));
        assert_eq!(of(|it| it["generation"] = 9.into()), (labels.clone(), annotations.clone()));
        assert_eq!(of(|it| it["finalizers"] = json!([])), (labels.clone(), annotations.clone()));
        assert_eq!(of(|it| it["labels"] = Value::Null), (Value::Null, annotations.clone()));
        assert_eq!(of(|it| it["annotations"] = json!({ "e": "f" })), (labels, json!({ "e": "f" })));
    }

    #[test]
    fn what_is_not_the_object_in_the_wanted_version_is_refused() {
        let deep = (0..2 * LEVELS_MAX).fold(json!(1), |it, _| json!([it]));
        let long = json!({ "long": "x".repeat(ANNOTATIONS_BYTES_MAX) });
        for (pointer, value, expected) in [
            (
                "/apiVersion",
                json!("example.com/v1"),
                "invalid groupVersion (expected example.com/v2, received example.com/v1)",
            ),
            ("/kind", json!("Other"), "invalid kind (expected Socket, received Other)"),
            ("/metadata/name", json!("b"), "must have the same name: a != b"),
            ("/metadata/namespace", Value::Null, "must have the same namespace: n != "),
            ("/metadata/uid", json!("v"), "must have the same UID: u != v"),
            ("/metadata/labels", json!([]), "invalid metadata.labels of another type than object"),
            ("/metadata/labels", json!({ "a": 1 }), "metadata.labels[a] must be a string"),
            ("/metadata/labels", json!({ "a b": "c" }), "metadata.labels: Invalid value: \"a b\""),
            ("/metadata/labels", json!({ "a": "b c" }), "metadata.labels: Invalid value: \"b c\""),
            ("/metadata/annotations", json!({ "A/b/c": "d" }), "metadata.annotation: Invalid value"),
            ("/metadata/annotations", long, "metadata.annotation: Too long"),
            ("/metadata/generation", deep, "levels deep"),
            ("/metadata/generation", json!("x".repeat(BODY_BYTES_MAX)), "larger than"),
        ] {
            let found = converted(|it| *it.pointer_mut(pointer).expect("it is there") = value);
            let reason = match found {
                Ok(found) => panic!("{pointer}: {found}"),
                Err(Unfit::Object(reason) | Unfit::Metadata(reason)) => reason,
            };
            assert!(reason.contains(expected), "{pointer}: {reason}");
        }
    }
}
