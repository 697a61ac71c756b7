//! Resources within a resource (`x-kubernetes-embedded-resource`).

use serde_json::Value;

use super::Structural;

impl Structural {
    /// The whole objects within a value, from the outside to the inside, each with its path: `spec.template`.
    pub fn embedded_resources<'a>(&self, value: &'a Value) -> Vec<(String, &'a Value)> {
        let mut found = Vec::new();
        if self.has_embedded {
            self.collect(value, &mut String::new(), &mut found);
        }
        found
    }

    /// Lets `change` change each whole object within a value; it is told where that stands: `spec.template`.
    ///
    /// # Errors
    /// The first one of `change`.
    pub fn try_embedded_resources<E>(
        &self,
        value: &mut Value,
        change: &mut impl FnMut(&str, &mut Value) -> Result<(), E>,
    ) -> Result<(), E> {
        self.change_below(value, &mut String::new(), change)
    }

    fn change_below<E>(
        &self,
        value: &mut Value,
        path: &mut String,
        change: &mut impl FnMut(&str, &mut Value) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.has_embedded {
            return Ok(());
        }
        if self.embedded_resource && value.is_object() {
            change(path, value)?;
        }
        let length = path.len();
        match value {
            Value::Object(entries) => entries.iter_mut().try_for_each(|(name, value)| {
                let Some(of) = self.property(name) else { return Ok(()) };
                let dot = if path.is_empty() { "" } else { "." };
                path.extend([dot, name]);
                let changed = of.change_below(value, path, change);
                path.truncate(length);
                changed
            }),
            Value::Array(items) => {
                let Some(of) = &self.items else { return Ok(()) };
                items.iter_mut().enumerate().try_for_each(|(at, item)| {
                    path.push_str(&format!("[{at}]"));
                    let changed = of.change_below(item, path, change);
                    path.truncate(length);
                    changed
                })
            }
            _ => Ok(()),
        }
    }

    fn collect<'a>(&self, value: &'a Value, path: &mut String, found: &mut Vec<(String, &'a Value)>) {
        if !self.has_embedded {
            return;
        }
        if self.embedded_resource && value.is_object() {
            found.push((path.clone(), value));
        }
        let length = path.len();
        match value {
            Value::Object(entries) => {
                for (name, value) in entries {
                    let Some(of) = self.property(name) else { continue };
                    let dot = if path.is_empty() { "" } else { "." };
                    path.extend([dot, name]);
                    of.collect(value, path, found);
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                let Some(of) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{at}]"));
                    of.collect(item, path, found);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }
}
