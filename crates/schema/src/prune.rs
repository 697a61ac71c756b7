//! Removes what a decoder into typed structs would lose: unknown fields, nulls, optional lists and maps that are empty, and
//! zero values that are not written; and writes quantities and times in the one form the API knows.

use corten_meta::{MicroTime, Quantity, Time};
use serde_json::{Map, Value};

use crate::{Shape, Type, find};

/// Makes `value` what it would be after a trip through Kubernetes's own structs. A type the table lacks keeps everything.
pub fn prune(type_name: &str, value: &mut Value) {
    if let (Some(of), Value::Object(entries)) = (find(type_name), value) {
        object(of, entries);
    }
}

fn object(of: &Type, entries: &mut Map<String, Value>) {
    entries.retain(|name, value| {
        let Some(field) = of.field(name) else { return false };
        inside(&field.shape, value);
        match (&field.shape, &*value) {
            (_, Value::Null) => false,
            (Shape::List(_), Value::Array(items)) => field.required || !items.is_empty(),
            (Shape::Map(_), Value::Object(entries)) => field.required || !entries.is_empty(),
            (_, value) => !(field.omitted && is_zero(value)),
        }
    });
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_i64() == Some(0),
        Value::String(it) => it.is_empty(),
        _ => false,
    }
}

fn inside(shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Object(of), Value::Object(entries)) => object(of, entries),
        (Shape::List(of), Value::Array(items)) => items.iter_mut().for_each(|it| element(of, it)),
        (Shape::Map(of), Value::Object(entries)) => entries.values_mut().for_each(|it| element(of, it)),
        (Shape::Quantity | Shape::Time | Shape::MicroTime, value) => canonical(shape, value),
        _ => {}
    }
}

/// Quantities, and times in UTC with as many digits as their type has: `0.5` is `500m`, `1024Mi` is `1Gi`, Go's zero time is `null`. What cannot be read
/// stays as it is: `check` has reported it.
fn canonical(shape: &Shape, value: &mut Value) {
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    let time = |time: Time, written: String| if time.is_unset() { Value::Null } else { Value::String(written) };
    let written = match shape {
        Shape::Time => text.parse::<Time>().map(|it| time(it, it.to_string())).ok(),
        Shape::MicroTime => text.parse::<MicroTime>().map(|it| time(Time(it.0), it.to_string())).ok(),
        _ => text.parse::<Quantity>().map(|it| Value::String(it.to_string())).ok(),
    };
    if let Some(written) = written {
        *value = written;
    }
}

/// A null in a list or a map is the zero value of its type.
fn element(shape: &Shape, value: &mut Value) {
    if value.is_null() {
        *value = match shape {
            Shape::String => Value::String(String::new()),
            Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => Value::from(0),
            Shape::Quantity => Value::from("0"),
            Shape::Boolean => Value::Bool(false),
            Shape::Object(_) => Value::Object(Map::new()),
            _ => return,
        };
        return;
    }
    inside(shape, value);
}
