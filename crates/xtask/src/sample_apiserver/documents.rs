//! What the server says of itself: discovery in the older form, which aggregators read, too, and OpenAPI.

use serde_json::{Value, json};

pub(super) fn of(path: &str) -> Option<Value> {
    match path.trim_end_matches('/') {
        "/apis" => Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group()] })),
        "/apis/wardle.example.com" => Some(group()),
        "/apis/wardle.example.com/v1" => Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "wardle.example.com/v1",
            "resources": [{ "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder",
                            "verbs": ["create", "delete", "get", "list", "update", "watch"], "shortNames": ["fl"] }],
        })),
        "/openapi/v3" => Some(json!({ "paths": { "apis/wardle.example.com/v1": {
            "serverRelativeURL": "/openapi/v3/apis/wardle.example.com/v1?hash=1" } } })),
        "/openapi/v3/apis/wardle.example.com/v1" => Some(json!({
            "openapi": "3.0.0", "info": { "title": "wardle", "version": "v1" }, "paths": paths("#/components/schemas/"),
            "components": { "schemas": schemas() },
        })),
        "/openapi/v2" => Some(json!({
            "swagger": "2.0", "info": { "title": "wardle", "version": "v1" }, "paths": paths("#/definitions/"),
            "definitions": schemas(),
        })),
        "/healthz" | "/livez" | "/readyz" => Some(json!("ok")),
        _ => None,
    }
}

fn group() -> Value {
    let version = json!({ "groupVersion": "wardle.example.com/v1", "version": "v1" });
    json!({ "kind": "APIGroup", "apiVersion": "v1", "name": "wardle.example.com", "versions": [version],
            "preferredVersion": version })
}

fn gvk() -> Value {
    json!({ "group": "wardle.example.com", "version": "v1", "kind": "Flunder" })
}

fn schemas() -> Value {
    json!({ "com.example.wardle.v1.Flunder": {
        "type": "object", "description": "A Flunder is what nobody knows.",
        "properties": {
            "apiVersion": { "type": "string" }, "kind": { "type": "string" }, "metadata": { "type": "object" },
            "spec": { "type": "object", "description": "What it is to be.", "properties": {
                "reference": { "type": "string", "description": "Whom it refers to." } } },
        },
        "x-kubernetes-group-version-kind": [gvk()],
    } })
}

fn paths(folder: &str) -> Value {
    let schema = json!({ "$ref": format!("{folder}com.example.wardle.v1.Flunder") });
    let content = json!({ "application/json": { "schema": schema } });
    json!({ "/apis/wardle.example.com/v1/namespaces/{namespace}/flunders/{name}": { "get": {
        "operationId": "readWardleV1Flunder",
        "responses": { "200": { "description": "OK", "content": content, "schema": schema } },
        "x-kubernetes-action": "get", "x-kubernetes-group-version-kind": gvk(),
    } } })
}
