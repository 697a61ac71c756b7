//! The lists and maps of an object, each as long as a body allows. For tests of whoever goes through what users write: for
//! each element something is done, and not for each pair of them.
//!
//! What an object could have and has not is made wide, too: whatever its type names in the parts that are there.

use serde_json::{Map, Value, json};

use crate::{Shape, Type};

/// How the elements of a wide list differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    Alike,
    /// All of their texts and numbers are their own.
    Apart,
}

/// A list or map within an object.
#[derive(Clone, Debug)]
pub struct Collection {
    /// A JSON pointer.
    pub path: String,
    of: Shape,
    is_map: bool,
}

/// Every list and map that the object has or could have.
pub fn places(kind: &'static Type, object: &Value) -> Vec<Collection> {
    let mut places = Vec::new();
    gather(&Shape::Object(kind), Some(object), "", &mut places);
    places
}

fn gather(shape: &Shape, value: Option<&Value>, path: &str, places: &mut Vec<Collection>) {
    let below = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
    match (shape, value) {
        (Shape::Object(of), Some(Value::Object(fields))) => {
            for field in of.fields.iter().filter(|it| it.name != "managedFields") {
                gather(&field.shape, fields.get(field.name), &below(field.name), places);
            }
        }
        (Shape::List(of), _) => {
            places.push(Collection { path: path.to_owned(), of: **of, is_map: false });
            if let Some(Value::Array(items)) = value {
                items.iter().take(1).for_each(|it| gather(of, Some(it), &below("0"), places));
            }
        }
        (Shape::Map(of), _) => {
            places.push(Collection { path: path.to_owned(), of: **of, is_map: true });
            if let Some(Value::Object(entries)) = value {
                entries.iter().take(1).for_each(|(name, it)| gather(of, Some(it), &below(name), places));
            }
        }
        _ => {}
    }
}

/// The object with `n` elements at a place.
pub fn widened(object: &Value, place: &Collection, n: usize, elements: Elements) -> Value {
    let mut object = object.clone();
    let (parent, name) = place.path.rsplit_once('/').expect("a pointer begins with a slash");
    let name = name.replace("~1", "/").replace("~0", "~");
    let present = object.pointer(&place.path);
    let first = present.and_then(|it| match it {
        Value::Array(items) => items.first(),
        Value::Object(entries) => entries.values().next(),
        _ => None,
    });
    let first = first.cloned().unwrap_or_else(|| made(&place.of, 2));
    let nth = |at: usize| if elements == Elements::Apart { apart(&place.of, &first, at) } else { first.clone() };
    let wide = if place.is_map {
        Value::Object((0..n).map(|at| (format!("k{at}"), nth(at))).collect())
    } else {
        Value::Array((0..n).map(nth).collect())
    };
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.insert(name, wide)),
        Some(Value::Array(items)) => items[name.parse::<usize>().expect("an index")] = wide,
        _ => unreachable!("absent are only fields of what is there"),
    }
    object
}

/// Some value of a shape.
fn made(shape: &Shape, depth: usize) -> Value {
    match shape {
        Shape::Object(of) if depth > 0 => {
            let fields = of.fields.iter().map(|it| (it.name.to_owned(), made(&it.shape, depth - 1)));
            Value::Object(fields.filter(|it| !it.1.is_null()).collect())
        }
        Shape::List(of) if depth > 0 => json!([made(of, depth - 1)]),
        Shape::Map(of) if depth > 0 => json!({ "k": made(of, depth - 1) }),
        Shape::Object(_) => Value::Object(Map::new()),
        Shape::String => json!("a"),
        Shape::Bytes => json!("YQ=="),
        Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => json!(1),
        Shape::Quantity => json!("1"),
        Shape::Boolean => json!(true),
        Shape::Time => json!("2026-01-01T00:00:00Z"),
        Shape::MicroTime => json!("2026-01-01T00:00:00.000000Z"),
        _ => Value::Null,
    }
}

fn apart(shape: &Shape, value: &Value, at: usize) -> Value {
    match (shape, value) {
        (Shape::String, Value::String(text)) => json!(format!("{text}{at}")),
        (Shape::Int32 | Shape::Int64 | Shape::IntOrString, Value::Number(number)) => {
            let number = number.as_i64().and_then(|it| it.checked_add(i64::try_from(at % 60_000).ok()?));
            number.map_or_else(|| value.clone(), |it| json!(it))
        }
        (Shape::List(of), Value::Array(items)) => items.iter().map(|it| apart(of, it, at)).collect(),
        (Shape::Map(of), Value::Object(entries)) => {
            entries.iter().map(|(name, it)| (name.clone(), apart(of, it, at))).collect()
        }
        (Shape::Object(of), Value::Object(fields)) => {
            let apart = |(name, it): (&String, &Value)| {
                let field = of.field(name).map_or_else(|| it.clone(), |field| apart(&field.shape, it, at));
                (name.clone(), field)
            };
            fields.iter().map(apart).collect()
        }
        _ => value.clone(),
    }
}
