//! Says what differs between two values, for messages about what may not change.

use serde_json::Value;

use crate::fill::means_the_same;

/// One line for each value that differs, as `path: old -> new`.
pub fn difference(path: &str, old: &Value, new: &Value) -> String {
    let mut lines = Vec::new();
    differ(path, old, new, &mut lines);
    lines.join("\n")
}

fn differ(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    match (old, new) {
        (old, new) if means_the_same(old, new) => {}
        (Value::Object(old), Value::Object(new)) => {
            let names = old.keys().chain(new.keys().filter(|it| !old.contains_key(*it)));
            for name in names {
                let (old, new) = (old.get(name).unwrap_or(&Value::Null), new.get(name).unwrap_or(&Value::Null));
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                differ(&path, old, new, lines);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                differ(&format!("{path}[{at}]"), old, new, lines);
            }
        }
        (old, new) => lines.push(format!("{path}: {old} -> {new}")),
    }
}
