//! Reads a schema out of its JSON form.

use corten_cel::{ListKind, Pattern};
use serde_json::{Map, Value};

use super::{
    AdditionalProperties, AllowedValues, DefaultValue, Expressions, NestedValueValidation, NumberLimit, NumericFormat,
    Structural, Type, ValueValidation,
};

impl Structural {
    /// The schema that `openAPIV3Schema` describes. Values of a wrong type count as absent: the definition's own check has
    /// refused them.
    pub fn read(schema: &Value) -> Self {
        part(schema, true)
    }
}

fn part(schema: &Value, is_root: bool) -> Structural {
    let int_or_string = is_set(schema, "x-kubernetes-int-or-string");
    let types = types(schema, int_or_string);
    let mut read = Structural {
        validation: value_validation(schema, types),
        types,
        nullable: is_set(schema, "nullable"),
        properties: entries(schema, "properties").map(|(name, it)| (name.clone(), Box::new(part(it, false)))).collect(),
        defaulted: Vec::new(),
        additional_properties: additional_properties(&schema["additionalProperties"]),
        items: schema["items"].is_object().then(|| Box::new(part(&schema["items"], false))),
        preserves_unknown: is_set(schema, "x-kubernetes-preserve-unknown-fields"),
        embedded_resource: is_set(schema, "x-kubernetes-embedded-resource"),
        list: ListKind::of_schema(schema),
        is_atomic_map: schema["x-kubernetes-map-type"] == "atomic",
        default: schema.get("default").map(|it| DefaultValue { value: it.clone(), bytes: it.to_string().len() }),
        logic: logic(schema),
        expressions: Expressions::read(schema, is_root),
        has_expressions: false,
        has_embedded: false,
    };
    let values = match &read.additional_properties {
        AdditionalProperties::Values(of) => Some(&**of),
        AdditionalProperties::Unsaid | AdditionalProperties::Allowed(_) => None,
    };
    let within = || read.properties.values().map(|it| &**it).chain(read.items.as_deref()).chain(values);
    let has_expressions = read.expressions.is_some() || within().any(|it| it.has_expressions);
    let has_embedded = read.embedded_resource || within().any(|it| it.has_embedded);
    (read.has_expressions, read.has_embedded) = (has_expressions, has_embedded);
    let defaulted = read.properties.iter().filter(|it| it.1.default.is_some());
    read.defaulted = defaulted.map(|it| it.0.clone()).collect();
    read
}

fn is_set(schema: &Value, field: &str) -> bool {
    schema[field] == true
}

fn entries<'a>(schema: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema[field].as_object().into_iter().flat_map(Map::iter)
}

fn types(schema: &Value, int_or_string: bool) -> &'static [Type] {
    match schema["type"].as_str() {
        Some("array") => &[Type::Array],
        Some("boolean") => &[Type::Boolean],
        Some("integer") => &[Type::Integer],
        Some("number") => &[Type::Number],
        Some("object") => &[Type::Object],
        Some("string") => &[Type::String],
        _ if int_or_string => &[Type::Integer, Type::String],
        _ => &[],
    }
}

fn additional_properties(schema: &Value) -> AdditionalProperties {
    match schema {
        Value::Bool(allowed) => AdditionalProperties::Allowed(*allowed),
        Value::Object(_) => AdditionalProperties::Values(Box::new(part(schema, false))),
        _ => AdditionalProperties::Unsaid,
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The fields that [`value_validation`] reads.
const VALIDATIONS: [&str; 13] = [
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
];

fn value_validation(schema: &Value, types: &[Type]) -> Option<Box<ValueValidation>> {
    if VALIDATIONS.iter().all(|it| schema.get(it).is_none()) {
        return None;
    }
    let format = schema["format"].as_str().unwrap_or_default();
    let count = |field: &str| schema[field].as_u64();
    let bound = |field: &str, exclusive: &str| {
        schema[field].as_f64().map(|value| NumberLimit { value, is_exclusive: is_set(schema, exclusive) })
    };
    let pattern = schema["pattern"].as_str().filter(|it| !it.is_empty());
    Some(Box::new(ValueValidation {
        format: format.to_owned(),
        numeric_format: NumericFormat::of(types, format),
        maximum: bound("maximum", "exclusiveMaximum"),
        minimum: bound("minimum", "exclusiveMinimum"),
        multiple_of: schema["multipleOf"].as_f64(),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        pattern: pattern.map(Pattern::new),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
        required: texts(&schema["required"]),
        allowed: schema["enum"].as_array().and_then(|it| AllowedValues::of(it)),
    }))
}

fn logic(schema: &Value) -> Option<Box<NestedValueValidation>> {
    let list = |field: &str| -> Vec<Structural> {
        schema[field].as_array().into_iter().flatten().map(|it| part(it, false)).collect()
    };
    let logic = NestedValueValidation {
        all_of: list("allOf"),
        any_of: list("anyOf"),
        one_of: list("oneOf"),
        not: schema["not"].is_object().then(|| part(&schema["not"], false)),
    };
    let is_empty = logic.all_of.is_empty() && logic.any_of.is_empty() && logic.one_of.is_empty() && logic.not.is_none();
    (!is_empty).then(|| Box::new(logic))
}
