//! Definitions in apiextensions.k8s.io/v1beta1, which is not served any more and in which they are stored all the same, as JSON
//! (`apiextensions/v1/conversion.go`).
//!
//! What all versions have alike stands once, beside them: schema, subresources, columns and selectable fields.

use serde_json::{Map, Value, json};

use crate::go_json;

const V1BETA1: &str = "apiextensions.k8s.io/v1beta1";
const V1: &str = "apiextensions.k8s.io/v1";
const V1_TYPE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

/// What stands once, with the name it then has.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// In the order of the struct.
const SPEC: [&str; 11] = [
    "group",
    "version",
    "names",
    "scope",
    "validation",
    "subresources",
    "versions",
    "additionalPrinterColumns",
    "selectableFields",
    "conversion",
    "preserveUnknownFields",
];

pub(crate) fn is_v1beta1(api_version: &str) -> bool {
    api_version == V1BETA1
}

/// A definition of v1, in the order in which it is stored.
pub(crate) fn to_v1beta1(definition: Value) -> Value {
    let mut definition = go_json::in_order_of_fields(definition, V1_TYPE);
    definition["apiVersion"] = V1BETA1.into();
    if let Some(spec) = definition["spec"].as_object_mut() {
        *spec = older_spec(std::mem::take(spec));
    }
    if let Some(status) = definition["status"].as_object_mut() {
        *status = with_lists(std::mem::take(status));
    }
    definition
}

/// Both lists are written even where there is none.
fn with_lists(mut status: Map<String, Value>) -> Map<String, Value> {
    let of =
        |it: &str, status: &mut Map<String, Value>| (it.to_owned(), status.shift_remove(it).unwrap_or(Value::Null));
    let names = ["conditions", "acceptedNames", "storedVersions"];
    let mut ordered: Map<String, Value> = names.iter().map(|it| of(it, &mut status)).collect();
    ordered.extend(status);
    ordered
}

fn older_spec(mut spec: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(mut versions)) = spec.shift_remove("versions") else { return spec };
    let name = versions.first().map_or(Value::Null, |it| it["name"].clone());
    spec.insert("version".into(), name);
    let is_alike = |field: &str| versions.iter().all(|it| same(&it[field], &versions[0][field]));
    let has_one_schema = is_alike("schema");
    let shared: Vec<_> = SHARED.iter().filter(|it| is_alike(it.0)).collect();
    for (field, beside) in shared {
        // Fields are selectable by what the schema says of them.
        if *field == "selectableFields" && !has_one_schema {
            continue;
        }
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(value) = version.shift_remove(*field) {
                spec.insert((*beside).to_owned(), value);
            }
        }
    }
    for version in &mut versions {
        rename_paths(&mut version["additionalPrinterColumns"], "jsonPath", "JSONPath");
        drop_null(version, "additionalPrinterColumns");
    }
    if let Some(columns) = spec.get_mut("additionalPrinterColumns") {
        rename_paths(columns, "jsonPath", "JSONPath");
    }
    spec.insert("versions".into(), Value::Array(versions));
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut)
        && let Some(Value::Object(mut webhook)) = conversion.shift_remove("webhook")
    {
        let client = webhook.shift_remove("clientConfig").map(|it| ("webhookClientConfig".to_owned(), it));
        conversion.extend(client);
        let reviews = webhook.shift_remove("conversionReviewVersions");
        conversion.extend(reviews.map(|it| ("conversionReviewVersions".to_owned(), it)));
    }
    spec.entry("preserveUnknownFields").or_insert(Value::Bool(false));
    SPEC.iter().filter_map(|it| spec.shift_remove(*it).map(|value| ((*it).to_owned(), value))).collect()
}

/// No list that is empty differs from one that is not there.
fn same(a: &Value, b: &Value) -> bool {
    let is_none = |it: &Value| it.is_null() || it.as_array().is_some_and(Vec::is_empty);
    a == b || is_none(a) && is_none(b)
}

/// Columns with another name for their path.
fn rename_paths(columns: &mut Value, from: &str, to: &str) {
    for column in columns.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.shift_remove(from) {
            column.insert(to.to_owned(), path);
        }
    }
}

fn drop_null(object: &mut Value, field: &str) {
    if object[field].is_null()
        && let Some(object) = object.as_object_mut()
    {
        object.shift_remove(field);
    }
}

/// A definition of v1beta1 as one of v1.
pub(crate) fn from_v1beta1(mut definition: Value) -> Value {
    definition["apiVersion"] = V1.into();
    if let Some(spec) = definition["spec"].as_object_mut() {
        *spec = newer_spec(std::mem::take(spec));
    }
    for list in ["conditions", "storedVersions"] {
        if definition["status"].is_object() {
            drop_null(&mut definition["status"], list);
        }
    }
    definition
}

fn newer_spec(mut spec: Map<String, Value>) -> Map<String, Value> {
    let name = spec.shift_remove("version").unwrap_or_default();
    let mut versions = match spec.shift_remove("versions") {
        Some(Value::Array(versions)) if !versions.is_empty() => versions,
        _ => vec![json!({ "name": name, "served": true, "storage": true })],
    };
    for (field, beside) in SHARED {
        let Some(shared) = spec.shift_remove(beside).filter(|it| !it.is_null()) else { continue };
        versions.iter_mut().for_each(|it| it[field] = shared.clone());
    }
    for version in &mut versions {
        rename_paths(&mut version["additionalPrinterColumns"], "JSONPath", "jsonPath");
        drop_null(version, "additionalPrinterColumns");
    }
    spec.insert("versions".into(), Value::Array(versions));
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let client = conversion.shift_remove("webhookClientConfig").filter(|it| !it.is_null());
        let reviews = conversion.shift_remove("conversionReviewVersions").filter(|it| !it.is_null());
        let mut webhook = Map::new();
        webhook.extend(client.map(|it| ("clientConfig".to_owned(), it)));
        webhook.extend(reviews.map(|it| ("conversionReviewVersions".to_owned(), it)));
        if !webhook.is_empty() {
            conversion.insert("webhook".into(), Value::Object(webhook));
        }
    }
    match spec.get("preserveUnknownFields") {
        // In v1beta1 that is what a definition does that says nothing, in v1 what is not written.
        None | Some(Value::Null) => spec.insert("preserveUnknownFields".into(), Value::Bool(true)),
        Some(Value::Bool(false)) => spec.shift_remove("preserveUnknownFields"),
        Some(_) => None,
    };
    spec
}
