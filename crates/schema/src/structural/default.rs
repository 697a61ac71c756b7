//! Fills in the defaults of a schema (`pkg/apiserver/schema/defaulting` of apiextensions-apiserver).

use serde_json::{Map, Value};

use super::Structural;

impl Structural {
    /// Fills in what is absent, from the outside to the inside: a default may have defaults in it. A null where the schema
    /// allows none counts as absent, and goes where there is no default for it.
    pub fn default(&self, value: &mut Value) {
        self.fill(value);
        self.drop_nulls(value);
    }

    fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(entries) => self.fill_object(entries),
            Value::Array(items) => {
                let Some(of) = &self.items else { return };
                for item in items {
                    of.replace_null(item);
                    of.fill(item);
                }
            }
            _ => {}
        }
    }

    fn fill_object(&self, entries: &mut Map<String, Value>) {
        for (name, property) in &self.properties {
            let Some(default) = &property.default else { continue };
            if entries.get(name).is_none_or(|it| property.forbids_null(it)) {
                entries.insert(name.clone(), default.clone());
            }
        }
        for (name, value) in entries.iter_mut() {
            let Some(of) = self.property(name) else { continue };
            if !self.properties.contains_key(name) {
                of.replace_null(value);
            }
            of.fill(value);
        }
    }

    fn replace_null(&self, value: &mut Value) {
        if self.forbids_null(value)
            && let Some(default) = &self.default
        {
            value.clone_from(default);
        }
    }

    fn forbids_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }

    /// Only properties that are named: in lists and maps a null stays, and validation says what it is.
    fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(entries) => {
                entries.retain(|name, value| self.properties.get(name).is_none_or(|it| !it.forbids_null(value)));
                for (name, value) in entries.iter_mut() {
                    if let Some(of) = self.property(name) {
                        of.drop_nulls(value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(of) = &self.items {
                    items.iter_mut().for_each(|it| of.drop_nulls(it));
                }
            }
            _ => {}
        }
    }
}
