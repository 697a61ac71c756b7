use std::collections::BTreeMap;

use prost::Message;
use serde_json::json;

use super::*;
use crate::document::V3;

/// What of the messages these tests read. Their numbers are written down here once more, from the same file.
#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(string, tag = "1")]
    openapi: String,
    #[prost(message, optional, tag = "4")]
    paths: Option<Paths>,
    #[prost(message, optional, tag = "5")]
    components: Option<Components>,
}

#[derive(Clone, PartialEq, Message)]
struct Paths {
    #[prost(message, repeated, tag = "1")]
    path: Vec<NamedPath>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedPath {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct PathItem {
    #[prost(message, optional, tag = "10")]
    patch: Option<Operation>,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(string, repeated, tag = "1")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    operation_id: String,
    #[prost(message, repeated, tag = "13")]
    extensions: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedAny {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, tag = "2")]
    yaml: String,
}

#[derive(Clone, PartialEq, Message)]
struct Components {
    #[prost(message, optional, tag = "1")]
    schemas: Option<NamedSchemas>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    pairs: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchema {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<SchemaOrReference>,
}

#[derive(Clone, PartialEq, Message)]
struct SchemaOrReference {
    #[prost(oneof = "Chosen", tags = "1, 2")]
    chosen: Option<Chosen>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Chosen {
    #[prost(message, tag = "1")]
    Schema(Box<Schema>),
    #[prost(message, tag = "2")]
    Reference(Reference),
}

#[derive(Clone, PartialEq, Message)]
struct Reference {
    #[prost(string, tag = "1")]
    reference: String,
}

#[derive(Clone, PartialEq, Message)]
struct Schema {
    #[prost(bool, tag = "1")]
    nullable: bool,
    #[prost(double, tag = "11")]
    maximum: f64,
    #[prost(int64, tag = "16")]
    min_length: i64,
    #[prost(string, repeated, tag = "23")]
    required: Vec<String>,
    #[prost(message, repeated, tag = "24")]
    one_of_values: Vec<AnyValue>,
    #[prost(string, tag = "25")]
    r#type: String,
    #[prost(message, repeated, tag = "26")]
    all_of: Vec<SchemaOrReference>,
    #[prost(message, optional, tag = "30")]
    items: Option<SchemaItems>,
    #[prost(message, optional, tag = "31")]
    properties: Option<NamedSchemas>,
    #[prost(message, optional, tag = "32")]
    additional_properties: Option<Additional>,
    #[prost(message, optional, tag = "33")]
    default: Option<DefaultType>,
    #[prost(string, tag = "34")]
    description: String,
    #[prost(message, repeated, tag = "36")]
    extensions: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct SchemaItems {
    #[prost(message, repeated, tag = "1")]
    schemas: Vec<SchemaOrReference>,
}

#[derive(Clone, PartialEq, Message)]
struct Additional {
    #[prost(oneof = "AdditionalChoice", tags = "1, 2")]
    chosen: Option<AdditionalChoice>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AdditionalChoice {
    #[prost(message, tag = "1")]
    Schema(Box<SchemaOrReference>),
    #[prost(bool, tag = "2")]
    Flag(bool),
}

#[derive(Clone, PartialEq, Message)]
struct DefaultType {
    #[prost(oneof = "DefaultChoice", tags = "1, 2, 3")]
    chosen: Option<DefaultChoice>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum DefaultChoice {
    #[prost(double, tag = "1")]
    Number(f64),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(string, tag = "3")]
    Text(String),
}

fn schemas(of: &Document) -> BTreeMap<&str, &SchemaOrReference> {
    pairs(of.components.as_ref().and_then(|it| it.schemas.as_ref()))
}

fn pairs(of: Option<&NamedSchemas>) -> BTreeMap<&str, &SchemaOrReference> {
    of.into_iter().flat_map(|it| &it.pairs).map(|it| (&*it.name, it.value.as_ref().expect("a value"))).collect()
}

fn schema(of: &SchemaOrReference) -> &Schema {
    match &of.chosen {
        Some(Chosen::Schema(schema)) => schema,
        other => panic!("not a schema: {other:?}"),
    }
}

fn reference(of: &SchemaOrReference) -> &str {
    match &of.chosen {
        Some(Chosen::Reference(reference)) => &reference.reference,
        other => panic!("not a reference: {other:?}"),
    }
}

#[test]
fn a_schema_is_written_with_every_form_of_value() {
    let value = json!({
        "openapi": "3.0.0",
        "paths": { "/a": { "patch": { "tags": ["", "b"], "operationId": "p", "x-kubernetes-action": "patch" } } },
        "components": { "schemas": {
            "ref": { "$ref": "#/components/schemas/all" },
            "all": {
                "nullable": true, "maximum": 1.5, "minLength": 3, "required": ["a"], "enum": [1, "x"], "type": "object",
                "allOf": [{ "$ref": "#/components/schemas/ref" }], "items": { "type": "string" },
                "properties": { "p": { "default": false }, "q": { "default": 0 }, "r": { "default": "" }, "s": { "default": {} } },
                "additionalProperties": { "$ref": "#/components/schemas/ref" }, "description": "d",
                "x-kubernetes-list-map-keys": ["k"], "unknown": 1,
            },
            "closed": { "additionalProperties": false },
        } },
    });
    let read = Document::decode(&*document(&value)).expect("it is protobuf");
    assert_eq!(read.openapi, "3.0.0");
    let path = &read.paths.as_ref().expect("paths").path[0];
    let patch = path.value.as_ref().and_then(|it| it.patch.as_ref()).expect("an operation");
    assert_eq!((&*path.name, &*patch.operation_id), ("/a", "p"));
    assert_eq!(patch.tags, ["", "b"]);
    let any = |yaml: &str| AnyValue { yaml: yaml.to_owned() };
    let named = |name: &str, yaml: &str| NamedAny { name: name.to_owned(), value: Some(any(yaml)) };
    assert_eq!(patch.extensions, [named("x-kubernetes-action", "\"patch\"")]);

    let schemas = schemas(&read);
    assert_eq!(reference(schemas["ref"]), "#/components/schemas/all");
    let all = schema(schemas["all"]);
    assert!(all.nullable && (all.maximum - 1.5).abs() < f64::EPSILON && all.min_length == 3, "{all:?}");
    assert_eq!(all.required, ["a"]);
    assert_eq!(all.one_of_values, [any("1"), any("\"x\"")]);
    assert_eq!((&*all.r#type, &*all.description), ("object", "d"));
    assert_eq!(reference(&all.all_of[0]), "#/components/schemas/ref");
    assert_eq!(schema(&all.items.as_ref().expect("items").schemas[0]).r#type, "string");
    assert_eq!(all.extensions, [named("x-kubernetes-list-map-keys", "[\"k\"]")]);
    let default = |name: &str| {
        let properties = pairs(all.properties.as_ref());
        schema(properties[name]).default.clone().expect("there is a default").chosen
    };
    assert_eq!(default("p"), Some(DefaultChoice::Flag(false)));
    assert_eq!(default("q"), Some(DefaultChoice::Number(0.0)));
    assert_eq!(default("r"), Some(DefaultChoice::Text(String::new())));
    assert_eq!(default("s"), None);
    let additional = |name: &str| schema(schemas[name]).additional_properties.clone().and_then(|it| it.chosen);
    assert!(matches!(additional("all"), Some(AdditionalChoice::Schema(it)) if reference(&it).ends_with("/ref")));
    assert_eq!(additional("closed"), Some(AdditionalChoice::Flag(false)));
}

#[test]
fn every_document_there_is_has_its_paths_and_schemas_as_protobuf() {
    for (path, written) in &V3.documents {
        let value: Value = serde_json::from_slice(&written.plain()).expect("documents are JSON");
        let protobuf = written.v3_protobuf().expect("there is such a form");
        let read = Document::decode(&*protobuf.plain()).expect("it is protobuf");
        let count = |pointer: &str| value.pointer(pointer).and_then(Value::as_object).map_or(0, Map::len);
        assert_eq!(read.paths.as_ref().expect("paths").path.len(), count("/paths"), "{path}");
        assert_eq!(schemas(&read).len(), count("/components/schemas"), "{path}");
    }
}

/// Nothing of our own documents is without a field in the messages.
#[test]
fn every_field_of_our_documents_has_a_number() {
    for (path, written) in &V3.documents {
        let value: Value = serde_json::from_slice(&written.plain()).expect("documents are JSON");
        assert_known(path, &DOCUMENT, &value);
    }
}

fn assert_known(place: &str, message: &super::Message, value: &Value) {
    for (name, value) in value.as_object().unwrap_or_else(|| panic!("{place} is a map")) {
        let place = format!("{place}.{name}");
        match message.fields.iter().find(|it| it.0 == name) {
            Some((_, _, form)) => assert_form_known(&place, *form, value),
            None if name.starts_with("x-") && message.extensions != 0 => {}
            None => match message.named {
                Some((_, form)) => assert_form_known(&place, form, value),
                None => panic!("{place} has no number"),
            },
        }
    }
}

fn assert_form_known(place: &str, form: Form, value: &Value) {
    match form {
        Form::Message(message) => assert_known(place, message, value),
        Form::OrReference(_) if value.get("$ref").is_some() => assert_known(place, &REFERENCE, value),
        Form::OrReference(message) => assert_known(place, message, value),
        Form::Each(form) => items(value).for_each(|it| assert_form_known(place, *form, it)),
        Form::Map(form) => {
            value.as_object().into_iter().flatten().for_each(|it| assert_form_known(place, *form, it.1));
        }
        Form::Items => assert_form_known(place, Form::OrReference(&SCHEMA), value),
        Form::SchemaOrFlag if !value.is_boolean() => assert_form_known(place, Form::OrReference(&SCHEMA), value),
        _ => {}
    }
}
