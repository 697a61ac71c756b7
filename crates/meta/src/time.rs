//! Points in time as the API writes them: RFC 3339 in UTC, with whole seconds or microseconds.
//!
//! There is no `now()` here on purpose: time is a parameter of every mind.

mod rfc3339;

use std::{fmt, str::FromStr, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use rfc3339::InvalidTime;

/// `metav1.Time`: printed with whole seconds, kept in full inside the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Timestamp);

/// `metav1.MicroTime`: printed with six digits of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime(pub Timestamp);

impl Time {
    /// The first moment that can be written, at the beginning of the year 0, and the last, at the end of the year 9999. What
    /// would lie beyond is one of them, so whatever is computed can be read again.
    pub const MIN: Self = Self(Timestamp::constant(rfc3339::YEAR_ZERO, 0));
    /// The evening of the last day but one of the year 9999: clients' readers know no later time. What is later is read as it.
    pub const MAX: Self = Self(Timestamp::MAX);

    /// Go's zero, the beginning of the year 1, which stands for a time that is not set: it is written as `null`.
    pub fn is_unset(self) -> bool {
        const YEAR_ONE: Timestamp = Timestamp::constant(-62_135_596_800, 0);
        self.0 == YEAR_ONE
    }

    /// Seconds since the Unix epoch; the nearest time there is where the calendar ends before.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self::within(Timestamp::from_second(seconds).unwrap_or_else(|_| end_towards(seconds)))
    }

    /// As [`Time::from_unix_seconds`], in milliseconds.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self::within(Timestamp::from_millisecond(millis).unwrap_or_else(|_| end_towards(millis)))
    }

    fn within(timestamp: Timestamp) -> Self {
        Self(timestamp).max(Self::MIN)
    }

    pub fn unix_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// The time from `earlier` to `self`; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::try_from(self.0.duration_since(earlier.0)).unwrap_or_default()
    }

    /// `self + duration`; the last moment there is where the calendar ends before. So it does not always advance: what goes
    /// from time to time takes [`Time::checked_after`].
    pub fn after(self, duration: Duration) -> Self {
        self.checked_after(duration).unwrap_or(Self::MAX)
    }

    /// `self + duration`, unless the calendar ends before.
    pub fn checked_after(self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).ok().map(Self)
    }

    /// `self - duration`; the first moment there is where the calendar begins after.
    pub fn before(self, duration: Duration) -> Self {
        Self::within(self.0.checked_sub(duration).unwrap_or(Timestamp::MIN))
    }

    /// `self + seconds`, which may be negative, as users write them.
    pub fn after_seconds(self, seconds: i64) -> Self {
        let duration = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { self.before(duration) } else { self.after(duration) }
    }

    /// To the microsecond: equal to what a reader of its text gets back.
    pub fn micro(self) -> MicroTime {
        let finer = self.0.as_nanosecond().rem_euclid(1_000);
        let whole = Timestamp::from_nanosecond(self.0.as_nanosecond() - finer);
        MicroTime(whole.unwrap_or(self.0))
    }

    /// Without its fraction of a second: equal to what a reader of the API gets back.
    pub fn whole_seconds(self) -> Self {
        Self::from_unix_seconds(self.0.as_second())
    }
}

fn end_towards(number: i64) -> Timestamp {
    if number < 0 { Timestamp::MIN } else { Timestamp::MAX }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `.0` cuts the fraction without rounding, as Go's RFC3339 layout does.
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
    }
}

impl FromStr for Time {
    type Err = InvalidTime;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        rfc3339::read(text, "2006-01-02T15:04:05Z07:00").map(Self)
    }
}

/// With any number of digits after the second, also none.
impl FromStr for MicroTime {
    type Err = InvalidTime;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        rfc3339::read(text, "2006-01-02T15:04:05.000000Z07:00").map(Self)
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
as_text!(Time);
as_text!(MicroTime);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_kubernetes_writes() {
        let time: Time = "2026-11-20T10:57:29.987654Z".parse().expect("valid");
        assert_eq!(time.to_string(), "2026-11-20T10:57:29Z");
        assert_eq!(time.micro().to_string(), "2026-11-20T10:57:29.987654Z");
        assert_eq!("2026-11-20T12:57:29+02:00".parse::<Time>().expect("valid"), time.whole_seconds());
        assert_eq!(time.since(time.whole_seconds()).as_micros(), 987_654);
        assert_eq!(time.whole_seconds().since(time), Duration::ZERO);
    }

    #[test]
    fn the_calendar_has_ends() {
        let time: Time = "2026-11-20T10:57:29Z".parse().expect("valid");
        for seconds in [1, 9_999_999_999 * 3600, i64::MAX] {
            let (later, earlier) = (time.after_seconds(seconds), time.after_seconds(-seconds));
            assert!(earlier < time && time < later, "{seconds}");
            assert_eq!((time.after(Duration::from_secs(seconds.unsigned_abs())), later), (later, later));
        }
        assert_eq!(time.after_seconds(i64::MIN), Time::MIN);
        assert_eq!((time.after(Duration::MAX), time.before(Duration::MAX)), (Time::MAX, Time::MIN));
        assert_eq!((time.checked_after(Duration::MAX), Time::MAX.checked_after(Duration::from_nanos(1))), (None, None));
        for number in [i64::MAX, i64::MAX / 1000] {
            assert_eq!((Time::from_unix_seconds(number), Time::from_unix_seconds(-number)), (Time::MAX, Time::MIN));
            assert_eq!((Time::from_unix_millis(number), Time::from_unix_millis(-number)), (Time::MAX, Time::MIN));
        }
        assert_eq!(Time::MIN.whole_seconds(), Time::MIN);
        for (text, is_unset) in [
            ("0001-01-01T00:00:00Z", true),
            ("0001-01-01T02:00:00+02:00", true),
            ("0001-01-01T00:00:00.000000001Z", false),
            ("0000-12-31T23:59:59Z", false),
        ] {
            assert_eq!(text.parse::<Time>().map(Time::is_unset), Ok(is_unset), "{text}");
        }
        for (end, text) in [(Time::MIN, "0000-01-01T00:00:00Z"), (Time::MAX.whole_seconds(), "9999-12-30T22:00:00Z")] {
            assert_eq!((end.to_string().as_str(), text.parse()), (text, Ok(end)), "what is written is read again");
            assert_eq!(end.micro().to_string().parse(), Ok(end.micro()));
        }
    }
}
