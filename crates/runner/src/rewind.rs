//! Notices that the machine's clock was set back.
//!
//! A mind that keeps times in memory would wait until they come round again: probes and retries would rest for as long as
//! the jump was wide. So it is made anew, from what the API and the machine have. A jump forward makes all due at once, which
//! is harmless.

use std::time::Duration;

use corten_meta::Time;

/// Less than that a clock is corrected by now and then; everything is late by as much, and nobody sees it.
const UNNOTICED: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Rewind {
    latest: Option<Time>,
}

impl Rewind {
    /// Is it earlier than it was when this was asked before?
    pub(crate) fn happened(&mut self, now: Time) -> bool {
        let latest = *self.latest.get_or_insert(now);
        let happened = now.after(UNNOTICED) < latest;
        if happened || now > latest {
            self.latest = Some(now);
        }
        happened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_jump_back_counts_and_only_once() {
        let mut rewind = Rewind::default();
        let asked = [100, 101, 100, 99, 7_000, 3_000, 2_999, 3_500, 3_497].map(|it| Time::from_unix_millis(it * 1000));
        let happened: Vec<bool> = asked.into_iter().map(|it| rewind.happened(it)).collect();
        assert_eq!(happened, [false, false, false, false, false, true, false, false, true]);
    }
}
