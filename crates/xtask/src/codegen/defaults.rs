//! Which fields have a default in OpenAPI: a rule, and the facts that the rule does not cover.

use std::{collections::BTreeMap, sync::LazyLock};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::shapes::{Field, Shape};

/// Columns: type without `io.k8s.`, field, its default as JSON or `-`. Facts about the type itself have the field `(unions)`, or
/// `(required)` for fields that are required though the schemas do not say so.
const TABLE: &str = include_str!("defaults.tsv");

static FACTS: LazyLock<BTreeMap<(&str, &str), &str>> = LazyLock::new(|| {
    let columns = |line: &'static str| line.split_once('\t').and_then(|(of, rest)| Some((of, rest.split_once('\t')?)));
    TABLE.lines().skip(1).filter_map(columns).map(|(of, (field, fact))| ((of, field), fact)).collect()
});

fn fact(of: &str, field: &str) -> Option<&'static str> {
    FACTS.get(&(of.strip_prefix("io.k8s.").unwrap_or(of), field)).copied()
}

/// The default of a field. What is no pointer in Go has one: what is required, and metadata, spec and status.
pub(super) fn of(of: &str, name: &str, field: &Field) -> Result<Option<Value>> {
    if let Some(fact) = fact(of, name) {
        return read(of, name, fact);
    }
    let always_there = field.required || matches!(name, "metadata" | "spec" | "status");
    Ok(match &field.shape {
        Shape::Object(_) if always_there => Some(json!({})),
        Shape::Plain("String") if field.required => Some(json!("")),
        Shape::Plain("Int32" | "Int64") if field.required => Some(json!(0)),
        Shape::Plain("Boolean") if field.required => Some(json!(false)),
        _ => None,
    })
}

/// Is the field optional because of its default, though the schemas call it required?
pub(super) fn makes_optional(of: &str, name: &str, field: &Field) -> bool {
    field.required && fact(of, name).is_some_and(|it| it != "-")
}

/// Fields that are required, beside those that the schemas say.
pub(super) fn required(of: &str) -> Result<Option<Value>> {
    fact(of, "(required)").map_or(Ok(None), |it| read(of, "(required)", it))
}

/// Which fields of a type exclude each other, as `x-kubernetes-unions` says it.
pub(super) fn unions(of: &str) -> Result<Option<Value>> {
    fact(of, "(unions)").map_or(Ok(None), |it| read(of, "(unions)", it))
}

fn read(of: &str, name: &str, fact: &str) -> Result<Option<Value>> {
    if fact == "-" {
        return Ok(None);
    }
    serde_json::from_str(fact).map(Some).with_context(|| format!("reading the default of {of}.{name}"))
}
