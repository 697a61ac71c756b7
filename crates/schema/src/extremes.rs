//! The ends of what users may write: an object's numbers, times, quantities and percentages, as large or small as the API
//! takes them. For tests of whoever reckons with them: they come to an end, and not beyond a number's.
//!
//! What an object could have and has not is tried, too: whatever its type names in the parts that are there.

mod cases;

use serde_json::{Value, json};

pub use cases::Cases;

use crate::{Shape, Type};

/// How many ends the shape with most has.
pub const VARIANTS: usize = 5;

/// What stands at the ends; nothing for what has none.
fn ends(shape: &Shape, present: Option<&Value>) -> Vec<Value> {
    match shape {
        Shape::Int32 => vec![json!(i32::MAX), json!(i32::MIN), json!(0)],
        Shape::Int64 => vec![json!(i64::MAX), json!(i64::MIN), json!(0)],
        Shape::IntOrString => vec![
            json!(i32::MAX),
            json!("9223372036854775807%"),
            json!("99999999999999999999%"),
            json!("0%"),
            json!(i32::MIN),
        ],
        Shape::Quantity => {
            vec![json!("9223372036854775807"), json!("-9223372036854775808"), json!("9E99"), json!("1n")]
        }
        Shape::Time => vec![json!("9999-12-30T22:00:00Z"), json!("0000-01-01T00:00:00Z")],
        Shape::MicroTime => vec![json!("9999-12-30T22:00:00.999999Z"), json!("0000-01-01T00:00:00.000000Z")],
        // Numbers that stand in texts: annotations, lists of indexes.
        Shape::String => match present.and_then(Value::as_str) {
            Some(text) if text.starts_with(|it: char| it.is_ascii_digit()) => vec![
                json!(i64::MAX.to_string()),
                json!(i64::MIN.to_string()),
                json!(i32::MAX.to_string()),
                json!(format!("0-{}", i64::MAX)),
                json!(format!("{}-{}", i64::MAX, i64::MAX)),
            ],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Puts everything that has ends to its `nth` one.
pub fn put_all(kind: &'static Type, object: &mut Value, nth: usize) {
    let mut places = Vec::new();
    gather_present(&Shape::Object(kind), object, "", &mut places);
    for (path, ends) in places {
        if let Some(end) = ends.into_iter().cycle().nth(nth) {
            put(object, &path, end);
        }
    }
}

/// Every place that has ends, as a JSON pointer, with each of them.
pub fn places(kind: &'static Type, object: &Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    gather(&Shape::Object(kind), Some(object), "", &mut places);
    places
}

fn gather_present(shape: &Shape, value: &Value, path: &str, places: &mut Vec<(String, Vec<Value>)>) {
    each_within(shape, Some(value), path, &mut |shape, value, path| {
        if let Some(value) = value {
            gather_present(shape, value, &path, places);
        }
    });
    let ends = ends(shape, Some(value));
    if !ends.is_empty() {
        places.push((path.to_owned(), ends));
    }
}

fn gather(shape: &Shape, value: Option<&Value>, path: &str, places: &mut Vec<(String, Value)>) {
    if value.is_some() {
        each_within(shape, value, path, &mut |shape, value, path| gather(shape, value, &path, places));
    }
    places.extend(ends(shape, value).into_iter().map(|end| (path.to_owned(), end)));
}

/// What is within, each with its JSON pointer: all fields of an object's type, of a list and a map what is there.
fn each_within(
    shape: &Shape,
    value: Option<&Value>,
    path: &str,
    visit: &mut dyn FnMut(&Shape, Option<&Value>, String),
) {
    let below = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
    match (shape, value) {
        // Who an object is is not reckoned with, and other objects refer to it.
        (Shape::Object(of), Some(Value::Object(fields))) => {
            let is_identity =
                |name: &str| matches!(name, "name" | "namespace" | "uid" | "resourceVersion" | "managedFields");
            for field in of.fields.iter().filter(|it| !is_identity(it.name)) {
                visit(&field.shape, fields.get(field.name), below(field.name));
            }
        }
        (Shape::List(of), Some(Value::Array(items))) => {
            items.iter().enumerate().for_each(|(at, it)| visit(of, Some(it), below(&at.to_string())));
        }
        (Shape::Map(of), Some(Value::Object(entries))) => {
            entries.iter().for_each(|(name, it)| visit(of, Some(it), below(name)));
        }
        _ => {}
    }
}

/// Puts one place to one end.
///
/// # Panics
/// The place is none of [`places`].
pub fn put(object: &mut Value, path: &str, end: Value) {
    match object.pointer_mut(path) {
        Some(place) => *place = end,
        None => {
            let (parent, name) = path.rsplit_once('/').expect("a pointer begins with a slash");
            let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
            parent.expect("absent are only fields of what is there").insert(name.to_owned(), end);
        }
    }
}
