//! The columns that several kinds have, and what their cells share.

use std::collections::BTreeSet;

use corten_meta::{LabelSelector, Time, selector::Requirement};
use corten_validation::read::{items, text};
use serde_json::{Value, json};

use crate::{Cell, Column, ColumnType, age::since};

pub(crate) const AGE: Column =
    column("Age", "How long ago the object was created.", |object, now| json!(age_of(object, now)));
/// What kinds without a printer of their own show instead of an age.
pub(crate) const CREATED_AT: Column = Column {
    column_type: ColumnType::Date,
    ..column("Created At", "When the object was created.", |object, _| object["metadata"]["creationTimestamp"].clone())
};
pub(crate) const CONTAINERS: Column =
    wide("Containers", "The names of the template's containers.", |object, _| json!(of_containers(object, "name")));
pub(crate) const IMAGES: Column =
    wide("Images", "The images of the template's containers.", |object, _| json!(of_containers(object, "image")));
pub(crate) const SELECTOR: Column =
    wide("Selector", "Which Pods it counts as its own.", |object, _| json!(selector_text(&object["spec"]["selector"])));

pub(crate) const fn column(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { name, column_type: ColumnType::String, format: "", description, priority: 0, cell }
}

pub(crate) const fn integer(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { column_type: ColumnType::Integer, ..column(name, description, cell) }
}

pub(crate) const fn boolean(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { column_type: ColumnType::Boolean, ..column(name, description, cell) }
}

/// Shown with `-o wide`.
pub(crate) const fn wide(name: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { priority: 1, ..column(name, description, cell) }
}

pub(crate) fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

pub(crate) fn age_of(object: &Value, now: Time) -> String {
    since(text(object, "/metadata/creationTimestamp"), now)
}

fn of_containers(object: &Value, field: &str) -> String {
    of_each(items(object, "/spec/template/spec/containers"), field)
}

/// One field of each, joined by commas.
pub(crate) fn of_each(containers: &[Value], field: &str) -> String {
    containers.iter().map(|it| it[field].as_str().unwrap_or_default()).collect::<Vec<_>>().join(",")
}

/// `app=web,tier=front`, sorted by key.
pub(crate) fn labels_text(labels: &Value) -> String {
    let mut pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or_none(&pairs.join(",")).to_owned()
}

/// The text at `pointer`, or `<unset>`.
pub(crate) fn or_unset<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("<unset>")
}

/// The first few of a list, and how many more there are.
pub(crate) fn first_few(all: &[String], most: usize, separator: &str) -> String {
    let shown = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(separator);
    if all.len() > most { format!("{shown} + {} more...", all.len() - most) } else { shown }
}

/// `app=web,tier in (a,b)`, sorted by key.
pub(crate) fn selector_text(selector: &Value) -> String {
    let selector: LabelSelector = serde::Deserialize::deserialize(selector).unwrap_or_default();
    let labels = selector.match_labels.iter().map(|(key, value)| (key.clone(), format!("{key}={value}")));
    let expressions = LabelSelector { match_labels: Default::default(), ..selector.clone() };
    let set = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(",");
    let expressions = expressions.requirements().map(|it| match it {
        Requirement::In(key, values) => (key.clone(), format!("{key} in ({})", set(values))),
        Requirement::NotIn(key, values) => (key.clone(), format!("{key} notin ({})", set(values))),
        Requirement::DoesNotExist(key) => (key.clone(), format!("!{key}")),
        Requirement::Exists(key) | Requirement::GreaterThan(key, _) | Requirement::LessThan(key, _) => {
            (key.clone(), key)
        }
    });
    let mut parts: Vec<(String, String)> = labels.chain(expressions).collect();
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let text = parts.into_iter().map(|it| it.1).collect::<Vec<_>>().join(",");
    or_none(&text).to_owned()
}
