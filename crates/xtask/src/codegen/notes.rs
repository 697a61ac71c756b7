//! What OpenAPI documents say beyond the type table: descriptions, defaults, and the names of types with a form of their own.
//!
//! They are kept apart, compressed, because only the documents need them and those are seldom asked for.

use std::{collections::BTreeMap, io::Write};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, Value, json};

use super::{
    defaults,
    shapes::{Field, Shape, Type},
};

/// A JSON object: by type its description, its unions and its fields. What says nothing is left out.
pub(super) fn write(definitions: &Map<String, Value>, types: &BTreeMap<String, Type>) -> Result<Vec<u8>> {
    let mut notes = Map::new();
    for (name, schema) in definitions {
        notes.insert(name.clone(), type_note(name, schema, types.get(name))?);
    }
    notes.sort_keys();
    let mut compressor = GzEncoder::new(Vec::new(), Compression::best());
    compressor.write_all(Value::Object(notes).to_string().as_bytes())?;
    compressor.finish().context("compressing the notes")
}

fn type_note(name: &str, schema: &Value, of: Option<&Type>) -> Result<Value> {
    let mut note = Map::new();
    add(&mut note, "d", schema.get("description").cloned());
    add(&mut note, "u", defaults::unions(name)?);
    add(&mut note, "q", defaults::required(name)?);
    let mut fields = Map::new();
    for (field_name, field) in of.map(|it| &it.fields).into_iter().flatten() {
        let schema = &schema["properties"][field_name];
        let note = field_note(name, field_name, field, schema)?;
        if !note.is_empty() {
            fields.insert(field_name.clone(), Value::Object(note));
        }
    }
    if !fields.is_empty() {
        note.insert("f".into(), Value::Object(fields));
    }
    Ok(Value::Object(note))
}

fn field_note(of: &str, name: &str, field: &Field, schema: &Value) -> Result<Map<String, Value>> {
    let mut note = Map::new();
    add(&mut note, "d", schema.get("description").cloned());
    add(&mut note, "v", defaults::of(of, name, field)?);
    if is_any(&field.shape) {
        add(&mut note, "r", own_form(schema).map(|it| json!(it)));
    }
    if defaults::makes_optional(of, name, field) {
        note.insert("o".into(), json!(true));
    }
    add(&mut note, "x", extension(field));
    // The table takes a list without a rule for an atomic one.
    if matches!(field.shape, Shape::List(_)) && field.rule.kind.is_empty() {
        note.insert("p".into(), json!(true));
    }
    Ok(note)
}

/// What the table does not tell from the way of the shape itself.
fn extension(field: &Field) -> Option<Value> {
    match (&field.shape, field.rule.kind) {
        (Shape::Object(_) | Shape::Map(_), "granular") => Some(json!({ "x-kubernetes-map-type": "granular" })),
        (Shape::Plain("Bytes"), "atomic") => Some(json!({ "x-kubernetes-list-type": "atomic" })),
        _ => None,
    }
}

fn is_any(shape: &Shape) -> bool {
    match shape {
        Shape::Plain(name) => *name == "Any",
        Shape::List(of) | Shape::Map(of) => is_any(of),
        Shape::Object(_) => false,
    }
}

/// The type of any JSON that has a name, also as the items of a list or the values of a map.
fn own_form(schema: &Value) -> Option<&str> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next();
    }
    own_form(schema.get("items").or_else(|| schema.get("additionalProperties"))?)
}

fn add(note: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        note.insert(name.into(), value);
    }
}
