//! The highest use, which fades: after a day half of it counts, after two a quarter. A use that is higher than what is left of it is the
//! new one.
//!
//! ```text
//! use    ─┐ 400m                         400m counts for less and less …
//!         └───── 120m ──────────────     … until 120m is more than is left of it
//! ```

use std::time::Duration;

use corten_meta::{Quantity, Time};

const HALF_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Recommendations are whole steps, so that they do not change with every look.
const CPU_STEP_MILLIS: i64 = 5;
const MEMORY_STEP_BYTES: i64 = 4 << 20;

/// What is left of a peak. Between whole half-lives it falls in a straight line.
pub(super) fn faded(peak: i64, since: Duration) -> i64 {
    let n_halves = since.as_secs() / HALF_LIFE.as_secs();
    let Ok(n_halves) = u32::try_from(n_halves) else { return 0 };
    let halved = peak.checked_shr(n_halves).unwrap_or(0);
    let part = i128::from(since.as_secs() % HALF_LIFE.as_secs());
    let gone = i128::from(halved) * part / (2 * i128::from(HALF_LIFE.as_secs()));
    halved - i64::try_from(gone).unwrap_or(halved)
}

/// The peak and its time, after this use was seen.
pub(super) fn after(old: Option<(i64, Time)>, used: i64, now: Time) -> (i64, Time) {
    match old {
        Some((peak, at)) if faded(peak, now.since(at)) > used => (peak, at),
        _ => (used, now),
    }
}

/// A unit in which amounts of the resource are reckoned: thousandths of a processor, or bytes.
pub(super) fn amount(resource: &str, quantity: Quantity) -> i64 {
    if resource == "cpu" { quantity.milli_value() } else { quantity.value() }
}

pub(super) fn quantity(resource: &str, amount: i64) -> Quantity {
    if resource == "cpu" { Quantity::millis(amount) } else { Quantity::bytes(amount) }
}

pub(super) fn step(resource: &str) -> i64 {
    if resource == "cpu" { CPU_STEP_MILLIS } else { MEMORY_STEP_BYTES }
}

/// With headroom, in whole steps, and never nothing.
pub(super) fn target(resource: &str, used: i64, headroom_percent: i64) -> i64 {
    let step = step(resource);
    let wanted = i128::from(used) * i128::from(100 + headroom_percent) / 100;
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX - step);
    (wanted.saturating_add(step - 1) / step).max(1).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    #[test]
    fn a_peak_fades_by_half_a_day() {
        for (seconds, left) in
            [(0, 1000), (DAY / 2, 750), (DAY, 500), (3 * DAY / 2, 375), (2 * DAY, 250), (70 * DAY, 0)]
        {
            assert_eq!(faded(1000, Duration::from_secs(seconds)), left, "{seconds}");
        }
        assert_eq!(faded(i64::MAX, Duration::from_secs(u64::MAX)), 0);
        assert_eq!(faded(i64::MAX, Duration::ZERO), i64::MAX);
    }

    #[test]
    fn a_higher_use_is_the_new_peak() {
        let then: Time = "2026-11-20T12:00:00Z".parse().expect("it is a time");
        let later = then.after(Duration::from_secs(DAY));
        assert_eq!(after(None, 7, then), (7, then));
        assert_eq!(after(Some((100, then)), 40, later), (100, then));
        assert_eq!(after(Some((100, then)), 60, later), (60, later));
        // A clock that was set back makes nothing fade.
        assert_eq!(after(Some((100, later)), 60, then), (100, later));
    }

    #[test]
    fn a_target_has_headroom_and_is_never_nothing() {
        assert_eq!(target("cpu", 100, 15), 115);
        assert_eq!(target("cpu", 101, 15), 120);
        assert_eq!(target("cpu", 0, 15), 5);
        assert_eq!(target("memory", 100 << 20, 0), 100 << 20);
        assert_eq!(target("memory", i64::MAX, 1000) % MEMORY_STEP_BYTES, 0);
    }
}
