//! OpenAPI v2. Field numbers are those of `openapi.v2` in gnostic's `OpenAPIv2.proto`; only messages and fields that our document
//! has are here.

use prost::Message;
use serde_json::Value;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Info {
    #[prost(string, tag = "1")]
    pub(crate) title: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

/// A value of any shape, as YAML; JSON is YAML.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(string, tag = "2")]
    pub(crate) yaml: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Schema {
    #[prost(string, tag = "1")]
    pub(crate) reference: String,
    #[prost(string, tag = "2")]
    pub(crate) format: String,
    #[prost(string, tag = "4")]
    pub(crate) description: String,
    #[prost(string, repeated, tag = "19")]
    pub(crate) required: Vec<String>,
    #[prost(message, optional, boxed, tag = "21")]
    pub(crate) additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    pub(crate) r#type: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    pub(crate) items: Option<Items>,
    #[prost(message, optional, tag = "25")]
    pub(crate) properties: Option<NamedSchemas>,
    #[prost(message, repeated, tag = "31")]
    pub(crate) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AdditionalProperties {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) schema: Option<Box<Schema>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    pub(crate) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Items {
    #[prost(message, repeated, tag = "1")]
    pub(crate) schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<Schema>,
}

/// `Properties` and `Definitions`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    pub(crate) additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BodyParameter {
    #[prost(string, tag = "1")]
    pub(crate) description: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) place: String,
    #[prost(bool, tag = "4")]
    pub(crate) required: bool,
    #[prost(message, optional, tag = "5")]
    pub(crate) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryParameter {
    #[prost(string, tag = "2")]
    pub(crate) place: String,
    #[prost(string, tag = "3")]
    pub(crate) description: String,
    #[prost(string, tag = "4")]
    pub(crate) name: String,
    #[prost(string, tag = "6")]
    pub(crate) r#type: String,
    #[prost(bool, tag = "20")]
    pub(crate) unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PathParameter {
    #[prost(bool, tag = "1")]
    pub(crate) required: bool,
    #[prost(string, tag = "2")]
    pub(crate) place: String,
    #[prost(string, tag = "3")]
    pub(crate) description: String,
    #[prost(string, tag = "4")]
    pub(crate) name: String,
    #[prost(string, tag = "5")]
    pub(crate) r#type: String,
    #[prost(bool, tag = "19")]
    pub(crate) unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    pub(crate) query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    pub(crate) path: Option<PathParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Parameter {
    #[prost(message, optional, tag = "1")]
    pub(crate) body: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    pub(crate) non_body: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(crate) parameter: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    pub(crate) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Response {
    #[prost(string, tag = "1")]
    pub(crate) description: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    pub(crate) response: Option<Response>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Responses {
    #[prost(message, repeated, tag = "1")]
    pub(crate) code: Vec<NamedResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Operation {
    #[prost(string, repeated, tag = "1")]
    pub(crate) tags: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) description: String,
    #[prost(string, tag = "5")]
    pub(crate) operation_id: String,
    #[prost(string, repeated, tag = "6")]
    pub(crate) produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub(crate) consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    pub(crate) responses: Option<Responses>,
    #[prost(string, repeated, tag = "10")]
    pub(crate) schemes: Vec<String>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PathItem {
    #[prost(message, optional, tag = "2")]
    pub(crate) get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    pub(crate) put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    pub(crate) post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    pub(crate) delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    pub(crate) patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(crate) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Document {
    #[prost(string, tag = "1")]
    pub(crate) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(crate) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(crate) definitions: Option<NamedSchemas>,
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

pub(crate) fn named_schemas<'a>(schemas: impl IntoIterator<Item = (&'a String, &'a Value)>) -> NamedSchemas {
    let named = |(name, value): (&String, &Value)| NamedSchema { name: name.clone(), value: Some(schema(value)) };
    NamedSchemas { additional_properties: schemas.into_iter().map(named).collect() }
}

/// The message for a schema of the JSON document.
pub(crate) fn schema(value: &Value) -> Schema {
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

pub(crate) fn path(name: &str, value: &Value) -> NamedPathItem {
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
