//! What the log tells of requests that are refused since nobody knows who sends them.
//!
//! The answer says no more than 401, so the log says why. Whoever sends bad credentials without end writes no more lines by it:
//! a reason is told once a minute, and only so many reasons are.

use std::{collections::BTreeSet, time::Duration};

use corten_meta::Time;
use corten_webhook::excerpt;
use parking_lot::Mutex;

const PERIOD: Duration = Duration::from_secs(60);
const TOLD_MAX: usize = 20;

#[derive(Default)]
pub(crate) struct Refusals(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// When the period began; a clock may be set back.
    since: Option<Time>,
    /// The reasons that were told in this period.
    told: BTreeSet<String>,
    /// How many refusals nothing was told of, since something was told the last time.
    n_untold: u64,
}

impl Refusals {
    /// A request is refused for these reasons.
    pub(crate) fn tell(&self, reasons: &[String], now: Time) {
        let reasons = reasons.iter().map(|it| excerpt(it)).collect::<Vec<_>>().join(", ");
        match self.may_tell(&reasons, now) {
            Some(n_before) => tracing::warn!(?reasons, n_before, "unable to authenticate the request"),
            None => tracing::debug!(?reasons, "unable to authenticate the request"),
        }
    }

    /// With how many refusals were told to nobody before this one.
    fn may_tell(&self, reasons: &str, now: Time) -> Option<u64> {
        let mut known = self.0.lock();
        if known.since.is_none_or(|it| now < it || now.since(it) >= PERIOD) {
            known.since = Some(now);
            known.told.clear();
        }
        if known.told.len() >= TOLD_MAX || !known.told.insert(reasons.to_owned()) {
            known.n_untold = known.n_untold.saturating_add(1);
            return None;
        }
        Some(std::mem::take(&mut known.n_untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_a_minute_and_only_so_many_are() {
        let (refusals, began) = (Refusals::default(), Time::from_unix_seconds(1_000));
        let told = |reason: &str, seconds: i64| refusals.may_tell(reason, began.after_seconds(seconds));
        assert_eq!(told("expired", 0), Some(0));
        assert_eq!([told("expired", 1), told("expired", 59)], [None, None]);
        assert_eq!(told("another audience", 59), Some(2), "what was kept back is counted");
        assert_eq!(told("expired", 60), Some(0), "a minute later");
        let n_told = (0..1000).filter(|it| told(&format!("flood {it}"), 61).is_some()).count();
        assert_eq!(n_told, TOLD_MAX - 1, "beside the one of before");
        assert_eq!(told("expired", 120), Some(1000 - 19));
        assert_eq!(told("expired", -500), Some(0), "the clock was set back");
    }
}
