//! Kubernetes's strategic merge patch: a merge patch that knows which lists are sets or maps, and takes directives.
//!
//! ```text
//! $patch: replace | delete                 in an object or an element of a list
//! $retainKeys: [a, b]                      in an object: all other fields go
//! $deleteFromPrimitiveList/finalizers: []  beside a set
//! $setElementOrder/containers: [{name: a}] beside a set or a keyed list: how its elements are to stand
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{PatchError, order};
use crate::{Ordered, Patch, Shape, find};

pub(super) const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Applies `patch` to `original`, an object of the named type.
///
/// # Errors
/// `Malformed` where a directive or a list has the wrong form.
pub fn strategic(type_name: &str, original: Value, patch: &Value) -> Result<Value, PatchError> {
    let shape = find(type_name).map_or(Shape::Any, Shape::Object);
    let Value::Object(changes) = patch else { return Err(malformed("invalid JSON document")) };
    let mut merged = match original {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    merge_object(shape, &mut merged, changes)?;
    Ok(Value::Object(merged))
}

pub(super) fn malformed(message: impl Into<String>) -> PatchError {
    PatchError::Malformed(message.into())
}

fn merge_object(shape: Shape, original: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    match patch.get(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            *original = patch.iter().filter(|it| it.0 != PATCH).map(|(k, v)| (k.clone(), v.clone())).collect();
            return Ok(());
        }
        Some(Value::String(directive)) if directive == "delete" => {
            original.clear();
            return Ok(());
        }
        Some(other) => return Err(unknown_directive(other, patch)),
    }
    retain_keys(original, patch)?;
    let mut gone = BTreeSet::new();
    for (name, change) in patch {
        if name == RETAIN_KEYS {
            continue;
        }
        if let Some(field) = name.strip_prefix(DELETE_FROM) {
            delete_from_set(original, field, change)?;
        } else if let Some(field) = name.strip_prefix(SET_ORDER) {
            // Where the list itself is in the patch too, it is merged with its order below.
            if !patch.get(field).is_some_and(Value::is_array) {
                merge_list_field(shape, original, field, &[], Some(change))?;
            }
        } else {
            let order = patch.get(&format!("{SET_ORDER}{name}"));
            if !merge_field(shape, original, name, change, order)? {
                gone.insert(name);
            }
        }
    }
    // All at once: what stands behind each that is taken out would move up for each of them.
    if !gone.is_empty() {
        original.retain(|name, _| !gone.contains(name));
    }
    Ok(())
}

/// False where the field is to be taken out.
fn merge_field(
    shape: Shape,
    original: &mut Map<String, Value>,
    name: &str,
    change: &Value,
    order: Option<&Value>,
) -> Result<bool, PatchError> {
    match (original.get_mut(name), change) {
        (_, Value::Null) => return Ok(false),
        (Some(Value::Object(before)), Value::Object(changes)) => match inner(shape, name) {
            (_, Patch::Replace) => {
                original.insert(name.to_owned(), change.clone());
            }
            (of, _) => merge_object(of, before, changes)?,
        },
        (Some(Value::Array(_)), Value::Array(changes)) => merge_list_field(shape, original, name, changes, order)?,
        (None, Value::Array(changes)) if order.is_some() => {
            original.insert(name.to_owned(), Value::Array(Vec::new()));
            merge_list_field(shape, original, name, changes, order)?;
        }
        _ => match without_directives(change) {
            Some(value) => {
                original.insert(name.to_owned(), value);
            }
            None => return Ok(false),
        },
    }
    Ok(true)
}

/// The shape of a field or entry, and how it merges.
fn inner(shape: Shape, name: &str) -> (Shape, Patch) {
    match shape {
        Shape::Object(of) => match of.field(name) {
            Some(field) => (field.shape, field.merge.patch),
            None => (Shape::Any, Patch::Deep),
        },
        Shape::Map(of) => (*of, if matches!(of, Shape::List(_)) { Patch::Replace } else { Patch::Deep }),
        _ => (Shape::Any, Patch::Deep),
    }
}

fn retain_keys(original: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    let Some(list) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let bad_format = || malformed("invalid patch format of retainKeys");
    let kept = list.as_array().ok_or_else(bad_format)?;
    let kept: BTreeSet<&str> = kept.iter().filter_map(Value::as_str).collect();
    let keeps = |name: &str| kept.contains(name);
    let is_directive = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER) || name == RETAIN_KEYS;
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !keeps(name)) {
        return Err(bad_format());
    }
    original.retain(|name, _| keeps(name));
    Ok(())
}

fn delete_from_set(original: &mut Map<String, Value>, field: &str, gone: &Value) -> Result<(), PatchError> {
    let gone = gone.as_array().ok_or_else(|| malformed("invalid patch format of primitive list"))?;
    if let Some(Value::Array(items)) = original.get_mut(field) {
        let gone: BTreeSet<Ordered<'_>> = gone.iter().map(Ordered).collect();
        items.retain(|it| !gone.contains(&Ordered(it)));
    }
    Ok(())
}

