//! Definitions in the form that apiextensions-apiserver's validation works on, where it shows a whole struct as a bad value:
//! JSON of its internal types, whose fields have no tags (`field.Error.ErrorBody`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// How Go keeps a field.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Bool,
    Int,
    /// A pointer to something simple, a slice of such, or any JSON.
    Plain,
    Struct(Fields),
    Structs(Fields),
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrSchemas,
    SchemaOrBool,
}

/// The name in Go, the one in JSON, and the shape.
type Fields = &'static [(&'static str, &'static str, Shape)];

const RULE: Fields = &[
    ("Rule", "rule", Shape::Text),
    ("Message", "message", Shape::Text),
    ("MessageExpression", "messageExpression", Shape::Text),
    ("Reason", "reason", Shape::Plain),
    ("FieldPath", "fieldPath", Shape::Text),
    ("OptionalOldSelf", "optionalOldSelf", Shape::Plain),
];

const VERSION: Fields = &[
    ("Name", "name", Shape::Text),
    ("Served", "served", Shape::Bool),
    ("Storage", "storage", Shape::Bool),
    ("Deprecated", "deprecated", Shape::Bool),
    ("DeprecationWarning", "deprecationWarning", Shape::Plain),
    ("Schema", "schema", Shape::Struct(&[("OpenAPIV3Schema", "openAPIV3Schema", Shape::Schema)])),
    ("Subresources", "subresources", Shape::Struct(SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Shape::Structs(COLUMN)),
    ("SelectableFields", "selectableFields", Shape::Structs(&[("JSONPath", "jsonPath", Shape::Text)])),
];

const SUBRESOURCES: Fields = &[
    ("Status", "status", Shape::Struct(&[])),
    (
        "Scale",
        "scale",
        Shape::Struct(&[
            ("SpecReplicasPath", "specReplicasPath", Shape::Text),
            ("StatusReplicasPath", "statusReplicasPath", Shape::Text),
            ("LabelSelectorPath", "labelSelectorPath", Shape::Plain),
        ]),
    ),
];

const COLUMN: Fields = &[
    ("Name", "name", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Format", "format", Shape::Text),
    ("Description", "description", Shape::Text),
    ("Priority", "priority", Shape::Int),
    ("JSONPath", "jsonPath", Shape::Text),
];

const SCHEMA: Fields = &[
    ("ID", "id", Shape::Text),
    ("Schema", "$schema", Shape::Text),
    ("Ref", "$ref", Shape::Plain),
    ("Description", "description", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Nullable", "nullable", Shape::Bool),
    ("Format", "format", Shape::Text),
    ("Title", "title", Shape::Text),
    ("Default", "default", Shape::Plain),
    ("Maximum", "maximum", Shape::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Shape::Bool),
    ("Minimum", "minimum", Shape::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Shape::Bool),
    ("MaxLength", "maxLength", Shape::Plain),
    ("MinLength", "minLength", Shape::Plain),
    ("Pattern", "pattern", Shape::Text),
    ("MaxItems", "maxItems", Shape::Plain),
    ("MinItems", "minItems", Shape::Plain),
    ("UniqueItems", "uniqueItems", Shape::Bool),
    ("MultipleOf", "multipleOf", Shape::Plain),
    ("Enum", "enum", Shape::Plain),
    ("MaxProperties", "maxProperties", Shape::Plain),
    ("MinProperties", "minProperties", Shape::Plain),
    ("Required", "required", Shape::Plain),
    ("Items", "items", Shape::SchemaOrSchemas),
    ("AllOf", "allOf", Shape::Schemas),
    ("OneOf", "oneOf", Shape::Schemas),
    ("AnyOf", "anyOf", Shape::Schemas),
    ("Not", "not", Shape::Schema),
    ("Properties", "properties", Shape::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Shape::SchemaOrBool),
    ("PatternProperties", "patternProperties", Shape::SchemaMap),
    ("Dependencies", "dependencies", Shape::Plain),
    ("AdditionalItems", "additionalItems", Shape::SchemaOrBool),
    ("Definitions", "definitions", Shape::SchemaMap),
    (
        "ExternalDocs",
        "externalDocs",
        Shape::Struct(&[("Description", "description", Shape::Text), ("URL", "url", Shape::Text)]),
    ),
    ("Example", "example", Shape::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shape::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::Bool),
    ("XIntOrString", "x-kubernetes-int-or-string", Shape::Bool),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Shape::Plain),
    ("XListType", "x-kubernetes-list-type", Shape::Plain),
    ("XMapType", "x-kubernetes-map-type", Shape::Plain),
    ("XValidations", "x-kubernetes-validations", Shape::Structs(RULE)),
];

/// A rule of `x-kubernetes-validations`.
pub(super) fn rule(rule: &Value) -> String {
    written(Shape::Struct(RULE), rule)
}

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    written(Shape::Schema, schema)
}

/// `spec.versions`. What all versions say alike stands elsewhere in upstream's internal type
/// (`Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`).
pub(super) fn versions(versions: &Value) -> String {
    let same = same_in_all(versions);
    let mut versions = versions.clone();
    for version in versions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        same.iter().for_each(|it| drop(version.shift_remove(*it)));
    }
    written(Shape::Structs(VERSION), &versions)
}

