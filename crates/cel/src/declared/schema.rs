//! A structural schema as a declared type: apiserver's `SchemaDeclType`.
//!
//! What a schema says nothing of is not declared, so that no expression names it.

use serde_json::{Map, Value as Json};

use super::{DeclType, ListKind, UNNAMED};

impl DeclType {
    /// The type that a schema in JSON (as a CustomResourceDefinition has it) declares; `None` for what expressions do not see.
    /// The root of a resource, and of an embedded one, has `apiVersion`, `kind` and a name.
    pub fn from_schema(whole: &Json, is_resource_root: bool) -> Option<Self> {
        let schema = whole.as_object()?;
        if is_true(schema, "x-kubernetes-int-or-string") {
            return Some(Self::int_or_string(number(schema, "maxLength")));
        }
        match text(schema, "type") {
            "array" => {
                let of = inner(schema.get("items")?)?;
                Some(Self::list(of, number(schema, "maxItems"), ListKind::of_schema(whole)))
            }
            "object" => object(schema, is_resource_root),
            "string" => Some(string(schema)),
            "boolean" => Some(Self::BOOL),
            "number" => Some(Self::DOUBLE),
            "integer" => Some(Self::INT),
            _ => None,
        }
    }
}

fn inner(schema: &Json) -> Option<DeclType> {
    let is_embedded = schema.as_object().is_some_and(|it| is_true(it, "x-kubernetes-embedded-resource"));
    DeclType::from_schema(schema, is_embedded)
}

fn object(schema: &Map<String, Json>, is_resource_root: bool) -> Option<DeclType> {
    if let Some(values @ Json::Object(_)) = schema.get("additionalProperties")
        && !is_resource_root
    {
        return Some(DeclType::map(inner(values)?, number(schema, "maxProperties")));
    }
    let required = texts(schema, "required");
    let properties = schema.get("properties").and_then(Json::as_object);
    let mut fields: Vec<(&str, DeclType, bool)> = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        if is_resource_root && matches!(&**name, "apiVersion" | "kind" | "metadata") {
            continue;
        }
        if let Some(of) = inner(property) {
            let needs = required.contains(name) && property.get("default").is_none();
            fields.push((name, of, needs));
        }
    }
    if is_resource_root {
        let name = || DeclType::string(None);
        let metadata = DeclType::object(UNNAMED, [("name", name(), false), ("generateName", name(), false)]);
        fields.extend([("apiVersion", name(), false), ("kind", name(), false), ("metadata", metadata, false)]);
    }
    Some(DeclType::object(UNNAMED, fields))
}

fn string(schema: &Map<String, Json>) -> DeclType {
    let max_length = number(schema, "maxLength");
    match text(schema, "format") {
        "byte" => DeclType::bytes(max_length),
        "duration" => DeclType::DURATION,
        "date" => DeclType::DATE,
        "date-time" => DeclType::TIMESTAMP,
        _ => match schema.get("enum").and_then(Json::as_array) {
            Some(values) if max_length.is_none() && !values.is_empty() => {
                DeclType::one_of(values.iter().filter_map(Json::as_str))
            }
            _ => DeclType::string(max_length),
        },
    }
}

fn text<'s>(schema: &'s Map<String, Json>, key: &str) -> &'s str {
    schema.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn texts(schema: &Map<String, Json>, key: &str) -> Vec<String> {
    let values = schema.get(key).and_then(Json::as_array);
    values.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

fn is_true(schema: &Map<String, Json>, key: &str) -> bool {
    schema.get(key) == Some(&Json::Bool(true))
}

/// One below zero is zero.
fn number(schema: &Map<String, Json>, key: &str) -> Option<u64> {
    schema.get(key).and_then(|it| it.as_u64().or_else(|| it.as_i64().map(|_| 0)))
}
