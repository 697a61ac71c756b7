//! JSON as `encoding/json` of Go writes it to a stream: with `<`, `>` and `&` escaped, numbers in Go's form, and a line feed behind.

use std::io::{self, Write};

use corten_schema::{Field, Shape, Type};
use serde::Serialize;
use serde_json::{
    Map, Value,
    ser::{Formatter, Serializer},
};

/// The object in one line.
pub(crate) fn written(object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let mut serializer = Serializer::with_formatter(&mut out, Go);
    object.serialize(&mut serializer).expect("writing to memory does not fail");
    out.push(b'\n');
    out
}

struct Go;

impl Formatter for Go {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let is_escaped = |it: char| matches!(it, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some(at) = rest.find(is_escaped) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let escaped = rest[at..].chars().next().expect("one was found there");
            write!(writer, "\\u{:04x}", u32::from(escaped))?;
            rest = &rest[at + escaped.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    /// Whole numbers have no fraction, and exponents are rare (`floatEncoder`).
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            return write!(writer, "{value}");
        }
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, power)) if !power.starts_with('-') => write!(writer, "{digits}e+{power}"),
            _ => writer.write_all(text.as_bytes()),
        }
    }
}

/// The fields of an object and of all that is in it in the order in which Go's struct has them.
pub(crate) fn in_order_of_fields(object: Value, type_name: &str) -> Value {
    let Some(of) = corten_schema::find(type_name) else { return object };
    let Value::Object(mut object) = object else { return object };
    let mut ordered = Map::new();
    for name in ["kind", "apiVersion"] {
        ordered.extend(object.shift_remove(name).map(|it| (name.to_owned(), it)));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    if let Value::Object(rest) = of_type(of, Value::Object(object)) {
        ordered.extend(rest);
    }
    Value::Object(ordered)
}

/// Structs whose fields are numbered in another order than they stand in.
const OTHER_ORDER: &[(&str, &[&str])] = &[(
    "CustomResourceDefinitionVersion",
    &[
        "name",
        "served",
        "storage",
        "deprecated",
        "deprecationWarning",
        "schema",
        "subresources",
        "additionalPrinterColumns",
        "selectableFields",
    ],
)];

const SCHEMA: &str = "JSONSchemaProps";
/// Of a schema: what is a schema, several of them, or something else.
const SCHEMAS: [&str; 3] = ["items", "additionalItems", "additionalProperties"];

fn of_type(of: &'static Type, value: Value) -> Value {
    let Value::Object(mut fields) = value else { return value };
    let mut ordered = Map::new();
    let take = |field: &'static Field| {
        if let Some(value) = fields.shift_remove(field.name).filter(|it| !it.is_null()) {
            let is_schema = of.short_name() == SCHEMA && SCHEMAS.contains(&field.name);
            let value = if is_schema { of_schemas(of, value) } else { of_shape(of, &field.shape, value) };
            ordered.insert(field.name.to_owned(), value);
        }
    };
    if let Some((_, names)) = OTHER_ORDER.iter().find(|it| it.0 == of.short_name()) {
        names.iter().filter_map(|it| of.field(it)).for_each(take);
    } else {
        let mut by_number: Vec<&'static Field> = of.fields.iter().collect();
        by_number.sort_by_key(|it| it.number);
        by_number.into_iter().for_each(take);
    }
    Value::Object(ordered)
}

/// A schema, several, a truth value, or schemas and names by key.
fn of_schemas(of: &'static Type, value: Value) -> Value {
    match value {
        Value::Object(_) => of_type(of, value),
        Value::Array(items) => Value::Array(items.into_iter().map(|it| of_schemas(of, it)).collect()),
        other => other,
    }
}

fn of_shape(of: &'static Type, shape: &'static Shape, value: Value) -> Value {
    match (shape, value) {
        (Shape::Object(inner), value) => of_type(inner, value),
        (Shape::List(item), Value::Array(items)) => {
            Value::Array(items.into_iter().map(|it| of_shape(of, item, it)).collect())
        }
        (Shape::Map(Shape::Any), Value::Object(mut entries)) if of.short_name() == SCHEMA => {
            entries.sort_keys();
            Value::Object(entries.into_iter().map(|(key, it)| (key, of_schemas(of, it))).collect())
        }
        (Shape::Map(item), Value::Object(entries)) => {
            let within = |(key, it)| (key, of_shape(of, item, it));
            let mut entries: Map<String, Value> = entries.into_iter().map(within).collect();
            entries.sort_keys();
            Value::Object(entries)
        }
        // Defaults and examples pass through Go's maps.
        (Shape::Any, mut value) if of.short_name() == SCHEMA => {
            value.sort_all_objects();
            value
        }
        (_, value) => value,
    }
}
