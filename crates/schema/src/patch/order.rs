//! In which order the elements of a merged list stand: those the patch names as it names them, the server's own in between
//! where they stood before.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{PatchError, strategic::PATCH};
use crate::Ordered;

/// What an element of a list is known by, so that lists are compared in one pass: itself, or the value of its key.
/// An element without its key has none and is the same as no other.
pub(super) type Identity<'a> = &'a dyn Fn(&Value) -> Option<Ordered<'_>>;

/// The first place of each element in a list.
fn places<'v>(list: &'v [Value], identity: Identity<'_>) -> BTreeMap<Ordered<'v>, usize> {
    list.iter().enumerate().rev().filter_map(|(at, item)| Some((identity(item)?, at))).collect()
}

/// Orders `merged`. Example: before `[a, s, b]`, wanted `[b, a]` gives `[s, b, a]`: `s` stood before `b` and still does.
pub(super) fn interleave(merged: Vec<Value>, wanted: &[Value], before: &[Value], identity: Identity<'_>) -> Vec<Value> {
    let (wanted, before) = (places(wanted, identity), places(before, identity));
    let place =
        |places: &BTreeMap<Ordered<'_>, usize>, item: &Value| identity(item).and_then(|it| places.get(&it)).copied();
    let (mut named, mut own): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|it| place(&wanted, it).is_some());
    named.sort_by_key(|it| place(&wanted, it));
    own.sort_by_key(|it| place(&before, it).unwrap_or(usize::MAX));
    let mut ordered = Vec::with_capacity(named.len() + own.len());
    let mut own = own.into_iter().peekable();
    for item in named {
        if let Some(at) = place(&before, &item) {
            while let Some(next) = own.next_if(|it| place(&before, it).is_some_and(|it| it < at)) {
                ordered.push(next);
            }
        }
        ordered.push(item);
    }
    ordered.extend(own);
    ordered
}

/// The elements of a patch must all be in its wanted order, and stand in it.
pub(super) fn agrees(changes: &[Value], wanted: &[Value], key: &str) -> Result<(), PatchError> {
    let kept = changes.iter().filter(|it| it.get(PATCH).is_none());
    let mut index: BTreeMap<Option<Ordered<'_>>, usize> = BTreeMap::new();
    for (at, item) in wanted.iter().enumerate() {
        index.entry(item.get(key).map(Ordered)).or_insert(at);
    }
    let places: Option<Vec<usize>> = kept.map(|item| index.get(&item.get(key).map(Ordered)).copied()).collect();
    if places.is_some_and(|it| it.is_sorted()) {
        return Ok(());
    }
    let list = |items: &[Value]| as_go(&Value::Array(items.to_vec()));
    Err(PatchError::Failed(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        list(changes),
        list(wanted)
    )))
}

/// As Go prints a map or list in a message: `map[name:web]`.
pub fn as_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(as_go).collect::<Vec<_>>().join(" ")),
        Value::Object(entries) => {
            let mut entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key}:{}", as_go(value))).collect();
            entries.sort();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}
