//! Server-side apply: the sets of fields that owners hold, read, written and reckoned with; and what a configuration makes of
//! an object.
//!
//! The input is two lines: an object and a configuration of the same type. Both are also read as sets of fields.

#![no_main]

use corten_schema::{
    TYPES,
    apply::{Owners, Set, compare, fields, merged, misfits},
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let [high, low, text @ ..] = data else { return };
    let of = TYPES[usize::from(u16::from_be_bytes([*high, *low])) % TYPES.len()];
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Some((object, configuration)) = text.split_once('\n') else { return };
    // What others have stored may be anything.
    let _ = Owners::read(object);
    if let (Ok(a), Ok(b)) = (Set::read(object), Set::read(configuration)) {
        reckon(&a, &b);
    }
    let (Ok(object), Ok(configuration)) = (serde_json::from_str::<Value>(object), serde_json::from_str(configuration))
    else {
        return;
    };
    if !misfits(of, &object).is_empty() || !misfits(of, &configuration).is_empty() {
        return;
    }
    reckon(&fields(of, &object), &fields(of, &configuration));
    assert!(compare(of, Some(&object), &object).is_same(), "an object is the same as itself");
    let made = merged(of, &object, &configuration);
    assert!(size(&made) <= size(&object) + size(&configuration) + 2, "a merge adds nothing of its own");
    assert!(compare(of, Some(&made), &merged(of, &made, &configuration)).is_same(), "applied twice is applied once");
});

fn reckon(a: &Set<'_>, b: &Set<'_>) {
    for set in [a, b] {
        let text = set.to_json();
        assert_eq!(Set::read(&text).as_ref().ok(), Some(set), "what is written is read");
    }
    let (all, both) = (a.clone().union(b.clone()), a.intersection(b));
    assert!(all.contains(a) && all.contains(b) && a.contains(&both) && b.contains(&both));
    assert_eq!(all, b.clone().union(a.clone()));
    let only = a.clone().difference(b);
    assert!(only.intersection(b).is_empty(), "nothing is in a set and out of it");
    assert_eq!(only.union(both), *a);
    assert!(a.clone().without(a).is_empty());
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}
