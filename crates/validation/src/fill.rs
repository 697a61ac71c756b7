//! How defaults get into an object, and when two objects mean the same.

use serde_json::{Map, Value};

pub type Object = Map<String, Value>;

/// Sets `field` where the author left it out. Empty text counts as left out, as it does for Kubernetes's decoder.
pub fn fill(object: &mut Object, field: &str, value: impl Into<Value>) {
    if is_absent(object, field) {
        object.insert(field.to_owned(), value.into());
    }
}

/// As [`fill`], for a field that is a pointer in Go: empty text is a value there, which validation judges.
pub fn fill_pointer(object: &mut Object, field: &str, value: impl Into<Value>) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
}

pub fn is_absent(object: &Object, field: &str) -> bool {
    match object.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

/// The object in `field`, if there is one.
pub fn inner<'v>(object: &'v mut Object, field: &str) -> Option<&'v mut Object> {
    object.get_mut(field)?.as_object_mut()
}

/// The object in `field`, made where it is absent; `None` where something else is there.
pub fn made<'v>(object: &'v mut Object, field: &str) -> Option<&'v mut Object> {
    fill(object, field, Object::new());
    inner(object, field)
}

/// The objects in the list of `field`.
pub fn each<'v>(object: &'v mut Object, field: &str) -> impl Iterator<Item = &'v mut Object> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

pub fn text<'v>(object: &'v Object, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Do both mean the same? What a Go client leaves out when it writes (empty text, lists and maps, `false`) counts as absent.
pub fn means_the_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(name, value)| means_the_same(value, b.get(name).unwrap_or(&Value::Null)))
                && b.iter().all(|(name, value)| a.contains_key(name) || is_blank(value))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| means_the_same(a, b)),
        (a, b) => a == b || (is_blank(a) && is_blank(b)),
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.values().all(is_blank),
        _ => false,
    }
}
