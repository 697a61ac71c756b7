//! The schemas of custom resources in the documents (`pkg/controller/openapi/builder` of apiextensions-apiserver).

use corten_kinds::{Kind, Schema};
use serde_json::{Map, Value, json};

use super::{Dialect, OBJECT_META, Schemas, gvk};

/// The schema of a whole object: its own, and what every object has.
pub(super) fn written(schemas: &Schemas, kind: &Kind) -> Value {
    let Schema::Structural(custom) = &kind.schema else { return json!({ "type": "object" }) };
    let mut schema: Value = serde_json::from_str(&custom.open_api).unwrap_or_default();
    if schemas.dialect == Dialect::V2 && preserves(&schema) {
        // A client that checks by this document takes every property that is not in it to be unknown (`buildKubeNative`).
        schema = json!({ "type": "object" });
    } else {
        if schemas.dialect == Dialect::V2 {
            for_version_2(&mut schema);
        }
        with_head(schemas, &mut schema);
        with_embedded_heads(schemas, &mut schema);
    }
    let resource = &kind.resource;
    schema["x-kubernetes-group-version-kind"] = json!([gvk(&resource.group, &resource.version, &resource.kind)]);
    schema
}

fn with_head(schemas: &Schemas, schema: &mut Value) {
    if !schema.is_object() {
        *schema = json!({});
    }
    schema["type"] = "object".into();
    with_head_properties(schemas, schema);
}

/// What every object has, also in objects that are within this one (`addEmbeddedProperties`).
fn with_embedded_heads(schemas: &Schemas, schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for name in ["items", "additionalProperties"] {
        fields.get_mut(name).into_iter().for_each(|it| with_embedded_heads(schemas, it));
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, it)| with_embedded_heads(schemas, it));
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    if !is_embedded || schemas.dialect == Dialect::V2 && preserves(schema) {
        return;
    }
    with_head_properties(schemas, schema);
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|it| it == name) {
            required.push(name.into());
        }
    }
    schema["required"] = required.into();
}

fn preserves(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

fn with_head_properties(schemas: &Schemas, schema: &mut Value) {
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let words =
        |field: &str| json!({ "type": "string", "description": schemas.words("io.k8s.api.core.v1.ConfigMap", field) });
    let description = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
    let properties = &mut schema["properties"];
    properties["apiVersion"] = words("apiVersion");
    properties["kind"] = words("kind");
    properties["metadata"] =
        schemas.referring(OBJECT_META, Map::from_iter([("description".into(), json!(description))]));
}

/// What version 2 cannot say is left out; what would say something wrong then is left open (`ToStructuralOpenAPIV2`).
fn for_version_2(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for name in ["oneOf", "anyOf", "allOf", "not", "default", "x-kubernetes-validations"] {
        fields.shift_remove(name);
    }
    let is_nullable = fields.shift_remove("nullable") == Some(true.into());
    let is_open = fields.get("x-kubernetes-preserve-unknown-fields") == Some(&true.into());
    if is_nullable || is_open {
        for name in ["type", "items", "properties", "additionalProperties", "required"] {
            fields.shift_remove(name);
        }
    }
    if fields.get("x-kubernetes-int-or-string") == Some(&true.into()) {
        fields.insert("format".into(), "int-or-string".into());
    }
    for name in ["items", "additionalProperties"] {
        fields.get_mut(name).into_iter().for_each(for_version_2);
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, it)| for_version_2(it));
}
