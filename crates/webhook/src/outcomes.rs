//! What came of the newest questions to somebody who has failed: one good answer does not make up for those that fail now and then.

use std::time::Duration;

use corten_meta::Time;

/// For so long after a failure it is said that there are some, though the newest question was answered.
const TOLD_FOR: Duration = Duration::from_secs(5 * 60);
/// How many questions are remembered.
const KEPT_MAX: u32 = 20;

/// Since the first failure.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// A bit for each question, the newest is the lowest: was there no valid answer?
    failed: u32,
    n: u32,
    since: Option<Time>,
    failed_at: Option<Time>,
}

impl Outcomes {
    pub fn failed(&mut self, now: Time) {
        if self.is_past(now) {
            *self = Self { since: Some(now), ..Self::default() };
        }
        self.failed_at = Some(now);
        self.note(true);
    }

    pub fn answered(&mut self) {
        self.note(false);
    }

    fn note(&mut self, failed: bool) {
        self.failed = ((self.failed << 1) | u32::from(failed)) & ((1 << KEPT_MAX) - 1);
        self.n = (self.n + 1).min(KEPT_MAX);
    }

    /// Has it not failed for a while?
    pub fn is_past(&self, now: Time) -> bool {
        self.failed_at.is_none_or(|it| now.since(it) > TOLD_FOR)
    }

    /// How many of how many questions failed, where others between them were answered. Who failed and has been mended since is no
    /// concern any more.
    pub fn now_and_then(&self, now: Time) -> Option<(u32, u32)> {
        let n_rows = (self.failed & !(self.failed << 1)).count_ones();
        (n_rows > 1 && !self.is_past(now)).then(|| (self.failed.count_ones(), self.n))
    }

    pub fn since(&self) -> Option<Time> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_between_answers_are_told_for_some_minutes() {
        let at = Time::from_unix_seconds;
        let play = |outcomes: &str| {
            let mut played = Outcomes::default();
            for (second, it) in (0..).zip(outcomes.chars()) {
                if it == 'x' { played.failed(at(second)) } else { played.answered() }
            }
            played
        };
        for (outcomes, told) in [
            ("x", None),
            ("xxx...", None),
            ("x.x.x.", Some((3, 6))),
            ("x.x.x", Some((3, 5))),
            ("xx.xx", Some((4, 5))),
            ("x.x.................", Some((2, 20))),
            ("x.x..................", None),
        ] {
            assert_eq!(play(outcomes).now_and_then(at(60)), told, "{outcomes}");
        }
        let mut flaps = play("x.x.");
        assert_eq!(flaps.now_and_then(at(302)), Some((2, 4)));
        assert_eq!(flaps.now_and_then(at(303)), None);
        flaps.failed(at(400));
        assert_eq!((flaps.now_and_then(at(400)), flaps.since()), (None, Some(at(400))), "the old ones are forgotten");
    }
}
