//! The keys by which items of a list are told apart every item must have (`validateMapListKeysMapSet`).

use std::collections::BTreeSet;

use corten_cel::ListKind;
use corten_schema::Cursor;

use super::parts;

pub(super) fn validate(version: Cursor<'_>) {
    parts::structural(version.at("schema").at("openAPIV3Schema"), &mut |schema| {
        let (kind, items) = (schema.at("x-kubernetes-list-type").str(), schema.at("items"));
        if !matches!(kind, ListKind::MAP | ListKind::SET) || items.map().is_none() {
            return;
        }
        if items.at("nullable").bool() {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
            items.at("nullable").forbidden(&detail);
        }
        if kind == ListKind::MAP {
            keys(schema.at("x-kubernetes-list-map-keys"), items);
        }
    });
}

fn keys<'a>(keys: Cursor<'a>, items: Cursor<'a>) {
    if items.at("type").str() != "object" {
        let kind = items.at("type");
        kind.invalid_as(kind.str(), "must be object if parent array's x-kubernetes-list-type is map");
    }
    let required: BTreeSet<&str> = items.list("required").map(|it| it.str()).collect();
    let mut seen = BTreeSet::new();
    for name in keys.each().map(|it| it.str()) {
        if !seen.insert(name) {
            keys.invalid("must not contain duplicate entries");
        }
        let property = items.at("properties").key(name);
        if !property.exists() {
            continue;
        }
        if !required.contains(name) && !property.at("default").exists() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            property.at("default").missing(detail);
        }
        if property.at("nullable").bool() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            property.at("nullable").forbidden(detail);
        }
    }
}
