//! Fills in the defaults of a schema (`pkg/apiserver/schema/defaulting` of apiextensions-apiserver).

use serde_json::{Map, Value};

use super::{DefaultValue, Structural};

/// As much as an object may have at all.
pub const BYTES_MAX: usize = 3 << 20;

/// The defaults of a schema would make an object too large.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object is larger than {BYTES_MAX} bytes with the defaults of its schema")]
pub struct TooLarge;

/// What defaults may still add, in bytes.
struct SizeBudget(usize);

impl SizeBudget {
    fn take(&mut self, default: &DefaultValue, name: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(default.bytes + name).ok_or(TooLarge)?;
        Ok(())
    }
}

impl Structural {
    /// Fills in what is absent, from the outside to the inside: a default may have defaults in it. A null where the schema
    /// allows none counts as absent, and goes where there is no default for it.
    ///
    /// # Errors
    /// The defaults would make it larger than [`BYTES_MAX`]: a small object may name a large one a hundred thousand times.
    pub fn default(&self, value: &mut Value) -> Result<(), TooLarge> {
        self.fill(value, &mut SizeBudget(BYTES_MAX))?;
        self.drop_nulls(value);
        Ok(())
    }

    fn fill(&self, value: &mut Value, room: &mut SizeBudget) -> Result<(), TooLarge> {
        match value {
            Value::Object(entries) => self.fill_object(entries, room),
            Value::Array(items) => {
                let Some(of) = &self.items else { return Ok(()) };
                items.iter_mut().try_for_each(|item| {
                    of.replace_null(item, room)?;
                    of.fill(item, room)
                })
            }
            _ => Ok(()),
        }
    }

    fn fill_object(&self, entries: &mut Map<String, Value>, room: &mut SizeBudget) -> Result<(), TooLarge> {
        for name in &self.defaulted {
            let Some((property, default)) = self.properties.get(name).and_then(|it| Some((it, it.default.as_ref()?)))
            else {
                continue;
            };
            if entries.get(name).is_none_or(|it| property.forbids_null(it)) {
                room.take(default, name.len())?;
                entries.insert(name.clone(), default.value.clone());
            }
        }
        for (name, value) in entries.iter_mut() {
            let Some(of) = self.property(name) else { continue };
            if !self.properties.contains_key(name) {
                of.replace_null(value, room)?;
            }
            of.fill(value, room)?;
        }
        Ok(())
    }

    fn replace_null(&self, value: &mut Value, room: &mut SizeBudget) -> Result<(), TooLarge> {
        if self.forbids_null(value)
            && let Some(default) = &self.default
        {
            room.take(default, 0)?;
            value.clone_from(&default.value);
        }
        Ok(())
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
