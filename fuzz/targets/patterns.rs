//! Regular expressions that people write, or that objects hold: read, compiled within bounds, matched against a text. Whatever
//! they are, that ends soon.
//!
//! What comes after a line of its own is the text.

#![no_main]

use corten_cel::{Fuel, Pattern, check_pattern};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, text) = text.split_once("\n---\n").unwrap_or((text, "a b"));
    let fuel = Fuel::new(Fuel::OBJECT / 100);
    let (checked, _) = fuel.lend(u64::MAX, || check_pattern(pattern));
    let (matched, _) = fuel.lend(u64::MAX, || Pattern::new(pattern).is_match(text));
    assert!(checked.is_ok() || matched.is_err(), "{pattern:?} is refused and asked: {checked:?}");
});