/// The fields in which all versions are alike.
pub(super) fn same_in_all(versions: &Value) -> Vec<&'static str> {
    let Some(versions) = versions.as_array() else { return Vec::new() };
    let is_same = |field: &str| versions.iter().all(|it| it[field] == versions[0][field]);
    let (has_one_schema, fields) = (is_same("schema"), ["schema", "subresources", "additionalPrinterColumns"]);
    let mut same: Vec<&str> = fields.into_iter().filter(|it| is_same(it)).collect();
    if has_one_schema && is_same("selectableFields") {
        same.push("selectableFields");
    }
    same
}

/// As Go's `json.Marshal` writes it.
fn written(shape: Shape, value: &Value) -> String {
    let mut out = String::new();
    write(shape, value, &mut out);
    // Go keeps JSON from being read as HTML.
    for (sign, escaped) in [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")] {
        out = out.replace(sign, escaped);
    }
    out
}

/// Go writes the keys of a map in their order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(entries) => {
            let entries: BTreeMap<&String, Value> = entries.iter().map(|(name, it)| (name, sorted(it))).collect();
            entries.into_iter().map(|(name, it)| (name.clone(), it)).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn write(shape: Shape, value: &Value, out: &mut String) {
    let quoted = |it: &str| Value::from(it).to_string();
    match shape {
        Shape::Text => out.push_str(&quoted(value.as_str().unwrap_or_default())),
        Shape::Bool => out.push_str(&value.as_bool().unwrap_or_default().to_string()),
        Shape::Int => out.push_str(&value.as_i64().unwrap_or_default().to_string()),
        Shape::Plain => out.push_str(&sorted(value).to_string()),
        _ if value.is_null() => out.push_str("null"),
        Shape::Struct(fields) => write_fields(fields, value, out),
        Shape::Schema => write_fields(SCHEMA, value, out),
        Shape::Structs(fields) => write_list(Shape::Struct(fields), value, out),
        Shape::Schemas => write_list(Shape::Schema, value, out),
        Shape::SchemaMap => {
            let mut entries: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
            entries.sort_by_key(|it| it.0);
            for (n, (name, value)) in entries.into_iter().enumerate() {
                out.push(if n == 0 { '{' } else { ',' });
                out.extend([&*quoted(name), ":"]);
                write(Shape::Schema, value, out);
            }
            out.push_str(if value.as_object().is_none_or(Map::is_empty) { "{}" } else { "}" });
        }
        Shape::SchemaOrSchemas => {
            let (one, several) = if value.is_array() { (&Value::Null, value) } else { (value, &Value::Null) };
            out.push_str("{\"Schema\":");
            write(Shape::Schema, one, out);
            out.push_str(",\"JSONSchemas\":");
            write(Shape::Schemas, several, out);
            out.push('}');
        }
        Shape::SchemaOrBool => {
            out.push_str(&format!("{{\"Allows\":{},\"Schema\":", value != false));
            write(Shape::Schema, if value.is_object() { value } else { &Value::Null }, out);
            out.push('}');
        }
    }
}

fn write_fields(fields: Fields, value: &Value, out: &mut String) {
    out.push('{');
    for (n, (name, field, shape)) in fields.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        out.push_str(&format!("{comma}\"{name}\":"));
        write(*shape, &value[*field], out);
    }
    out.push('}');
}

fn write_list(shape: Shape, value: &Value, out: &mut String) {
    out.push('[');
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        out.push_str(if n == 0 { "" } else { "," });
        write(shape, item, out);
    }
    out.push(']');
}

#[cfg(test)]
mod tests;
