//! A time between the beginning of the year 1 and the end of 9999: jiff's ends some hours before.

use jiff::{SignedDuration, civil::DateTime};

/// Seconds since 1970, and nanoseconds after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;
const NANO: i128 = 1_000_000_000;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

impl Timestamp {
    /// `None` outside of the years that there are.
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        ((SECONDS_MIN..=SECONDS_MAX).contains(&seconds) && nanos < 1_000_000_000).then_some(Self { seconds, nanos })
    }

    pub(crate) fn of_civil(civil: DateTime) -> Option<Self> {
        let since = civil.duration_since(EPOCH);
        let nanos = since.as_nanos();
        Self { seconds: 0, nanos: 0 }.moved(nanos)
    }

    /// So many nanoseconds later.
    pub(crate) fn moved(self, by: i128) -> Option<Self> {
        let nanos = (i128::from(self.seconds) * NANO + i128::from(self.nanos)).checked_add(by)?;
        let seconds = i64::try_from(nanos.div_euclid(NANO)).ok()?;
        Self::new(seconds, u32::try_from(nanos.rem_euclid(NANO)).ok()?)
    }

    pub(crate) fn nanos_since(self, other: Self) -> i128 {
        i128::from(self.seconds - other.seconds) * NANO + i128::from(self.nanos) - i128::from(other.nanos)
    }

    /// What a clock shows so many seconds east of Greenwich.
    pub(crate) fn civil(self, offset: i32) -> Option<DateTime> {
        let nanos = i32::try_from(self.nanos).ok()?;
        EPOCH.checked_add(SignedDuration::new(self.seconds + i64::from(offset), nanos)).ok()
    }

    /// To look up zones with: the nearest time that they are known for.
    pub(crate) fn in_zones(self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.seconds).unwrap_or(jiff::Timestamp::MAX)
    }
}

/// # Errors
/// If it is no duration as Go writes them.
pub(crate) fn duration(text: &str) -> Result<i64, String> {
    corten_meta::duration::nanos(text)
}

/// A time of RFC 3339: `2006-01-02T15:04:05.999Z`.
///
/// # Errors
/// If it is none, or in no year from 1 to 9999.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, &'static str> {
    const NONE: &str = "not a time";
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = bytes.get(range)?;
        part.iter().all(u8::is_ascii_digit).then(|| part.iter().fold(0, |sum, it| sum * 10 + i64::from(it - b'0')))
    };
    let sign = |at: usize, it: u8| bytes.get(at) == Some(&it);
    if !(text.is_ascii() && sign(4, b'-') && sign(7, b'-') && sign(10, b'T') && sign(13, b':') && sign(16, b':')) {
        return Err(NONE);
    }
    let rest = &text[19.min(text.len())..];
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("", rest),
    };
    if rest.starts_with('.') && fraction.is_empty() {
        return Err(NONE);
    }
    let nanos: i32 = format!("{:0<9}", &fraction[..fraction.len().min(9)]).parse().map_err(|_| NONE)?;
    let small = |it: Option<i64>| it.and_then(|it| i8::try_from(it).ok()).ok_or(NONE);
    let year = digits(0..4).and_then(|it| i16::try_from(it).ok()).ok_or(NONE)?;
    let (month, day) = (small(digits(5..7))?, small(digits(8..10))?);
    let (hour, minute, second) = (small(digits(11..13))?, small(digits(14..16))?, small(digits(17..19))?);
    let civil = DateTime::new(year, month, day, hour, minute, second, nanos).map_err(|_| NONE)?;
    let seconds = zone_seconds(zone).ok_or(NONE)?;
    Timestamp::of_civil(civil).and_then(|it| it.moved(i128::from(-seconds) * 1_000_000_000)).ok_or(NONE)
}

/// `Z`, or `+hh:mm`.
fn zone_seconds(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two = |it: &str| (it.len() == 2).then(|| it.parse::<u8>().ok()).flatten().map(i64::from);
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// As Go writes a duration in seconds: `1.5s`.
pub(crate) fn duration_text(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    format!("{sign}{seconds}.{}s", format!("{rest:09}").trim_end_matches('0'))
}

pub(crate) fn timestamp_text(at: Timestamp) -> String {
    let civil = at.civil(0).unwrap_or(DateTime::MAX);
    let fraction = match civil.subsec_nanosecond() {
        0 => String::new(),
        nanos => format!(".{}", format!("{nanos:09}").trim_end_matches('0')),
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}Z",
        civil.year(),
        civil.month(),
        civil.day(),
        civil.hour(),
        civil.minute(),
        civil.second()
    )
}
