//! The three patches: no patch makes them panic, or an object grow beyond what the patch brings and what copies may do.
//!
//! The input is two lines: an object and a patch.

#![no_main]

use corten_schema::{TYPES, patch};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// What a JSON patch may make of an object by copying, as upstream bounds it: three megabytes.
const COPIED_MAX: usize = 3 * 1024 * 1024;

fuzz_target!(|data: &[u8]| {
    let [high, low, text @ ..] = data else { return };
    let of = TYPES[usize::from(u16::from_be_bytes([*high, *low])) % TYPES.len()];
    let mut lines = text.splitn(2, |it| *it == b'\n');
    let (Some(object), Some(change)) = (lines.next(), lines.next()) else { return };
    let Ok(object) = serde_json::from_slice::<Value>(object) else { return };
    if let Ok(patched) = patch::json(object.clone(), change) {
        assert!(size(&patched) <= 2 * COPIED_MAX + data.len(), "copies are bounded");
    }
    let Ok(change) = serde_json::from_slice::<Value>(change) else { return };
    let merged = patch::merge(object.clone(), &change);
    assert!(size(&merged) <= size(&object) + size(&change) + 2, "a merge adds nothing of its own");
    assert_eq!(patch::merge(merged.clone(), &change), merged, "a merge patch done twice is done once");
    if let Ok(patched) = patch::strategic(of.name, object.clone(), &change) {
        assert!(size(&patched) <= size(&object) + size(&change) + 2, "nor does a strategic one");
    }
});

fn size(value: &Value) -> usize {
    value.to_string().len()
}
