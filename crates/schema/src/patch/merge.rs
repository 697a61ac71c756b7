//! RFC 7386: objects merge, null deletes, anything else replaces.

use serde_json::{Map, Value};

pub fn merge(original: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut merged = match original {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    // All at once: what stands behind each that is taken out would move up for each of them.
    if changes.values().any(Value::is_null) {
        merged.retain(|name, _| !changes.get(name).is_some_and(Value::is_null));
    }
    for (name, change) in changes.iter().filter(|it| !it.1.is_null()) {
        let before = merged.get_mut(name).map_or(Value::Null, Value::take);
        merged.insert(name.clone(), merge(before, change));
    }
    Value::Object(merged)
}
