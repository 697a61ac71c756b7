//! Reading JSON: whatever comes, the reader neither panics nor loses anything, and what checking and pruning leave of an
//! object has only fields that its type knows.

#![no_main]

use corten_schema::{TYPES, check, duplicates, prune, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [high, low, json @ ..] = data else { return };
    let of = TYPES[usize::from(u16::from_be_bytes([*high, *low])) % TYPES.len()];
    let Ok((mut value, repeated)) = read(json) else {
        assert!(serde_json::from_slice::<serde_json::Value>(json).is_err(), "it reads what others read");
        return;
    };
    assert_eq!(repeated, duplicates(json));
    let text = serde_json::to_vec(&value).expect("a value can be written");
    assert_eq!(read(&text).expect("what was written can be read").0, value);
    if check(of.name, &value).wrong_types.is_empty() {
        prune(of.name, &mut value);
        assert!(check(of.name, &value).is_empty(), "nothing unknown is left");
    }
});