/// Merges a list into the one of `original`; a field that is absent there stays absent.
fn merge_list_field(
    shape: Shape,
    original: &mut Map<String, Value>,
    name: &str,
    changes: &[Value],
    order: Option<&Value>,
) -> Result<(), PatchError> {
    let Some(Value::Array(before)) = original.get(name) else { return Ok(()) };
    let order = match order {
        Some(Value::Array(order)) => Some(order.as_slice()),
        Some(_) => return Err(malformed("invalid patch format of setElementOrder list")),
        None => None,
    };
    let (element, patch) = match inner(shape, name) {
        (Shape::List(of), patch) => (*of, patch),
        (_, patch) => (Shape::Any, patch),
    };
    let merged = match patch {
        Patch::ByKey(key) => merge_keyed(element, key, before, changes, order)?,
        Patch::Set => merge_set(before, changes, order),
        // An order alone changes nothing about a list that is replaced as a whole.
        Patch::Deep | Patch::Replace if changes.is_empty() && order.is_some() => return Ok(()),
        Patch::Deep | Patch::Replace => changes.to_vec(),
    };
    original.insert(name.to_owned(), Value::Array(merged));
    Ok(())
}

fn merge_set(before: &[Value], changes: &[Value], wanted: Option<&[Value]>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let merged = before.iter().chain(changes).filter(|it| seen.insert(Ordered(it))).cloned().collect();
    order::interleave(merged, wanted.unwrap_or(changes), before, &|it| Some(Ordered(it)))
}

fn merge_keyed(
    element: Shape,
    key: &str,
    before: &[Value],
    changes: &[Value],
    wanted: Option<&[Value]>,
) -> Result<Vec<Value>, PatchError> {
    let mut gone = BTreeSet::new();
    let (mut plain, mut replaces) = (Vec::new(), false);
    for change in changes {
        let entries = change.as_object().ok_or_else(|| malformed("invalid JSON document"))?;
        match entries.get(PATCH).map(|it| it.as_str().unwrap_or_default()) {
            None => plain.push((key_of(entries, key)?, entries)),
            Some("delete") => {
                gone.insert(Ordered(key_of(entries, key)?));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(PatchError::Failed("merging lists cannot yet be specified in the patch".into()));
            }
            Some(_) => return Err(unknown_directive(&entries[PATCH], entries)),
        }
    }
    if replaces {
        return Ok(plain.into_iter().map(|(_, entries)| Value::Object(entries.clone())).collect());
    }
    if let Some(wanted) = wanted {
        order::agrees(changes, wanted, key)?;
    }
    let (mut merged, mut places) = (Vec::new(), BTreeMap::new());
    for item in before {
        let name = item.get(key).map(Ordered);
        if name.is_some_and(|it| gone.contains(&it)) {
            continue;
        }
        if let Some(name) = name {
            places.entry(name).or_insert(merged.len());
        }
        merged.push(item.clone());
    }
    for (name, change) in &plain {
        match places.get(&Ordered(name)).and_then(|at| merged.get_mut(*at)) {
            Some(Value::Object(item)) => merge_object(element, item, change)?,
            _ => {
                places.insert(Ordered(name), merged.len());
                merged.extend(without_directives(&Value::Object((*change).clone())));
            }
        }
    }
    let plain: Vec<Value> = plain.into_iter().map(|(_, entries)| Value::Object(entries.clone())).collect();
    Ok(order::interleave(merged, wanted.unwrap_or(&plain), before, &|it| it.get(key).map(Ordered)))
}

fn key_of<'p>(entries: &'p Map<String, Value>, key: &str) -> Result<&'p Value, PatchError> {
    entries.get(key).ok_or_else(|| {
        PatchError::Failed(format!(
            "map: {} does not contain declared merge key: {key}",
            order::as_go(&Value::Object(entries.clone()))
        ))
    })
}

fn unknown_directive(directive: &Value, within: &Map<String, Value>) -> PatchError {
    let directive = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    PatchError::Failed(format!(
        "unknown patch type: {directive} in map: {}",
        order::as_go(&Value::Object(within.clone()))
    ))
}

/// What a patch's value is where there was none before: without nulls and directives. `None` where it asks for nothing.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(entries) => {
            if entries.get(PATCH).is_some_and(|it| it == "delete") {
                return None;
            }
            let kept = entries.iter().filter(|(name, _)| !name.starts_with('$') || !is_directive(name));
            Some(Value::Object(kept.filter_map(|(k, v)| Some((k.clone(), without_directives(v)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(without_directives).collect())),
        other => Some(other.clone()),
    }
}

fn is_directive(name: &str) -> bool {
    matches!(name, PATCH | RETAIN_KEYS) || name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER)
}

#[cfg(test)]
mod tests;
