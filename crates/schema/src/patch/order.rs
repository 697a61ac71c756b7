//! In which order the elements of a merged list stand: those the patch names as it names them, the server's own in between
//! where they stood before.

use serde_json::Value;

use super::{PatchError, strategic::PATCH};

/// Orders `merged`. Example: before `[a, s, b]`, wanted `[b, a]` gives `[s, b, a]`: `s` stood before `b` and still does.
pub(super) fn interleave(
    merged: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|it| same(it, item));
    let (mut named, mut own): (Vec<Value>, Vec<Value>) = merged.into_iter().partition(|it| place(wanted, it).is_some());
    named.sort_by_key(|it| place(wanted, it));
    own.sort_by_key(|it| place(before, it).unwrap_or(usize::MAX));
    let mut ordered = Vec::with_capacity(named.len() + own.len());
    let mut own = own.into_iter().peekable();
    for item in named {
        if let Some(at) = place(before, &item) {
            while let Some(next) = own.next_if(|it| place(before, it).is_some_and(|it| it < at)) {
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
    let kept: Vec<&Value> = changes.iter().filter(|it| it.get(PATCH).is_none()).collect();
    let places: Option<Vec<usize>> =
        kept.iter().map(|item| wanted.iter().position(|it| it.get(key) == item.get(key))).collect();
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
