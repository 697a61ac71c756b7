//! RFC 7386: objects merge, null deletes, anything else replaces.

use serde_json::{Map, Value};

pub fn merge(original: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut merged = match original {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    for (name, change) in changes {
        if change.is_null() {
            merged.shift_remove(name);
            continue;
        }
        let before = merged.get_mut(name).map_or(Value::Null, Value::take);
        merged.insert(name.clone(), merge(before, change));
    }
    Value::Object(merged)
}
