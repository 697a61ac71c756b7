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
    /// Seconds since the Unix epoch; out-of-range values are clamped to the epoch.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Milliseconds since the Unix epoch; out-of-range values are clamped to the epoch.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self(Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub fn unix_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// The time from `earlier` to `self`; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::try_from(self.0.duration_since(earlier.0)).unwrap_or_default()
    }

    /// `self + duration`; stays as it is where the sum cannot be represented.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.checked_add(duration).unwrap_or(self.0))
    }

    pub fn micro(self) -> MicroTime {
        MicroTime(self.0)
    }

    /// Without its fraction of a second: equal to what a reader of the API gets back.
    pub fn whole_seconds(self) -> Self {
        Self::from_unix_seconds(self.0.as_second())
    }
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
}
