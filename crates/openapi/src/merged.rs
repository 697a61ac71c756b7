//! What other servers' documents of OpenAPI v2 add to this server's. A definition that has another meaning here under the same name is
//! called otherwise (`MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::aggregated::Aggregated;

const DEFINITIONS: &str = "#/definitions/";

#[derive(Default)]
pub(super) struct Others {
    pub(super) paths: BTreeMap<String, Value>,
    /// Those that are not there already.
    pub(super) definitions: BTreeMap<String, Value>,
    /// `/apis/GROUP/VERSION/`: whose paths here are not served.
    prefixes: Vec<String>,
}

impl Others {
    /// `own`: the definitions there are, as text.
    pub(super) fn of(aggregated: &Aggregated, own: &BTreeMap<String, String>) -> Self {
        let mut this = Self::default();
        let own_value = |name: &str| own.get(name).and_then(|it| serde_json::from_str::<Value>(it).ok());
        for version in aggregated.iter() {
            this.prefixes.push(format!("/{}/", version.path()));
            let Some(swagger) = &version.v2 else { continue };
            let mut renamed = BTreeMap::new();
            let mut added = BTreeSet::new();
            for (name, definition) in &swagger.definitions {
                let mut free = name.clone();
                let mut n = 1;
                loop {
                    match this.definitions.get(&free).cloned().or_else(|| own_value(&free)) {
                        None => {
                            added.insert(name.clone());
                            break;
                        }
                        Some(there) if there == *definition => break,
                        Some(_) => {
                            n += 1;
                            free = format!("{name}_v{n}");
                        }
                    }
                }
                renamed.insert(name.clone(), free);
            }
            for name in added {
                let mut definition = swagger.definitions[&name].clone();
                rename(&mut definition, &renamed);
                this.definitions.insert(renamed[&name].clone(), definition);
            }
            for (path, item) in &swagger.paths {
                let mut item = item.clone();
                rename(&mut item, &renamed);
                this.paths.insert(path.clone(), item);
            }
        }
        this
    }

    /// Is the path served by another?
    pub(super) fn have(&self, path: &str) -> bool {
        self.prefixes.iter().any(|it| path.starts_with(it))
    }
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(DEFINITIONS).and_then(|it| names.get(it))
            {
                *reference = format!("{DEFINITIONS}{name}");
            }
            map.values_mut().for_each(|it| rename(it, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| rename(it, names)),
        _ => {}
    }
}
