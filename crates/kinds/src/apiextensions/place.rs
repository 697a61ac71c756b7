//! What a schema may say only in some places: at the root, of metadata, of a resource within another.

use corten_meta::Violation;
use corten_schema::Cursor;

use super::{internal_form, parts};

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
    root(version.at("schema").at("openAPIV3Schema"), version.at("subresources").at("status").exists());
    shape(version);
    metadata(version);
}

fn root(schema: Cursor<'_>, has_status: bool) {
    if schema.at("nullable").bool() {
        schema.at("nullable").forbidden("nullable cannot be true at the root");
    }
    let entries = schema.map().into_iter().flatten();
    let mut odd = entries.filter(|(name, value)| !AT_ROOT_WITH_STATUS.contains(&&***name) && **value != false);
    if has_status && odd.next().is_some() {
        let names: Vec<String> = AT_ROOT_WITH_STATUS.iter().map(|it| go_name(it)).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            names.join(" ")
        );
        schema.report(Violation::invalid(schema.path(), internal_form::schema(schema.value()), &detail));
    }
}

/// As the Go type `JSONSchemaProps` names it: `x-kubernetes-validations` is `XValidations`.
fn go_name(field: &str) -> String {
    let words = field.split('-').filter(|it| *it != "kubernetes");
    words.map(|it| it[..1].to_uppercase() + &it[1..]).collect()
}

/// What makes a schema structural, of what is about places (`validateStructuralInvariants`).
pub(super) fn shape(version: Cursor<'_>) {
    let root = version.at("schema").at("openAPIV3Schema");
    if root.at("additionalProperties").exists() {
        root.at("additionalProperties").forbidden("must not be used at the root");
    }
    if !root.at("x-kubernetes-embedded-resource").bool() {
        head(root);
    }
    parts::structural(root, &mut |schema| {
        int_or_string(schema);
        parts::combined(schema).for_each(rule);
        if schema.at("x-kubernetes-embedded-resource").bool() {
            if schema.at("additionalProperties").exists() {
                let detail = "must not be used if x-kubernetes-embedded-resource is set";
                schema.at("additionalProperties").forbidden(detail);
            }
            head(schema);
        }
    });
}

/// Kind and version of a resource are text.
fn head(resource: Cursor<'_>) {
    for property in ["apiVersion", "kind"].map(|it| resource.at("properties").key(it)) {
        if property.exists() && property.at("type").str() != "string" {
            property.at("type").invalid_as(property.at("type").str(), "must be string");
        }
    }
}

/// What a schema of metadata may not say.
pub(super) fn metadata(version: Cursor<'_>) {
    part(version.at("schema").at("openAPIV3Schema"), true, None);
}

/// `meta` is the field of metadata that the part stands in.
fn part(schema: Cursor<'_>, is_root: bool, meta: Option<Meta<'_>>) {
    let embedded = schema.at("x-kubernetes-embedded-resource");
    if meta.is_some() && embedded.bool() {
        embedded.forbidden("must not be used inside of resource meta");
    }
    if let Some(reason) = meta.and_then(Meta::forbids_defaults)
        && schema.at("default").exists()
    {
        schema.at("default").forbidden(&format!("must not be set {reason}"));
    }
    let is_resource = is_root || embedded.bool();
    for (name, property) in schema.at("properties").entries() {
        let is_meta = is_resource && META.contains(&name);
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
