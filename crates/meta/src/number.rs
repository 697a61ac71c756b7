//! Whole numbers in texts that clients send, read with Go's bounds and its complaints.

use std::num::{IntErrorKind, ParseIntError};

/// # Errors
/// Go's sentence for a text that is no number, or one that 64 bits with a sign do not hold.
pub fn signed(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| complaint("ParseInt", text, &error))
}

/// # Errors
/// As [`signed`], of numbers without a sign.
pub fn unsigned(text: &str) -> Result<u64, String> {
    // Go takes no sign here, not even a plus.
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|error| complaint("ParseUint", text, &error))
}

fn complaint(reader: &str, text: &str, error: &ParseIntError) -> String {
    let what = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{reader}: parsing {text:?}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_reads_them() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("+7", Ok(7)),
            ("-7", Ok(-7)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775808", Err("strconv.ParseInt: parsing \"9223372036854775808\": value out of range")),
            ("-9223372036854775809", Err("strconv.ParseInt: parsing \"-9223372036854775809\": value out of range")),
            ("1e3", Err("strconv.ParseInt: parsing \"1e3\": invalid syntax")),
            ("", Err("strconv.ParseInt: parsing \"\": invalid syntax")),
        ] {
            assert_eq!(signed(text), expected.map_err(str::to_owned), "{text}");
        }
        for (text, expected) in [
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err("strconv.ParseUint: parsing \"18446744073709551616\": value out of range")),
            ("-1", Err("strconv.ParseUint: parsing \"-1\": invalid syntax")),
            ("+1", Err("strconv.ParseUint: parsing \"+1\": invalid syntax")),
        ] {
            assert_eq!(unsigned(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
