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

    /// Lets `change` change each whole object within a value.
    ///
    /// # Errors
    /// The first one of `change`.
    pub fn try_embedded_resources<E>(
        &self,
        value: &mut Value,
        change: &mut impl FnMut(&mut Value) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.has_embedded {
            return Ok(());
        }
        if self.embedded_resource && value.is_object() {
            change(value)?;
        }
        match value {
            Value::Object(entries) => entries.iter_mut().try_for_each(|(name, value)| match self.property(name) {
                Some(of) => of.try_embedded_resources(value, change),
                None => Ok(()),
            }),
            Value::Array(items) => match &self.items {
                Some(of) => items.iter_mut().try_for_each(|it| of.try_embedded_resources(it, change)),
                None => Ok(()),
            },
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
