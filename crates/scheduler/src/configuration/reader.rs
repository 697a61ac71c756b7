//! Reads fields of a configuration, and collects everything that is wrong with it, each thing with its path.

use std::time::Duration;

use serde_json::{Map, Value};

#[derive(Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<String>,
}

/// An object, and where it stands.
#[derive(Clone)]
pub(super) struct At<'v> {
    object: Option<&'v Map<String, Value>>,
    path: String,
}

impl<'v> At<'v> {
    pub(super) fn path(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    pub(super) fn get(&self, field: &str) -> Option<&'v Value> {
        self.object?.get(field).filter(|it| !it.is_null())
    }
}

impl Reader {
    pub(super) fn problem(&mut self, path: &str, what: &str) {
        self.problems.push(format!("{path}: {what}"));
    }

    /// An object that has no other fields than these.
    pub(super) fn object<'v>(&mut self, value: &'v Value, path: String, known: &[&str]) -> At<'v> {
        let object = value.as_object();
        if object.is_none() && !value.is_null() {
            self.problem(&path, "must be an object");
        }
        let at = At { object, path };
        for field in object.into_iter().flat_map(Map::keys).filter(|it| !known.contains(&&***it)) {
            self.problems.push(format!("unknown field {:?}", at.path(field)));
        }
        at
    }

    pub(super) fn child<'v>(&mut self, at: &At<'v>, field: &str, known: &[&str]) -> At<'v> {
        self.object(at.get(field).unwrap_or(&Value::Null), at.path(field), known)
    }

    /// The objects of a list.
    pub(super) fn children<'v>(&mut self, at: &At<'v>, field: &str, known: &[&str]) -> Vec<At<'v>> {
        let path = at.path(field);
        let items = self.items(at, field);
        items.iter().enumerate().map(|(idx, it)| self.object(it, format!("{path}[{idx}]"), known)).collect()
    }

    fn items<'v>(&mut self, at: &At<'v>, field: &str) -> &'v [Value] {
        let Some(value) = at.get(field) else { return &[] };
        value.as_array().map_or_else(
            || {
                self.problem(&at.path(field), "must be a list");
                &[][..]
            },
            Vec::as_slice,
        )
    }

    pub(super) fn texts(&mut self, at: &At<'_>, field: &str) -> Vec<String> {
        let items = self.items(at, field);
        if items.iter().any(|it| !it.is_string()) {
            self.problem(&at.path(field), "must be a list of texts");
        }
        items.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    }

    pub(super) fn text<'v>(&mut self, at: &At<'v>, field: &str) -> &'v str {
        let Some(value) = at.get(field) else { return "" };
        value.as_str().unwrap_or_else(|| {
            self.problem(&at.path(field), "must be a text");
            ""
        })
    }

    pub(super) fn truth(&mut self, at: &At<'_>, field: &str) -> bool {
        let Some(value) = at.get(field) else { return false };
        value.as_bool().unwrap_or_else(|| {
            self.problem(&at.path(field), "must be true or false");
            false
        })
    }

    /// A duration as Go writes them, or the default.
    pub(super) fn duration(&mut self, at: &At<'_>, field: &str, default: Duration) -> Duration {
        let Some(value) = at.get(field) else { return default };
        match value.as_str().map(corten_meta::duration::duration) {
            Some(Ok(it)) => it,
            _ => {
                let shown = value.to_string();
                let what = format!("Invalid value: {}: no duration", corten_meta::shortened(&shown));
                self.problem(&at.path(field), &what);
                default
            }
        }
    }

    /// A number within bounds, or the default.
    pub(super) fn number(&mut self, at: &At<'_>, field: &str, default: i64, (least, most): (i64, i64)) -> i64 {
        let Some(value) = at.get(field) else { return default };
        match value.as_i64() {
            Some(it) if (least..=most).contains(&it) => it,
            Some(it) => {
                self.problem(&at.path(field), &format!("Invalid value: {it}: not in valid range [{least}-{most}]"));
                default
            }
            None => {
                self.problem(&at.path(field), "must be a whole number");
                default
            }
        }
    }

    /// Fields of what has a type of its own may stand at any depth of it.
    pub(super) fn only_fields(&mut self, value: &Value, path: &str, known: &[&str]) {
        match value {
            Value::Object(object) => {
                for (field, value) in object {
                    let path = format!("{path}.{field}");
                    if known.contains(&&**field) {
                        self.only_fields(value, &path, known);
                    } else {
                        self.problems.push(format!("unknown field {path:?}"));
                    }
                }
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(idx, it)| self.only_fields(it, &format!("{path}[{idx}]"), known));
            }
            _ => {}
        }
    }
}
