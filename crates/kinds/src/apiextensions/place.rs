//! What a schema may say only in some places: at the root, of metadata, of a resource within another.

use corten_schema::Cursor;

use super::parts;

const META: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// At the root of a version whose status is a subresource: its schema is looked up as a property (`allowedFieldsAtRootSchema`).
const AT_ROOT_WITH_STATUS: &[&str] = &[
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    root(schema, version.at("subresources").at("status").exists());
    part(schema, true, None);
}

fn root(schema: Cursor<'_>, has_status: bool) {
    if schema.at("nullable").bool() {
        schema.at("nullable").forbidden("nullable cannot be true at the root");
    }
    if schema.at("additionalProperties").exists() {
        schema.at("additionalProperties").forbidden("must not be used at the root");
    }
    let entries = schema.map().into_iter().flatten();
    let mut odd = entries.filter(|(name, value)| !AT_ROOT_WITH_STATUS.contains(&&***name) && **value != false);
    if has_status && odd.next().is_some() {
        let names: Vec<String> = AT_ROOT_WITH_STATUS.iter().map(|it| go_name(it)).collect();
        schema.invalid_unshown(&format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        ));
    }
}

/// As upstream names it: `x-kubernetes-validations` is `XValidations`.
fn go_name(field: &str) -> String {
    let words = field.split('-').filter(|it| *it != "kubernetes");
    words.map(|it| it[..1].to_uppercase() + &it[1..]).collect()
}

/// `meta` is the field of metadata that the part stands in.
fn part(schema: Cursor<'_>, is_root: bool, meta: Option<Meta<'_>>) {
    let embedded = schema.at("x-kubernetes-embedded-resource");
    if meta.is_some() && embedded.bool() {
        embedded.forbidden("must not be used inside of resource meta");
    }
    if embedded.bool() && schema.at("additionalProperties").exists() {
        schema.at("additionalProperties").forbidden("must not be used if x-kubernetes-embedded-resource is set");
    }
    if let Some(reason) = meta.and_then(Meta::forbids_defaults)
        && schema.at("default").exists()
    {
        schema.at("default").forbidden(&format!("must not be set {reason}"));
    }
    int_or_string(schema);
    parts::combined(schema).for_each(rule);
    let is_resource = is_root || embedded.bool();
    for (name, property) in schema.at("properties").entries() {
        let is_meta = is_resource && META.contains(&name);
        if is_meta && name != "metadata" && property.at("type").str() != "string" {
            property.at("type").invalid_as(property.at("type").str(), "must be string");
        }
        let within = is_meta.then_some(Meta { field: name, of_root: is_root, is_in_map: false });
        part(property, false, within.or(meta));
    }
    if schema.at("items").map().is_some() {
        part(schema.at("items"), false, meta);
    }
    if schema.at("additionalProperties").map().is_some() {
        part(schema.at("additionalProperties"), false, meta.map(|it| Meta { is_in_map: true, ..it }));
    }
}

#[derive(Clone, Copy)]
struct Meta<'a> {
    field: &'a str,
    /// Of the custom resource itself, and not of one within it.
    of_root: bool,
    is_in_map: bool,
}

impl Meta<'_> {
    fn forbids_defaults(self) -> Option<String> {
        match (self.is_in_map, self.of_root) {
            (true, _) => Some("inside additionalProperties applying to object metadata".to_owned()),
            (false, true) => Some(format!("in top-level {}", self.field)),
            (false, false) => None,
        }
    }
}

fn int_or_string(schema: Cursor<'_>) {
    if !schema.at("x-kubernetes-int-or-string").bool() {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if schema.at(name).bool() {
            schema.at(name).invalid("must be false if x-kubernetes-int-or-string is true");
        }
    }
}

/// Rules about values say nothing of metadata.
fn rule(rule: Cursor<'_>) {
    parts::all(rule, &mut |part| {
        let metadata = part.at("properties").key("metadata");
        if metadata.exists() {
            metadata.forbidden("must not be specified in a nested context");
        }
    });
}
