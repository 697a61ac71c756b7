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

/// Nanoseconds as Go writes them: `1.5s`, `1m2.024s`, `250ms`, `0s`.
pub fn text(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let parts = |unit: u64, digits: usize, name: &str| {
        let fraction = format!("{:0digits$}", nanos % unit);
        let fraction = fraction.trim_end_matches('0');
        let dot = if fraction.is_empty() { "" } else { "." };
        let whole = nanos / unit;
        (whole, format!("{dot}{fraction}{name}"))
    };
    let (seconds, rest) = match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => return format!("{sign}{nanos}ns"),
        1_000..1_000_000 => {
            let (whole, rest) = parts(1_000, 3, "\u{b5}s");
            return format!("{sign}{whole}{rest}");
        }
        1_000_000..1_000_000_000 => {
            let (whole, rest) = parts(1_000_000, 6, "ms");
            return format!("{sign}{whole}{rest}");
        }
        _ => parts(1_000_000_000, 9, "s"),
    };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, format!("{}{rest}", seconds % 60));
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}"),
    }
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
    fn as_go_writes_them() {
        for (nanos, expected) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (2_200_000, "2.2ms"),
            (999_999_999, "999.999999ms"),
            (3_300_000_000, "3.3s"),
            (-15_013_000_000, "-15.013s"),
            (62_024_000_000, "1m2.024s"),
            (245_000_000_000, "4m5s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (3_600_000_000_000, "1h0m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!((&*text(nanos), super::nanos(&text(nanos))), (expected, Ok(nanos)));
        }
    }

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
