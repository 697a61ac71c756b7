//! Delays that double: 10 s, 20 s, ... 5 min, and start anew after ten quiet minutes.

use std::time::Duration;

use corten_meta::Time;

const FIRST: Duration = Duration::from_secs(10);
const LAST: Duration = Duration::from_secs(300);

/// As in client-go's `flowcontrol.Backoff`: the first failure costs nothing, because a delay only exists after [`BackOff::next`].
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    delay: Duration,
    updated: Option<Time>,
}

impl BackOff {
    /// What failed at `failed` had gone well for so long that it begins anew.
    pub(crate) fn is_quiet(&self, failed: Time) -> bool {
        self.updated.is_none_or(|it| failed.since(it) > LAST * 2)
    }

    /// Until when to wait, for something that failed at `failed`; `None`: no longer.
    pub(crate) fn until(&self, failed: Time, now: Time) -> Option<Time> {
        let updated = self.updated?;
        if failed.since(updated) > LAST * 2 {
            return None;
        }
        Some(failed.after(self.delay)).filter(|it| *it > now)
    }

    /// Tries again now, after a failure at `failed`: the next delay is twice as long.
    pub(crate) fn next(&mut self, failed: Time, now: Time) {
        self.delay = if self.is_quiet(failed) { FIRST } else { (self.delay * 2).min(LAST) };
        self.updated = Some(now);
    }

    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }
}

/// As Go prints whole seconds: `10s`, `1m20s`, `5m0s`.
pub(crate) fn go_seconds(duration: Duration) -> String {
    go_millis(Duration::from_secs(duration.as_secs()))
}

/// As the kubelet prints a measured time: in whole milliseconds, `1.234s` or `87ms`.
pub(crate) fn go_millis(duration: Duration) -> String {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    corten_meta::duration::text(millis.saturating_mul(1_000_000))
}

/// The pause before the next try of something that failed `failures` times in a row: 1 s, 2 s, 4 s, up to `longest`.
pub(crate) fn pause(failures: u32, longest: u64) -> Duration {
    Duration::from_secs((1_u64 << failures.saturating_sub(1).min(16)).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_and_forgets() {
        let mut now = Time::from_unix_seconds(0);
        let mut back_off = BackOff::default();
        let mut delays = Vec::new();
        for _ in 0..7 {
            assert_eq!(back_off.until(now, now).is_some(), !delays.is_empty());
            now = back_off.until(now, now).unwrap_or(now);
            back_off.next(now, now);
            delays.push(go_seconds(back_off.delay()));
        }
        assert_eq!(delays, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
        let later = now.after(Duration::from_secs(601));
        assert_eq!(back_off.until(later, later), None);
        back_off.next(later, later);
        assert_eq!(back_off.delay(), FIRST);
    }

    #[test]
    fn prints_as_go_does() {
        for (millis, text) in
            [(0, "0s"), (87, "87ms"), (1000, "1s"), (1234, "1.234s"), (61_500, "1m1.5s"), (3_660_000, "1h1m0s")]
        {
            assert_eq!(go_millis(Duration::from_millis(millis)), text);
        }
    }
}
