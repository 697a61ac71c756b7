//! Removes what a schema does not know (`pkg/apiserver/schema/pruning` of apiextensions-apiserver).

use corten_meta::shortened;
use serde_json::Value;

use super::{AdditionalProperties, Structural, TYPE_AND_OBJECT_META};

/// As many are told.
const REPORTED_MAX: usize = 100;

impl Structural {
    /// Removes unknown fields of a whole object. Gives the paths of the first ones, for whoever must be told: `spec.foo`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruner = Pruner { path: String::new(), removed: Vec::new() };
        pruner.part(Some(self), object, true);
        pruner.removed
    }

    /// The schema of a definition with `preserveUnknownFields`, as an earlier Kubernetes let them be made: nothing is pruned.
    pub fn preserving_unknown(mut self) -> Self {
        self.preserve_unknown();
        self
    }

    fn preserve_unknown(&mut self) {
        self.preserves_unknown = true;
        self.properties.values_mut().for_each(|it| it.preserve_unknown());
        self.items.iter_mut().for_each(|it| it.preserve_unknown());
        if let AdditionalProperties::Values(of) = &mut self.additional_properties {
            of.preserve_unknown();
        }
    }

    /// Would pruning take something from a value of this part?
    pub(super) fn has_unknown_fields(&self, value: &Value) -> bool {
        let mut pruner = Pruner { path: String::new(), removed: Vec::new() };
        pruner.part(Some(self), &mut value.clone(), false);
        !pruner.removed.is_empty()
    }
}

struct Pruner {
    path: String,
    removed: Vec<String>,
}

impl Pruner {
    /// `schema` is absent where nothing is known of what the value is made of, so nothing of an object is kept.
    fn part(&mut self, schema: Option<&Structural>, value: &mut Value, has_head: bool) {
        let has_head = has_head || schema.is_some_and(|it| it.embedded_resource);
        match value {
            Value::Object(entries) => entries.retain(|name, value| {
                let length = self.path.len();
                self.lengthen(name);
                let is_kept = self.keeps(schema, name, value, has_head);
                if !is_kept && self.removed.len() < REPORTED_MAX {
                    self.removed.push(shortened(&self.path).into_owned());
                }
                self.path.truncate(length);
                is_kept
            }),
            Value::Array(items) => {
                let of = schema.and_then(|it| it.items.as_deref());
                // Below what preserves all that it does not know, a list without a schema stays as it is.
                if of.is_none() && schema.is_some_and(|it| it.preserves_unknown) {
                    return;
                }
                for (at, item) in items.iter_mut().enumerate() {
                    let length = self.path.len();
                    self.path.push_str(&format!("[{at}]"));
                    self.part(of, item, false);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn keeps(&mut self, schema: Option<&Structural>, name: &str, value: &mut Value, has_head: bool) -> bool {
        // Metadata has a schema of its own, whatever is said of it here.
        if has_head && TYPE_AND_OBJECT_META.contains(&name) {
            return true;
        }
        let Some(schema) = schema else { return false };
        if let Some(of) = schema.property(name) {
            self.part(Some(of), value, false);
            return true;
        }
        if schema.preserves_unknown {
            return true;
        }
        if let AdditionalProperties::Allowed(true) = schema.additional_properties {
            self.part(None, value, false);
            return true;
        }
        false
    }

    fn lengthen(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}
