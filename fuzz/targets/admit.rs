//! What the server does to an object of any kind before it stores it: defaults, preparation, validation, table cells.
//! None may panic, whatever the object's fields hold, and defaulting twice is defaulting once.

#![no_main]

use corten_kinds::KINDS;
use corten_meta::Time;
use corten_schema::{check, prune};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let [which, text @ ..] = data else { return };
    let kind = &KINDS[usize::from(*which) % KINDS.len()];
    let mut lines = text.splitn(2, |it| *it == b'\n');
    let Some(object) = lines.next().and_then(|it| object_of(kind.schema.name(), it)) else { return };
    let old = lines.next().and_then(|it| object_of(kind.schema.name(), it));

    let now = Time::from_unix_seconds(1_700_000_000);
    for column in kind.columns.iter() {
        let _ = column.cell(&object, now);
    }
    let policy = &kind.policy;
    let mut new = object;
    policy.default(&mut new);
    let once = new.clone();
    policy.default(&mut new);
    assert_eq!(new, once, "defaulting is idempotent");
    match old {
        None => {
            policy.prepare_create(&mut new);
            let _ = policy.validate(&new);
        }
        Some(mut old) => {
            policy.default(&mut old);
            policy.prepare_update(&mut new, &old);
            let _ = policy.validate(&new);
            let _ = policy.validate_update(&new, &old);
        }
    }
});

/// An object that the reader would let through.
fn object_of(schema: &str, json: &[u8]) -> Option<Value> {
    let (mut value, _) = corten_schema::read(json).ok()?;
    let fits = value.is_object() && check(schema, &value).wrong_types.is_empty();
    prune(schema, &mut value);
    fits.then_some(value)
}
