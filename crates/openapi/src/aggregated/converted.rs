//! What a document of OpenAPI v2 says, as v3 says it, for servers that have no v3: as `openapiconv.ConvertV2ToV3` makes it, with what
//! that leaves out.

use serde_json::{Map, Value, json};

use super::Swagger;

const V2_DEFINITIONS: &str = "#/definitions/";
const V3_DEFINITIONS: &str = "#/components/schemas/";
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// The document of the one group and version.
pub(super) fn document(swagger: &Swagger) -> Value {
    let schemas: Map<String, Value> = swagger.definitions.iter().map(|(name, it)| (name.clone(), schema(it))).collect();
    let paths: Map<String, Value> = swagger.paths.iter().map(|(path, it)| (path.clone(), path_item(it))).collect();
    json!({ "openapi": "3.0.0", "info": swagger.info, "paths": paths, "components": { "schemas": schemas } })
}

fn path_item(v2: &Value) -> Value {
    let mut out = kept(v2, &["$ref"]);
    for method in METHODS {
        if v2[method].is_object() {
            out.insert(method.into(), operation(&v2[method]));
        }
    }
    let parameters: Vec<Value> = members(&v2["parameters"]).map(parameter).collect();
    if !parameters.is_empty() {
        out.insert("parameters".into(), parameters.into());
    }
    out.into()
}

fn operation(v2: &Value) -> Value {
    let mut out = kept(v2, &["description", "externalDocs", "tags", "summary", "deprecated", "operationId"]);
    let mut parameters = Vec::new();
    for it in members(&v2["parameters"]) {
        if it["name"] == "body" && it["schema"].is_object() {
            let body = content(&v2["consumes"], &it["schema"]).map_or_else(|| json!({}), |it| json!({ "content": it }));
            out.insert("requestBody".into(), body);
        } else {
            parameters.push(parameter(it));
        }
    }
    if !parameters.is_empty() {
        out.insert("parameters".into(), parameters.into());
    }
    let responses = v2["responses"].as_object().into_iter().flatten();
    let responses: Map<String, Value> = responses
        .map(|(code, it)| {
            let is_extension = code.starts_with("x-");
            (code.clone(), if is_extension { it.clone() } else { response(it, &v2["produces"]) })
        })
        .collect();
    out.insert("responses".into(), responses.into());
    out.into()
}

fn parameter(v2: &Value) -> Value {
    let mut out = kept(v2, &["name", "description", "in", "required", "allowEmptyValue"]);
    if let Some(reference) = v2["$ref"].as_str() {
        out.insert("$ref".into(), reference.replacen("#/parameters/", "#/components/parameters/", 1).into());
    } else if v2["schema"].is_object() {
        out.insert("schema".into(), schema(&v2["schema"]));
    } else {
        out.insert(
            "schema".into(),
            kept(v2, &["type", "format", "uniqueItems"]).into_iter().filter(is_plain).collect(),
        );
    }
    out.into()
}

/// Extensions belong to the parameter itself.
fn is_plain((name, _): &(String, Value)) -> bool {
    !name.starts_with("x-")
}

fn response(v2: &Value, produces: &Value) -> Value {
    let mut out = kept(v2, &["description"]);
    if let Some(reference) = v2["$ref"].as_str() {
        out.insert("$ref".into(), reference.replacen("#/responses/", "#/components/responses/", 1).into());
    }
    if v2["schema"].is_object()
        && let Some(content) = content(produces, &v2["schema"])
    {
        out.insert("content".into(), content);
    }
    out.into()
}

/// The same schema for each media type; `None` where there is no list of them.
fn content(media_types: &Value, v2: &Value) -> Option<Value> {
    let media_types = media_types.as_array()?.iter().filter_map(Value::as_str);
    let converted = schema(v2);
    Some(media_types.map(|it| (it.to_owned(), json!({ "schema": converted }))).collect::<Map<_, _>>().into())
}

