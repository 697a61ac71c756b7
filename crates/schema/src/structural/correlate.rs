//! Which part of what stood before a part of an object goes back to (apiserver, `pkg/cel/common.CorrelatedObject`).

use corten_cel::{ListKind, is_spent};
use serde_json::Value;

use super::Structural;

impl Structural {
    /// The object whose entries go back to this one's: those of an atomic map go back to nothing.
    pub(super) fn correlated<'a>(&self, old: Option<&'a Value>) -> Option<&'a Value> {
        old.filter(|_| !self.is_atomic_map)
    }
}

/// The items that stood in a list before, by their keys. Those of sets and of atomic lists have none.
pub(super) struct Before<'a>(Vec<(String, &'a Value)>);

impl<'a> Before<'a> {
    pub(super) fn of(schema: &Structural, old: Option<&'a Value>) -> Self {
        let ListKind::Map(keys) = &schema.list else { return Self(Vec::new()) };
        let items = old.and_then(Value::as_array).into_iter().flatten();
        let items = items.take_while(|_| !is_spent());
        let mut keyed: Vec<_> = items.map(|it| (schema.key(keys, it).to_string(), it)).collect();
        keyed.sort_by(|one, other| one.0.cmp(&other.0));
        Self(keyed)
    }

    pub(super) fn find(&self, schema: &Structural, item: &Value) -> Option<&'a Value> {
        let ListKind::Map(keys) = &schema.list else { return None };
        if self.0.is_empty() {
            return None;
        }
        let key = schema.key(keys, item).to_string();
        self.0.binary_search_by(|it| it.0.cmp(&key)).ok().map(|at| self.0[at].1)
    }
}
