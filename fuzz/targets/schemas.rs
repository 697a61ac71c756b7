//! Schemas of custom resources and objects for them: whatever either says, defaulting and pruning once is enough, what has not
//! changed is not refused, and all of it ends soon.
//!
//! The input is two lines: a schema and an object.

#![no_main]

use corten_meta::{Violation, depth};
use corten_schema::structural::Structural;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut lines = data.splitn(2, |it| *it == b'\n');
    let (Some(schema), Some(object)) = (lines.next(), lines.next()) else { return };
    let (Ok(schema), Ok(object)) = (depth::read(schema), depth::read(object)) else { return };
    let (schema, mut object) = (Structural::read(&schema.value), object.value);
    schema.prune(&mut object);
    let once = object.clone();
    assert!(schema.prune(&mut object).is_empty(), "what is left is known");
    assert_eq!(object, once, "pruning once is enough");
    if schema.default(&mut object).is_err() {
        return;
    }
    let once = object.clone();
    schema.default(&mut object).expect("nothing is added twice");
    assert_eq!(object, once, "defaulting once is enough");
    let found = schema.validate(&object, None);
    assert!(found.len() <= Violation::MOST + 1, "what is told is bounded");
    assert!(schema.validate(&object, Some(&object)).is_empty(), "what has not changed is not refused");
    if found.is_empty() {
        schema.validate_expressions(&object, None);
    }
});
