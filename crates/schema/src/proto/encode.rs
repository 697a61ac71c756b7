//! Objects as Kubernetes's protobuf, byte for byte as its own encoder writes them: fields in the order of their numbers, map
//! entries in that of their keys, and what is no pointer in Go even where nobody set it.

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::{MicroTime, Quantity, Time};
use serde_json::{Map, Value};

use super::{
    union,
    wire::{Writer, signed},
};
use crate::{Field, Shape, Type};

/// The content of a message of this type. What is in the object and not in the type is not written, as in Go.
pub(super) fn message(of: &'static Type, value: &Value, out: &mut Writer) {
    let mut values: [Option<&Value>; FIELDS_MAX] = [None; FIELDS_MAX];
    for (name, value) in value.as_object().into_iter().flatten() {
        if !value.is_null()
            && let Some(at) = of.place(name)
        {
            values[at] = Some(value);
        }
    }
    level(of, of.wire, 0, &values, out);
}

/// More than any type of the table has.
pub(super) const FIELDS_MAX: usize = 64;

/// Those of the fields whose numbers differ from `depth` on. An embedded struct is a message of its own: all whose paths begin
/// with its number, which lie side by side.
fn level(of: &'static Type, wire: &[u8], depth: usize, values: &[Option<&Value>], out: &mut Writer) {
    let number_of = |at: u8| of.fields[usize::from(at)].number;
    for group in wire.chunk_by(|a, b| number_of(*a)[depth] == number_of(*b)[depth]) {
        let at = usize::from(group[0]);
        let field = &of.fields[at];
        let number = u32::from(field.number[depth]);
        if field.number.len() == depth + 1 {
            put(of, field, number, values[at], out);
        } else {
            out.nested(number, |out| level(of, group, depth + 1, values, out));
        }
    }
}

fn put(of: &'static Type, field: &'static Field, number: u32, value: Option<&Value>, out: &mut Writer) {
    match (&field.shape, value) {
        (_, None) if !field.always => {}
        (Shape::List(item), Some(Value::Array(items))) if is_list_message(of, field.name) => {
            out.nested(number, |out| items.iter().for_each(|it| one(of, field.name, item, 1, it, out)));
        }
        (Shape::List(item), Some(Value::Array(items))) => {
            items.iter().for_each(|it| one(of, field.name, item, number, it, out));
        }
        (Shape::Map(item), Some(Value::Object(entries))) => map(of, field.name, item, number, entries, out),
        // What is written of nothing: an empty text, a zero, an empty message.
        (shape, value) => one(of, field.name, shape, number, value.unwrap_or(&Value::Null), out),
    }
}

fn map(of: &'static Type, name: &str, item: &Shape, number: u32, entries: &Map<String, Value>, out: &mut Writer) {
    let mut keys: Vec<&String> = entries.keys().collect();
    keys.sort_unstable();
    for key in keys {
        let value = &entries[key];
        out.nested(number, |out| {
            out.bytes(1, key.as_bytes());
            match (item, value) {
                // A list that is a map's value is a message whose field 1 repeats.
                (Shape::List(item), value) => out.nested(2, |out| {
                    value.as_array().into_iter().flatten().for_each(|it| one(of, name, item, 1, it, out));
                }),
                (Shape::Bytes, Value::Null) => {}
                (item, value) => one(of, name, item, 2, value, out),
            }
        });
    }
}

/// A list type with a name of its own that the wire format has a message for: `Verbs`.
pub(super) fn is_list_message(of: &Type, field: &str) -> bool {
    of.short_name() == "APIResource" && field == "verbs"
}

/// A text of JSON that is a message of nanoseconds on the wire.
pub(super) fn is_duration(of: &Type, field: &str) -> bool {
    field == "window" && matches!(of.short_name(), "NodeMetrics" | "PodMetrics")
}

/// One value with its number, whatever it is: null is the zero value of its type.
fn one(of: &'static Type, name: &str, shape: &Shape, number: u32, value: &Value, out: &mut Writer) {
    match shape {
        Shape::String if is_duration(of, name) => {
            let nanos = corten_meta::duration::nanos(value.as_str().unwrap_or_default()).unwrap_or_default();
            out.nested(number, |out| out.varint(1, signed(nanos)));
        }
        Shape::String => out.bytes(number, value.as_str().unwrap_or_default().as_bytes()),
        Shape::Bytes => out.bytes(number, &STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()),
        Shape::Int32 | Shape::Int64 => out.varint(number, signed(int(value))),
        Shape::Boolean => out.varint(number, u64::from(value.as_bool().unwrap_or_default())),
        Shape::Number => out.fixed64(number, value.as_f64().unwrap_or_default().to_bits()),
        Shape::Time => {
            let time: Option<Time> = value.as_str().and_then(|it| it.parse().ok());
            time_message(number, time.map(Time::whole_seconds), out);
        }
        Shape::MicroTime => {
            let time: Option<MicroTime> = value.as_str().and_then(|it| it.parse().ok());
            time_message(number, time.map(|it| Time(Time(it.0).micro().0)), out);
        }
        Shape::Quantity => out.nested(number, |out| out.bytes(1, quantity(value).as_bytes())),
        Shape::IntOrString => out.nested(number, |out| int_or_string(value, out)),
        Shape::Any if union::is_one(of, name) => out.nested(number, |out| union::encode(of, name, value, out)),
        Shape::Any if is_empty_struct(of, name) => out.nested(number, |_| {}),
        Shape::Any if value.is_null() => out.nested(number, |_| {}),
        Shape::Any => out.nested(number, |out| out.bytes(1, value.to_string().as_bytes())),
        Shape::Object(inner) => out.nested(number, |out| message(inner, value, out)),
        // No type has lists or maps right within each other but those above.
        Shape::List(_) | Shape::Map(_) => {}
    }
}

/// A struct without fields, which the schemas do not tell from JSON of any form.
fn is_empty_struct(of: &Type, field: &str) -> bool {
    of.short_name() == "CustomResourceSubresources" && field == "status"
}

fn int(value: &Value) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers are checked against their types before they are stored"
    )]
    let of_float = || value.as_f64().unwrap_or_default() as i64;
    value.as_i64().unwrap_or_else(of_float)
}

fn time_message(number: u32, time: Option<Time>, out: &mut Writer) {
    out.nested(number, |out| {
        if let Some(time) = time.filter(|it| !it.is_unset()) {
            // Whole seconds before 1970 count downwards, what is left of one upwards.
            let nanos = time.0.as_nanosecond().rem_euclid(1_000_000_000);
            let seconds = (time.0.as_nanosecond() - nanos) / 1_000_000_000;
            out.varint(1, signed(i64::try_from(seconds).unwrap_or_default()));
            out.varint(2, signed(i64::try_from(nanos).unwrap_or_default()));
        }
    });
}

fn quantity(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string().parse::<Quantity>().unwrap_or_default().to_string(),
        _ => "0".to_owned(),
    }
}

fn int_or_string(value: &Value, out: &mut Writer) {
    let text = value.as_str();
    out.varint(1, u64::from(text.is_some()));
    out.varint(2, if text.is_some() { 0 } else { signed(int(value)) });
    out.bytes(3, text.unwrap_or_default().as_bytes());
}
