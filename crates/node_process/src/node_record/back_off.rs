//! Whether a node that failed is started again, and after what pause.

use std::time::Duration;

use corten_meta::Time;

/// The pause after the first failure; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);
pub const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Failures that are longer ago say nothing about the next start.
pub const WINDOW: Duration = Duration::from_secs(10 * 60);
/// With so many in the window another start will not help either.
const FAILURES_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    RestartAfter(Duration),
    GiveUp,
}

/// What follows the last of these failures, which is the one that has just been seen.
pub fn next(failures: &[Time], now: Time) -> Next {
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
mod tests;
