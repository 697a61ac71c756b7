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
