//! The keywords of a schema have values that are known, and fit each other. A schema that breaks this may still be structural
//! (`SchemaErrors` of `ValidateCustomResourceDefinitionOpenAPISchema`).

use corten_cel::ListKind;
use corten_meta::Violation;
use corten_schema::Cursor;

use super::parts;

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const REASONS: &[&str] = &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    parts::all(schema, &mut |part| {
        properties(part);
        if !part.at("type").is_empty() {
            part.at("type").one_of(TYPES);
        }
    });
    parts::structural(schema, &mut |part| {
        let preserves = part.at("x-kubernetes-preserve-unknown-fields");
        if preserves.exists() && !preserves.bool() {
            preserves.invalid("must be true or undefined");
        }
        map(part);
        list(part);
        rules(part);
    });
}

fn properties(schema: Cursor<'_>) {
    let (properties, others) = (schema.at("properties"), schema.at("additionalProperties"));
    if !properties.is_empty() && others.exists() && others.value() != true {
        others.forbidden("additionalProperties and properties are mutual exclusive");
    }
}

fn map(schema: Cursor<'_>) {
    let (map, kind) = (schema.at("x-kubernetes-map-type"), schema.at("type"));
    if map.exists() {
        map.one_of(&["atomic", "granular"]);
        if kind.str() != "object" {
            kind.invalid_as(kind.str(), "must be object if x-kubernetes-map-type is specified");
        }
    }
}

fn list(schema: Cursor<'_>) {
    let (list, keys) = (schema.at("x-kubernetes-list-type"), schema.at("x-kubernetes-list-map-keys"));
    let kind = schema.at("type");
    if list.exists() {
        list.one_of(&ListKind::NAMES);
        if kind.str() != "array" {
            kind.invalid_as(kind.str(), "must be array if x-kubernetes-list-type is specified");
        }
    }
    if list.str() == ListKind::MAP && keys.is_empty() {
        keys.missing("must not be empty if x-kubernetes-list-type is map");
    }
    if !keys.is_empty() && list.str() != ListKind::MAP {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        list.report(Violation::invalid(list.path(), format!("{:?}", list.str()), detail));
    }
    let items = schema.at("items");
    for key in keys.each() {
        let property = items.at("properties").key(key.str());
        if !property.exists() {
            key.invalid("entries must all be names of item properties");
        } else if matches!(property.at("type").str(), "array" | "object") {
            property.at("type").invalid("must be a scalar type if parent array's x-kubernetes-list-type is map");
        }
    }
}

fn rules(schema: Cursor<'_>) {
    for validation in schema.list("x-kubernetes-validations") {
        let rule = validation.at("rule");
        if rule.str().trim().is_empty() {
            rule.missing("rule is not specified");
        }
        let message = validation.at("message");
        if message.str().contains('\n') {
            message.invalid("message must not contain line breaks");
        }
        if !validation.at("reason").is_empty() {
            validation.at("reason").one_of(REASONS);
        }
    }
}
