//! JSON schemas in, shapes out.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::{
    merge_rules::{Rule, Rules},
    roots,
};

pub(super) struct Type {
    pub fields: BTreeMap<String, Field>,
    pub atomic: bool,
}

pub(super) struct Field {
    pub shape: Shape,
    pub required: bool,
    pub rule: Rule,
}

#[derive(Clone)]
pub(super) enum Shape {
    /// The name of a variant of `schema::Shape` that holds nothing.
    Plain(&'static str),
    Object(String),
    List(Box<Shape>),
    Map(Box<Shape>),
}

/// Every schema by its name.
pub(super) fn definitions() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    roots::define_all(&mut generator);
    generator.take_definitions(false)
}

/// All types that have fields, by name.
pub(super) fn read(definitions: &Map<String, Value>, rules: &Rules) -> Result<BTreeMap<String, Type>> {
    let mut types = BTreeMap::new();
    for (name, schema) in definitions {
        let schema = schema.as_object().with_context(|| format!("reading {name}"))?;
        if let Some(fields) = fields(name, schema, definitions, rules)? {
            let atomic = rule(rules, name, "(self)").kind == "atomic";
            types.insert(name.clone(), Type { fields, atomic });
        }
    }
    Ok(types)
}

/// The fields of a struct; `None` for what has its own form in JSON.
fn fields(
    name: &str,
    schema: &Map<String, Value>,
    definitions: &Map<String, Value>,
    rules: &Rules,
) -> Result<Option<BTreeMap<String, Field>>> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        // A struct may be empty; the others of these are unions and raw JSON.
        let is_empty_struct = schema.get("type").is_some_and(|it| it == "object") && !is_raw(name);
        return Ok(is_empty_struct.then(BTreeMap::new));
    };
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut fields = BTreeMap::new();
    for (field, schema) in properties {
        let shape = shape(schema, definitions).with_context(|| format!("reading {name}.{field}"))?;
        let required = required.iter().any(|it| it == field);
        fields.insert(field.clone(), Field { shape, required, rule: rule(rules, name, field) });
    }
    Ok(Some(fields))
}

/// Objects without a fixed set of fields, though their schemas do not say so.
fn is_raw(name: &str) -> bool {
    let raw = ["CustomResourceSubresourceStatus", "FieldsV1", "JSON", "Patch", "RawExtension"];
    raw.contains(&name.rsplit('.').next().unwrap_or_default())
}

fn rule(rules: &Rules, of: &str, field: &str) -> Rule {
    let of = of.strip_prefix("io.k8s.").unwrap_or(of);
    rules.get(&(of, field)).cloned().unwrap_or_default()
}

fn shape(schema: &Value, definitions: &Map<String, Value>) -> Result<Shape> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return referred(name, definitions);
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let plain = match (text("type"), text("format")) {
        ("string", "byte") => "Bytes",
        ("string", _) => "String",
        ("integer", "int64") => "Int64",
        ("integer", _) => "Int32",
        ("number", _) => "Number",
        ("boolean", _) => "Boolean",
        ("array", _) => {
            let items = schema.get("items").context("an array without items")?;
            return Ok(Shape::List(Box::new(shape(items, definitions)?)));
        }
        ("object", _) => {
            return match schema.get("additionalProperties") {
                Some(values) => Ok(Shape::Map(Box::new(shape(values, definitions)?))),
                None => Ok(Shape::Plain("Any")),
            };
        }
        ("", _) => "Any",
        other => bail!("a schema of unknown type {other:?}"),
    };
    Ok(Shape::Plain(plain))
}

fn referred(name: &str, definitions: &Map<String, Value>) -> Result<Shape> {
    let own_form = match name.rsplit('.').next().unwrap_or_default() {
        "IntOrString" => "IntOrString",
        "Quantity" => "Quantity",
        "Time" => "Time",
        "MicroTime" => "MicroTime",
        _ => "",
    };
    if !own_form.is_empty() {
        return Ok(Shape::Plain(own_form));
    }
    let schema = definitions.get(name).with_context(|| format!("{name} is not defined"))?;
    let is_struct = schema.get("properties").is_some()
        || (schema.get("type").is_some_and(|it| it == "object")
            && schema.get("additionalProperties").is_none()
            && !is_raw(name));
    if is_struct { Ok(Shape::Object(name.to_owned())) } else { shape(schema, definitions) }
}
