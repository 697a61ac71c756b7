//! What combined rules speak of the schema itself must know (structural/complete.go of apiextensions-apiserver).

use corten_schema::Cursor;

use super::parts;

pub(super) fn validate(version: Cursor<'_>) {
    parts::structural(version.at("schema").at("openAPIV3Schema"), &mut |schema| {
        parts::combined(schema).for_each(|it| rule(it, schema));
    });
}

/// `schema` says what the values are made of that `rule` is about.
fn rule<'a>(rule: Cursor<'a>, schema: Cursor<'a>) {
    parts::combined(rule).for_each(|it| self::rule(it, schema));
    if rule.at("items").map().is_some() {
        known(rule.at("items"), schema.at("items"));
    }
    for (name, property) in rule.at("properties").entries() {
        known(property, schema.at("properties").key(name));
    }
}

fn known<'a>(rule: Cursor<'a>, schema: Cursor<'a>) {
    if schema.map().is_some() {
        self::rule(rule, schema);
    } else {
        schema.missing(&format!("because it is defined in {}", rule.path()));
    }
}
