//! Schemas of custom resources must be structural: every field has a type, and what constrains values says nothing about shape
//! (`NewStructural` and `ValidateStructural` of apiextensions' schema).
//!
//! A schema is walked as deep as it goes, which is never deeper than an object may be (`corten_meta::depth`).

use corten_schema::Cursor;

/// Where in a schema a part of it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    Field,
    Item,
    Values,
    /// Below `allOf`, `anyOf`, `oneOf` or `not`: rules about values only.
    Rule,
}

pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    if schema.exists() {
        part(schema, Position::Root);
    }
}

fn part(schema: Cursor<'_>, place: Position) {
    unsupported(schema);
    if place == Position::Rule {
        rule(schema);
    } else {
        kind(schema, place);
        embedded_resource(schema);
        if place == Position::Root || schema.at("x-kubernetes-embedded-resource").bool() {
            metadata(schema.at("properties").key("metadata"), place);
        }
    }
    descend(schema, place);
}

/// What the schemas of other programs have and these have not.
fn unsupported(schema: Cursor<'_>) {
    if schema.at("uniqueItems").bool() {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        schema.at("uniqueItems").forbidden(detail);
    }
    for name in ["$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id"] {
        if !schema.at(name).is_empty() {
            schema.at(name).forbidden(&format!("{name} is not supported"));
        }
    }
    let items = schema.at("items");
    if items.value().is_array() {
        items.forbidden("items must be a schema object and not an array");
    }
}

fn kind(schema: Cursor<'_>, place: Position) {
    let kind = schema.at("type");
    let any =
        schema.at("x-kubernetes-int-or-string").bool() || schema.at("x-kubernetes-preserve-unknown-fields").bool();
    match (place, kind.str()) {
        (Position::Root, "") => kind.missing("must not be empty at the root"),
        (Position::Root, "object") => {}
        (Position::Root, other) => kind.invalid_as(other, "must be object at the root"),
        (_, "") if any => {}
        (Position::Field, "") => kind.missing("must not be empty for specified object fields"),
        (Position::Item, "") => kind.missing("must not be empty for specified array items"),
        (Position::Values, "") => kind.missing("must not be empty for specified object fields"),
        _ => {}
    }
    if kind.str() == "array" && !schema.at("items").exists() {
        schema.at("items").missing("must be specified");
    }
    if schema.at("x-kubernetes-int-or-string").bool() && !kind.is_empty() {
        kind.invalid("must be empty if x-kubernetes-int-or-string is true");
    }
}

fn embedded_resource(schema: Cursor<'_>) {
    if !schema.at("x-kubernetes-embedded-resource").bool() {
        return;
    }
    let kind = schema.at("type");
    if kind.str() != "object" {
        kind.invalid_as(kind.str(), "must be object if x-kubernetes-embedded-resource is true");
    }
    if schema.at("properties").is_empty() && !schema.at("x-kubernetes-preserve-unknown-fields").bool() {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        schema.at("properties").missing(detail);
    }
}

/// A custom resource's metadata is that of every object. A resource within another may have a schema of it.
fn metadata(metadata: Cursor<'_>, place: Position) {
    if !metadata.exists() {
        return;
    }
    if metadata.at("type").str() != "object" {
        metadata.at("type").invalid_as(metadata.at("type").str(), "must be object");
    }
    let only = |it: &&str| !matches!(*it, "name" | "generateName");
    if place == Position::Root && metadata.at("properties").entries().any(|(name, _)| only(&name)) {
        metadata.forbidden(
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        );
    }
}

/// Below a logical word nothing may say what the shape is.
fn rule(schema: Cursor<'_>) {
    for name in ["type", "default", "title", "description", "additionalProperties"] {
        if !schema.at(name).is_empty() {
            schema.at(name).forbidden("must be empty to be structural");
        }
    }
    if schema.at("nullable").bool() {
        schema.at("nullable").forbidden("must be false to be structural");
    }
    for name in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ] {
        if schema.at(name).exists() && schema.at(name).value() != false {
            schema.at(name).forbidden("must be false to be structural");
        }
    }
}

fn descend(schema: Cursor<'_>, place: Position) {
    let below = |ordinary: Position| if place == Position::Rule { Position::Rule } else { ordinary };
    for (_, property) in schema.at("properties").entries() {
        part(property, below(Position::Field));
    }
    if schema.at("additionalProperties").map().is_some() {
        part(schema.at("additionalProperties"), below(Position::Values));
    }
    if schema.at("items").map().is_some() {
        part(schema.at("items"), below(Position::Item));
    }
    // As in `validateNestedValueValidation`: the one pattern that allows types below, integer or string, is what
    // int-or-string implies.
    if schema.at("x-kubernetes-int-or-string").bool() {
        return;
    }
    for word in ["allOf", "anyOf", "oneOf"] {
        schema.list(word).for_each(|it| part(it, Position::Rule));
    }
    if schema.at("not").exists() {
        part(schema.at("not"), Position::Rule);
    }
}
