//! OpenAPI v2 as protobuf, for clients that ask for it before JSON. Field numbers are those of `openapi.v2` in gnostic's
//! `OpenAPIv2.proto`; only messages and fields that our document has are here.

use prost::Message;
use serde_json::Value;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// A value of any shape, as YAML; JSON is YAML.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(string, tag = "2")]
    pub(super) yaml: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schema {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(string, repeated, tag = "19")]
    pub(super) required: Vec<String>,
    #[prost(message, optional, boxed, tag = "21")]
    pub(super) additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    pub(super) r#type: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    pub(super) items: Option<Items>,
    #[prost(message, optional, tag = "25")]
    pub(super) properties: Option<NamedSchemas>,
    #[prost(message, repeated, tag = "31")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) schema: Option<Box<Schema>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    pub(super) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Items {
    #[prost(message, repeated, tag = "1")]
    pub(super) schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Schema>,
}

/// `Properties` and `Definitions`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BodyParameter {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) place: String,
    #[prost(bool, tag = "4")]
    pub(super) required: bool,
    #[prost(message, optional, tag = "5")]
    pub(super) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryParameter {
    #[prost(string, tag = "2")]
    pub(super) place: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "6")]
    pub(super) r#type: String,
    #[prost(bool, tag = "20")]
    pub(super) unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) place: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) r#type: String,
    #[prost(bool, tag = "19")]
    pub(super) unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    pub(super) query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    pub(super) path: Option<PathParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parameter {
    #[prost(message, optional, tag = "1")]
    pub(super) body: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) non_body: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(super) parameter: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    pub(super) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(message, optional, tag = "2")]
    pub(super) schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    pub(super) response: Option<Response>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedResponse {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Responses {
    #[prost(message, repeated, tag = "1")]
    pub(super) code: Vec<NamedResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(string, repeated, tag = "1")]
    pub(super) tags: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "5")]
    pub(super) operation_id: String,
    #[prost(string, repeated, tag = "6")]
    pub(super) produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub(super) consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    pub(super) responses: Option<Responses>,
    #[prost(string, repeated, tag = "10")]
    pub(super) schemes: Vec<String>,
    #[prost(message, repeated, tag = "13")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathItem {
    #[prost(message, optional, tag = "2")]
    pub(super) get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    pub(super) put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    pub(super) post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    pub(super) delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    pub(super) patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    pub(super) parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(super) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Document {
    #[prost(string, tag = "1")]
    pub(super) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(super) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(super) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(super) definitions: Option<NamedSchemas>,
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    value[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn vendor_extensions(value: &Value) -> Vec<NamedAny> {
    let fields = value.as_object().into_iter().flatten().filter(|it| it.0.starts_with("x-"));
    let named = |(name, value): (&String, &Value)| NamedAny {
        name: name.clone(),
        value: Some(AnyValue { yaml: value.to_string() }),
    };
    fields.map(named).collect()
}

pub(super) fn named_schemas<'a>(schemas: impl IntoIterator<Item = (&'a String, &'a Value)>) -> NamedSchemas {
    let named = |(name, value): (&String, &Value)| NamedSchema { name: name.clone(), value: Some(schema(value)) };
    NamedSchemas { additional_properties: schemas.into_iter().map(named).collect() }
}

/// The message for a schema of the JSON document.
pub(super) fn schema(value: &Value) -> Schema {
    let boxed = |it: &Value| Box::new(AdditionalProperties { schema: Some(Box::new(schema(it))) });
    Schema {
        reference: text(value, "$ref"),
        format: text(value, "format"),
        description: text(value, "description"),
        required: texts(value, "required"),
        additional_properties: value.get("additionalProperties").map(boxed),
        r#type: value["type"].as_str().map(|it| TypeItem { value: vec![it.to_owned()] }),
        items: value.get("items").map(|it| Items { schema: vec![schema(it)] }),
        properties: value["properties"].as_object().map(named_schemas),
        vendor_extension: vendor_extensions(value),
    }
}

fn parameters(value: &Value) -> Vec<ParametersItem> {
    value["parameters"].as_array().into_iter().flatten().map(parameter).collect()
}

fn parameter(value: &Value) -> ParametersItem {
    let (name, place, description) = (text(value, "name"), text(value, "in"), text(value, "description"));
    let required = value["required"].as_bool().unwrap_or_default();
    let (r#type, unique_items) = (text(value, "type"), value["uniqueItems"].as_bool().unwrap_or_default());
    let parameter = match &*place {
        "body" => {
            let body = BodyParameter { description, name, place, required, schema: value.get("schema").map(schema) };
            Parameter { body: Some(body), non_body: None }
        }
        "path" => {
            let path = Some(PathParameter { required, place, description, name, r#type, unique_items });
            Parameter { body: None, non_body: Some(NonBodyParameter { query: None, path }) }
        }
        _ => {
            let query = Some(QueryParameter { place, description, name, r#type, unique_items });
            Parameter { body: None, non_body: Some(NonBodyParameter { query, path: None }) }
        }
    };
    ParametersItem { parameter: Some(parameter) }
}

fn operation(value: &Value) -> Operation {
    let response = |(code, value): (&String, &Value)| NamedResponse {
        name: code.clone(),
        value: Some(ResponseValue {
            response: Some(Response {
                description: text(value, "description"),
                schema: value.get("schema").map(|it| SchemaItem { schema: Some(schema(it)) }),
            }),
        }),
    };
    Operation {
        tags: texts(value, "tags"),
        description: text(value, "description"),
        operation_id: text(value, "operationId"),
        schemes: texts(value, "schemes"),
        produces: texts(value, "produces"),
        consumes: texts(value, "consumes"),
        parameters: parameters(value),
        responses: value["responses"].as_object().map(|it| Responses { code: it.iter().map(response).collect() }),
        vendor_extension: vendor_extensions(value),
    }
}

pub(super) fn path(name: &str, value: &Value) -> NamedPathItem {
    let of = |method: &str| value.get(method).map(operation);
    let item = PathItem {
        get: of("get"),
        put: of("put"),
        post: of("post"),
        delete: of("delete"),
        patch: of("patch"),
        parameters: parameters(value),
    };
    NamedPathItem { name: name.to_owned(), value: Some(item) }
}
