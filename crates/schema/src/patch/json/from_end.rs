//! Indices from the end of a list, which RFC 6902 does not have and evanphx/json-patch takes (`SupportNegativeIndices`): `-1` is the
//! last element, and for what is added the place behind it.

use json_patch::{
    AddOperation, PatchOperation, RemoveOperation,
    jsonptr::{Pointer, PointerBuf},
};
use serde_json::Value;

/// What an operation is done in: a move to such a place is a removal and an addition, since what is taken out moves what stands
/// behind it.
pub(super) fn steps(operation: PatchOperation, document: &Value) -> Vec<PatchOperation> {
    let PatchOperation::Move(it) = &operation else { return vec![operation] };
    let from = from_begin(&it.from, document, 0);
    match document.pointer(from.as_str()) {
        Some(value) if counts_from_end(&it.path) => {
            let (path, value) = (it.path.clone(), value.clone());
            vec![
                PatchOperation::Remove(RemoveOperation { path: from }),
                PatchOperation::Add(AddOperation { path, value }),
            ]
        }
        _ => vec![operation],
    }
}

/// The operation with all indices counted from the beginning, as the document stands.
pub(super) fn resolved(mut operation: PatchOperation, document: &Value) -> PatchOperation {
    let at = |path: &mut PointerBuf| *path = from_begin(path, document, 0);
    // One place more than there are elements.
    let placed = |path: &mut PointerBuf| *path = from_begin(path, document, 1);
    match &mut operation {
        PatchOperation::Add(it) => placed(&mut it.path),
        PatchOperation::Remove(it) => at(&mut it.path),
        PatchOperation::Replace(it) => at(&mut it.path),
        PatchOperation::Test(it) => at(&mut it.path),
        PatchOperation::Copy(it) => {
            at(&mut it.from);
            placed(&mut it.path);
        }
        PatchOperation::Move(it) => at(&mut it.from),
    }
    operation
}

fn counts_from_end(path: &Pointer) -> bool {
    path.tokens().any(|it| from_end(&it.decoded()).is_some())
}

/// `-2` is 2.
fn from_end(token: &str) -> Option<usize> {
    token.strip_prefix('-').filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?.parse().ok()
}

/// `places` are those that the list which the path ends in has beside its elements. What is beyond its beginning stays as it is, and
/// leads nowhere.
fn from_begin(path: &Pointer, document: &Value, places: usize) -> PointerBuf {
    if !counts_from_end(path) {
        return path.to_buf();
    }
    let n_tokens = path.tokens().count();
    let (mut here, mut tokens) = (Some(document), Vec::with_capacity(n_tokens));
    for (nth, token) in path.tokens().enumerate() {
        let mut token = token.decoded().into_owned();
        if let Some(items) = here.and_then(Value::as_array) {
            let n = items.len() + if nth + 1 == n_tokens { places } else { 0 };
            if let Some(at) = from_end(&token).and_then(|it| n.checked_sub(it)) {
                token = at.to_string();
            }
        }
        here = match here {
            Some(Value::Array(items)) => token.parse::<usize>().ok().and_then(|it| items.get(it)),
            Some(Value::Object(entries)) => entries.get(&token),
            _ => None,
        };
        tokens.push(token);
    }
    PointerBuf::from_tokens(&tokens)
}
