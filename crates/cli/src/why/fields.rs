//! What an object says, read by paths into its JSON.

use corten_meta::Time;
use serde_json::Value;

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn time(value: &Value) -> Option<Time> {
    value.as_str().and_then(|it| it.parse::<Time>().ok())
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The condition of this type in an object's status.
pub(super) fn condition<'a>(object: &'a Value, r#type: &str) -> Option<&'a Value> {
    items(object, "/status/conditions").iter().find(|it| it["type"] == r#type)
}

/// The object's key.
pub(super) fn key_of(object: &Value) -> corten_meta::Key {
    corten_meta::Key::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}
