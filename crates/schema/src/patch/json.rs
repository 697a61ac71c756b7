//! RFC 6902, bounded: few operations, and none makes the object larger or deeper than what a request body could have carried
//! anyway; and all of them together look at so many values, however often they go through the same ones.

mod from_end;
mod operations;
mod work;

use corten_meta::{
    depth::{self, LEVELS_MAX},
    shortened,
};
use json_patch::{PatchErrorKind, PatchOperation, jsonptr::Pointer};
use serde_json::Value;

use self::{operations::operations, work::Work};
use super::PatchError;

pub use self::operations::n_operations;

/// The largest object that `copy` and `add` may build, by an estimate of its JSON text; equal to the body limit of the server.
const RESULT_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Applies a JSON patch given as text.
///
/// # Errors
/// `Malformed` where it is no JSON patch, `TooLarge` for too many operations, `Unprocessable` where an operation fails (a
/// missing path, a `test` that does not hold), would make the object too large or too deep, or they are too much work.
pub fn json(original: Value, patch: &[u8]) -> Result<Value, PatchError> {
    let operations = operations(patch)?;
    let mut result = original;
    let mut size_max = size(&result);
    let mut work = Work::default();
    for operation in operations {
        for operation in from_end::steps(operation, &result) {
            let operation = from_end::resolved(operation, &result);
            work.add(&operation, &result).map_err(PatchError::Unprocessable)?;
            size_max += growth(&operation, &result);
            if size_max > RESULT_BYTES_MAX {
                let message = format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {size_max}, exceeding the limit {RESULT_BYTES_MAX}"
                );
                return Err(PatchError::Unprocessable(message));
            }
            apply(operation, &mut result).map_err(PatchError::Unprocessable)?;
        }
    }
    Ok(result)
}

fn apply(operation: PatchOperation, document: &mut Value) -> Result<(), String> {
    if is_test_of_absence(&operation, document) {
        return Ok(());
    }
    if is_too_deep(&operation, document) {
        let (name, path) = (name_of(&operation), shortened(operation.path().as_str()));
        return Err(format!("{name} operation does not apply at path \"{path}\": {}", depth::EXCEEDED));
    }
    let operation = [operation];
    json_patch::patch(document, &operation).map_err(|error| failure(&operation[0], &error.kind))
}

/// As in evanphx/json-patch: what is not there is equal to null. Whoever adds the first finalizer tests for that.
fn is_test_of_absence(operation: &PatchOperation, document: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let Some((parent, last)) = test.path.split_back() else { return false };
    let parent = document.pointer(parent.as_str()).and_then(Value::as_object);
    test.value.is_null() && parent.is_some_and(|it| !it.contains_key(&*last.decoded()))
}

/// Would it make the object deeper than the bound? Asked before it is done, since a copy into itself doubles the depth.
fn is_too_deep(operation: &PatchOperation, document: &Value) -> bool {
    let placed = |path: &Pointer, value: Option<&Value>| {
        // Each step of the path leads into one list or map.
        let within = path.count();
        value.is_some_and(|it| within > LEVELS_MAX || !depth::fits(it, LEVELS_MAX - within))
    };
    let at = |path: &Pointer| document.pointer(path.as_str());
    match operation {
        PatchOperation::Add(it) => placed(&it.path, Some(&it.value)),
        PatchOperation::Replace(it) => placed(&it.path, Some(&it.value)),
        PatchOperation::Copy(it) => placed(&it.path, at(&it.from)),
        PatchOperation::Move(it) => placed(&it.path, at(&it.from)),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => false,
    }
}

fn name_of(operation: &PatchOperation) -> &'static str {
    match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    }
}

/// Why an operation failed, in upstream's words where it has some for the case. A path may be most of a patch: its begin is shown.
fn failure(operation: &PatchOperation, kind: &PatchErrorKind) -> String {
    let (name, path) = (name_of(operation), shortened(operation.path().as_str()));
    match kind {
        PatchErrorKind::TestFailed => format!("testing value {path} failed: test failed"),
        PatchErrorKind::InvalidPointer if name == "test" => format!("error in test for path: '{path}': missing value"),
        PatchErrorKind::InvalidPointer => {
            format!("{name} operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        PatchErrorKind::InvalidFromPointer => {
            let from = match operation {
                PatchOperation::Move(it) => shortened(it.from.as_str()),
                PatchOperation::Copy(it) => shortened(it.from.as_str()),
                _ => path,
            };
            format!("{name} operation does not apply: doc is missing from path: \"{from}\": missing value")
        }
        PatchErrorKind::CannotMoveInsideItself => {
            format!("{name} operation does not apply: \"{path}\" is inside of what is moved")
        }
        other => format!("{name} operation does not apply at path \"{path}\": {other}"),
    }
}

/// What the operation adds at most.
fn growth(operation: &PatchOperation, document: &Value) -> usize {
    match operation {
        PatchOperation::Add(it) => size(&it.value),
        PatchOperation::Replace(it) => size(&it.value),
        PatchOperation::Copy(it) => document.pointer(it.from.as_str()).map_or(0, size),
        _ => 0,
    }
}

/// About as many bytes as the value's JSON text, without writing it.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(entries) => 2 + entries.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>(),
    }
}
