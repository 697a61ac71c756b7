//! A number of Pods, or a share of them in percent.

use corten_schema::Cursor;

/// A number that is not negative, or a percentage.
pub fn int_or_percent(value: Cursor<'_>) {
    if value.value().is_string() {
        if percent(value.str()).is_none() {
            value.invalid("a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
        }
    } else {
        value.non_negative_int();
    }
}

pub fn at_most_all(value: Cursor<'_>) {
    if percent(value.str()).is_some_and(|it| it > 100) {
        value.invalid("must not be greater than 100%");
    }
}

pub fn is_zero(value: Cursor<'_>) -> bool {
    if value.value().is_string() { percent(value.str()).unwrap_or_default() == 0 } else { value.int() == 0 }
}

fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}