/// What has no nested schema is said in the same words. A reference with anything beside it is wrapped (`WrapRefs`): beside one nothing
/// counts in v3.
fn schema(v2: &Value) -> Value {
    let Some(fields) = v2.as_object() else { return v2.clone() };
    let mut out = Map::new();
    let mut reference = None;
    for (name, value) in fields {
        let converted = match &**name {
            "$ref" => {
                let text = value.as_str().unwrap_or_default();
                reference = Some(text.replacen(V2_DEFINITIONS, V3_DEFINITIONS, 1));
                continue;
            }
            "properties" | "patternProperties" => each_member(value),
            "items" | "allOf" | "anyOf" | "oneOf" => match value {
                Value::Array(all) => all.iter().map(schema).collect(),
                one => schema(one),
            },
            "additionalProperties" | "additionalItems" | "not" => schema(value),
            _ => value.clone(),
        };
        out.insert(name.clone(), converted);
    }
    match reference {
        Some(reference) if out.is_empty() => json!({ "$ref": reference }),
        Some(reference) => {
            out.insert("allOf".into(), json!([{ "$ref": reference }]));
            out.into()
        }
        None => out.into(),
    }
}

fn each_member(value: &Value) -> Value {
    value.as_object().map_or_else(
        || value.clone(),
        |it| it.iter().map(|(name, it)| (name.clone(), schema(it))).collect::<Map<_, _>>().into(),
    )
}

/// These fields, and extensions.
fn kept(v2: &Value, names: &[&str]) -> Map<String, Value> {
    let fields = v2.as_object().into_iter().flatten();
    let is_kept = |name: &str| name.starts_with("x-") || names.contains(&name);
    fields.filter(|it| is_kept(it.0)).map(|(name, it)| (name.clone(), it.clone())).collect()
}

fn members(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_said_in_the_words_of_v3() {
        let to = |v2: Value| schema(&v2);
        for (v2, v3) in [
            (json!({ "$ref": "#/definitions/A" }), json!({ "$ref": "#/components/schemas/A" })),
            (
                json!({ "$ref": "#/definitions/A", "description": "d", "default": {} }),
                json!({ "description": "d", "default": {}, "allOf": [{ "$ref": "#/components/schemas/A" }] }),
            ),
            (
                json!({ "type": "array", "items": { "$ref": "#/definitions/A" } }),
                json!({ "type": "array", "items": { "$ref": "#/components/schemas/A" } }),
            ),
            (
                json!({ "additionalProperties": { "properties": { "a": { "$ref": "#/definitions/A" } } } }),
                json!({ "additionalProperties": { "properties": { "a": { "$ref": "#/components/schemas/A" } } } }),
            ),
            // A property may be called as a keyword is.
            (
                json!({ "properties": { "$ref": { "type": "string" }, "items": { "type": "string" } } }),
                json!({ "properties": { "$ref": { "type": "string" }, "items": { "type": "string" } } }),
            ),
            (json!({ "additionalProperties": false, "x-a": 1 }), json!({ "additionalProperties": false, "x-a": 1 })),
            (
                json!({ "properties": 1, "items": "x", "allOf": null }),
                json!({ "properties": 1, "items": "x", "allOf": null }),
            ),
            (json!([]), json!([])),
        ] {
            assert_eq!(to(v2.clone()), v3, "{v2}");
        }
    }

    #[test]
    fn bodies_and_answers_are_content() {
        let v2 = json!({
            "operationId": "createFoo", "x-kubernetes-action": "post", "schemes": ["https"],
            "consumes": ["application/json"], "produces": ["application/json", "application/yaml"],
            "parameters": [
                { "name": "body", "in": "body", "required": true, "schema": { "$ref": "#/definitions/Foo" } },
                { "name": "pretty", "in": "query", "type": "string", "uniqueItems": true, "x-a": 1 },
                { "$ref": "#/parameters/limit" },
            ],
            "responses": { "200": { "description": "OK", "schema": { "$ref": "#/definitions/Foo" } },
                "401": { "description": "Unauthorized" }, "x-b": 2 },
        });
        let foo = json!({ "schema": { "$ref": "#/components/schemas/Foo" } });
        assert_eq!(
            operation(&v2),
            json!({
                "operationId": "createFoo", "x-kubernetes-action": "post",
                "requestBody": { "content": { "application/json": foo } },
                "parameters": [
                    { "name": "pretty", "in": "query", "x-a": 1, "schema": { "type": "string", "uniqueItems": true } },
                    { "$ref": "#/components/parameters/limit" },
                ],
                "responses": {
                    "200": { "description": "OK", "content": { "application/json": foo, "application/yaml": foo } },
                    "401": { "description": "Unauthorized" }, "x-b": 2,
                },
            })
        );
        for odd in [json!(1), json!([]), json!({ "parameters": {}, "responses": [], "consumes": 1 })] {
            assert_eq!(operation(&odd), json!({ "responses": {} }), "{odd}");
        }
    }
}
