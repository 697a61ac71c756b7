//! Whether a node that failed is started again, and after what pause.

use std::time::Duration;

use corten_meta::Time;

/// The pause after the first failure; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Failures that are longer ago say nothing about the next start.
pub(crate) const WINDOW: Duration = Duration::from_secs(10 * 60);
/// With so many in the window another start will not help either.
const FAILURES_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    RestartAfter(Duration),
    GiveUp,
}

/// What follows the last of these failures, which is the one that has just been seen.
pub(crate) fn next(failures: &[Time], now: Time) -> Next {
    // A clock that was set back makes times of failures that lie ahead: they are recent.
    let n_recent = failures.iter().filter(|it| now.since(**it) < WINDOW).count();
    if n_recent >= FAILURES_MAX {
        return Next::GiveUp;
    }
    let doublings = u32::try_from(n_recent.saturating_sub(1)).unwrap_or(u32::MAX);
    let pause = 2_u32.checked_pow(doublings).map_or(PAUSE_MAX, |it| PAUSE.saturating_mul(it));
    Next::RestartAfter(pause.min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it failed, in seconds before now, and what follows.
    const CASES: &[(&str, &[i64], Next)] = &[
        ("the first", &[0], Next::RestartAfter(PAUSE)),
        ("the second within the window", &[599, 0], Next::RestartAfter(Duration::from_secs(2))),
        ("the one before is long over", &[600, 0], Next::RestartAfter(PAUSE)),
        ("many, and all are long over", &[9_000; 40], Next::RestartAfter(PAUSE)),
        ("a loop", &[7, 6, 4, 0], Next::RestartAfter(Duration::from_secs(8))),
        ("pauses have an end", &[61, 60, 58, 54, 46, 30, 0], Next::RestartAfter(PAUSE_MAX)),
        ("the last attempt", &[200, 190, 180, 170, 160, 150, 140, 130, 0], Next::RestartAfter(PAUSE_MAX)),
        ("one more than that", &[200, 190, 180, 170, 160, 150, 140, 130, 120, 0], Next::GiveUp),
        ("one of them is over", &[600, 190, 180, 170, 160, 150, 140, 130, 120, 0], Next::RestartAfter(PAUSE_MAX)),
        ("the clock was set back", &[-3_600, -3_599, 0], Next::RestartAfter(Duration::from_secs(4))),
        ("the clock was set back in a loop", &[-3_600; 10], Next::GiveUp),
        ("none", &[], Next::RestartAfter(PAUSE)),
    ];

    #[test]
    fn pauses_grow_and_end() {
        let now = Time::from_unix_seconds(1_800_000_000);
        for (name, before, follows) in CASES {
            let failures: Vec<Time> = before.iter().map(|it| Time::from_unix_seconds(1_800_000_000 - it)).collect();
            assert_eq!(next(&failures, now), *follows, "{name}");
        }
    }

    #[test]
    fn a_loop_that_fails_at_once_is_given_up_within_minutes() {
        let (mut now, mut failures) = (Time::from_unix_seconds(1_800_000_000), Vec::new());
        let begin = now;
        loop {
            failures.push(now);
            match next(&failures, now) {
                Next::RestartAfter(pause) => now = now.after(pause),
                Next::GiveUp => break,
            }
        }
        assert_eq!((failures.len(), now.since(begin)), (FAILURES_MAX, Duration::from_secs(151)));
        assert!(now.since(begin) < WINDOW, "or it would never be given up");
    }
}
