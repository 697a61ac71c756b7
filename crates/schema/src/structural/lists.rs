//! Lists whose items are told apart: no two may be the same (`x-kubernetes-list-type`;
//! `pkg/apiserver/schema/listtype.ValidateListSetsAndMaps` of apiextensions-apiserver).

use std::collections::BTreeSet;

use corten_cel::{ListKind, spend};
use corten_meta::Violation;
use serde_json::{Map, Value};

use super::{Structural, report::Report};

/// What it takes to make a key, or one field of it, in units of fuel.
const FUEL_OF_KEY: u64 = 5;

impl Structural {
    /// Items of sets and maps that are there twice.
    pub(super) fn repeated(&self, value: &Value, path: &mut String, report: &mut Report) {
        match value {
            Value::Object(entries) => {
                for (name, value) in entries {
                    let Some(of) = self.property(name) else { continue };
                    within(path, &format!("{}{name}", if path.is_empty() { "" } else { "." }), |path| {
                        of.repeated(value, path, report);
                    });
                }
            }
            Value::Array(items) => {
                match &self.list {
                    ListKind::Atomic => {}
                    ListKind::Set => twice(items.iter().map(in_order), path, report),
                    ListKind::Map(keys) => twice(items.iter().map(|it| self.key(keys, it).to_string()), path, report),
                }
                let Some(of) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    if report.is_full() || !spend(1) {
                        return;
                    }
                    within(path, &format!("[{at}]"), |path| of.repeated(item, path, report));
                }
            }
            _ => {}
        }
    }

    /// The fields by which an item is told apart, with the defaults that its schema has for them.
    pub(super) fn key(&self, keys: &[String], item: &Value) -> Value {
        if !spend(FUEL_OF_KEY * keys.len() as u64) {
            return Value::Null;
        }
        let of = |name: &String| {
            let default = || self.items.as_ref()?.properties.get(name)?.default.as_ref().map(|it| it.value.clone());
            item.get(name).cloned().or_else(default).map(|it| (name.clone(), it))
        };
        Value::Object(keys.iter().filter_map(of).collect::<Map<_, _>>())
    }
}

/// An item as a text that is the same in whatever order its fields stand, as `json.Marshal` writes maps.
fn in_order(item: &Value) -> String {
    if !(item.is_object() || item.is_array()) {
        return item.to_string();
    }
    let mut item = item.clone();
    item.sort_all_objects();
    item.to_string()
}

fn within(path: &mut String, step: &str, look: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(step);
    look(path);
    path.truncate(length);
}

/// Upstream tells each repeated item once, at the first place where it is repeated.
fn twice(keys: impl Iterator<Item = String>, path: &str, report: &mut Report) {
    let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
    for (at, key) in keys.enumerate() {
        if report.is_full() || !spend(FUEL_OF_KEY + key.len() as u64 / 4) {
            return;
        }
        match seen.get(&key) {
            None => {
                seen.insert(key);
            }
            Some(_) if told.contains(&key) => {}
            Some(_) => {
                report.add(|| Violation::duplicate(format!("{path}[{at}]"), &key));
                told.insert(key);
            }
        }
    }
}
