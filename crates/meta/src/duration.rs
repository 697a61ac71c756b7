//! Lengths of time as Go writes them: `1h30m`, `-1.5s`, `250ms`. Read with Go's bounds and its complaints.

use std::time::Duration;

/// The units, in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    // Two letters that look alike: the micro sign and the Greek one.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// What an `int64` of nanoseconds goes down to; up, one less.
const NANOS_MAX: u64 = 1 << 63;

/// In nanoseconds.
///
/// # Errors
/// Go's sentence for a text that is no length of time, or one of more than about 292 years.
pub fn nanos(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let (whole, fraction);
        (whole, rest) = digits(rest);
        (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let letters = rest.find(|it: char| it.is_ascii_digit() || it == '.').unwrap_or(rest.len());
        let name;
        (name, rest) = rest.split_at(letters);
        if name.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some((_, unit)) = UNITS.iter().find(|it| it.0 == name) else {
            return Err(format!("time: unknown unit {name:?} in duration {text:?}"));
        };
        let part = part(whole, fraction, *unit).and_then(|it| sum.checked_add(it)).filter(|it| *it <= NANOS_MAX);
        sum = part.ok_or_else(invalid)?;
    }
    if is_negative { 0_i64.checked_sub_unsigned(sum) } else { i64::try_from(sum).ok() }.ok_or_else(invalid)
}

/// As [`nanos`], for what cannot be negative.
///
/// # Errors
/// As there; also where it is negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanos = nanos(text)?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| format!("time: invalid duration {text:?}"))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()))
}

fn part(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    // What comes after the point stops to count where it is less than any nanosecond.
    let (mut below, mut size) = (0_u64, unit);
    for digit in fraction.bytes() {
        size /= 10;
        below = below.checked_add(u64::from(digit.saturating_sub(b'0')).checked_mul(size)?)?;
    }
    whole.checked_mul(unit)?.checked_add(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_reads_them() {
        const HOUR: i64 = 3_600_000_000_000;
        for (text, expected) in [
            ("0", Ok(0)),
            ("+5s", Ok(5_000_000_000)),
            ("-1h30m", Ok(-HOUR * 3 / 2)),
            ("1.5h", Ok(HOUR * 3 / 2)),
            (".5s", Ok(500_000_000)),
            ("5.s", Ok(5_000_000_000)),
            ("1m1m", Ok(120_000_000_000)),
            ("0.100000000000000000000h", Ok(HOUR / 10)),
            ("1\u{b5}s1\u{3bc}s1us1ns", Ok(3_001)),
            ("9223372036854775807ns", Ok(i64::MAX)),
            ("-9223372036854775808ns", Ok(i64::MIN)),
            ("2562047h47m16.854775807s", Ok(i64::MAX)),
            ("", Err("time: invalid duration \"\"")),
            ("-", Err("time: invalid duration \"-\"")),
            (".", Err("time: invalid duration \".\"")),
            (".s", Err("time: invalid duration \".s\"")),
            ("+-5s", Err("time: invalid duration \"+-5s\"")),
            ("5", Err("time: missing unit in duration \"5\"")),
            ("5y", Err("time: unknown unit \"y\" in duration \"5y\"")),
            ("1.2.3s", Err("time: missing unit in duration \"1.2.3s\"")),
            ("9223372036854775808ns", Err("time: invalid duration \"9223372036854775808ns\"")),
            ("-9223372036854775809ns", Err("time: invalid duration \"-9223372036854775809ns\"")),
            ("9999999999h", Err("time: invalid duration \"9999999999h\"")),
            ("99999999999999999999h", Err("time: invalid duration \"99999999999999999999h\"")),
            ("2562047h1h", Err("time: invalid duration \"2562047h1h\"")),
        ] {
            assert_eq!(nanos(text), expected.map_err(str::to_owned), "{text}");
        }
        assert_eq!(duration("-1s"), Err("time: invalid duration \"-1s\"".to_owned()));
    }
}
