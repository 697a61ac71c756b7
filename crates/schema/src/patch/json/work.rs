//! How much the operations of one patch do. A list moves up or down what stands behind the place where something is put in or
//! taken out, and a value that is moved is gone through for its depth: ten thousand times for a patch of a few bytes each.

use json_patch::{PatchOperation, jsonptr::Pointer};
use serde_json::Value;

/// So many values all operations of a patch may look at or move: a thousand times as many as the largest objects of real
/// clusters have, and done within a second.
const VISITS_MAX: usize = 10_000_000;

#[derive(Debug, Default)]
pub(super) struct Work {
    visits: usize,
}

impl Work {
    /// Counts what an operation will do to the document.
    ///
    /// # Errors
    /// All together is too much, in words for the client.
    pub(super) fn add(&mut self, operation: &PatchOperation, document: &Value) -> Result<(), String> {
        let room = VISITS_MAX.saturating_sub(self.visits);
        let at = |path: &Pointer| document.pointer(path.as_str()).map_or(0, |it| count(it, room));
        let visits = match operation {
            PatchOperation::Add(it) => behind(document, &it.path) + count(&it.value, room),
            PatchOperation::Replace(it) => count(&it.value, room),
            PatchOperation::Test(it) => count(&it.value, room),
            PatchOperation::Remove(it) => behind(document, &it.path),
            PatchOperation::Copy(it) => behind(document, &it.path) + at(&it.from),
            PatchOperation::Move(it) => behind(document, &it.path) + behind(document, &it.from) + at(&it.from),
        };
        self.visits = self.visits.saturating_add(visits).saturating_add(1);
        if self.visits > VISITS_MAX {
            return Err(format!(
                "Unable to complete the patch, its operations look at or move more than {VISITS_MAX} values"
            ));
        }
        Ok(())
    }
}

/// How many elements of a list stand behind a place in it.
fn behind(document: &Value, path: &Pointer) -> usize {
    let Some((parent, last)) = path.split_back() else { return 0 };
    let Some(Value::Array(items)) = document.pointer(parent.as_str()) else { return 0 };
    last.decoded().parse::<usize>().map_or(0, |at| items.len().saturating_sub(at))
}

/// How many values there are in this one, itself included. Stops soon after `most`.
fn count(value: &Value, most: usize) -> usize {
    let mut counted = 1_usize;
    let within: &mut dyn Iterator<Item = &Value> = match value {
        Value::Array(items) => &mut items.iter(),
        Value::Object(entries) => &mut entries.values(),
        _ => return counted,
    };
    for value in within {
        if counted > most {
            break;
        }
        counted += count(value, most - counted.min(most));
    }
    counted
}
