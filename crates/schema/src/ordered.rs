//! An order of all JSON values, so that a set or map can be keyed by them. Which values are the same is what serde_json says.

use std::cmp::Ordering;

use serde_json::Value;

/// A value that can be the key of a set or map.
#[derive(Clone, Copy, Debug)]
pub struct Ordered<'a>(pub &'a Value);

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Number(a), Value::Number(b)) if a == b => Ordering::Equal,
            (Value::Number(a), Value::Number(b)) => a.to_string().cmp(&b.to_string()),
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Array(a), Value::Array(b)) => a.iter().map(Ordered).cmp(b.iter().map(Ordered)),
            // Only objects of one size are gone through: a large one must not be for each small one it is compared with.
            (Value::Object(a), Value::Object(b)) => {
                a.len().cmp(&b.len()).then_with(|| entries(self.0).cmp(&entries(other.0)))
            }
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

/// The order of its fields is no part of an object.
fn entries(object: &Value) -> Vec<(&String, Ordered<'_>)> {
    let mut entries: Vec<_> =
        object.as_object().into_iter().flatten().map(|(name, value)| (name, Ordered(value))).collect();
    entries.sort_by_key(|it| it.0);
    entries
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered<'_> {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_values_are_equal_and_no_others() {
        let values = [
            json!(null),
            json!(true),
            json!(false),
            json!(1),
            json!(1.0),
            json!(-1),
            json!("1"),
            json!([]),
            json!([1]),
            json!({"a": 1, "b": 2}),
            json!({"b": 2, "a": 1}),
            json!({"a": 1}),
        ];
        for a in &values {
            for b in &values {
                assert_eq!(Ordered(a) == Ordered(b), a == b, "{a} {b}");
                assert_eq!(Ordered(a).cmp(&Ordered(b)), Ordered(b).cmp(&Ordered(a)).reverse(), "{a} {b}");
            }
        }
    }
}
