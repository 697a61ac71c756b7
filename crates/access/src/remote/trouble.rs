//! Since when a server has not answered, and why: for whoever looks for what is wrong.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// More is not kept of what went wrong.
const REASON_CHARS_MAX: usize = 500;

/// Of one server that is asked.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<OngoingFailure>>);

#[derive(Clone)]
struct OngoingFailure {
    since: Instant,
    asked: Instant,
    reason: String,
}

/// A server that gave no answer the last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswering {
    /// In the words of a sentence: `the authorization webhook "x"`.
    pub who: String,
    /// How long ago the first failure in an unbroken row was.
    pub since: Duration,
    /// How long ago the newest one was: nobody may have asked since.
    pub asked: Duration,
    /// Why, on one line.
    pub reason: String,
}

impl Trouble {
    /// It gave an answer.
    pub(crate) fn over(&self) {
        let mut failing = self.0.lock();
        if failing.is_some() {
            *failing = None;
        }
    }

    pub(crate) fn goes_on(&self, reason: &str) {
        let reason: String =
            reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(REASON_CHARS_MAX).collect();
        let mut failing = self.0.lock();
        let asked = Instant::now();
        let since = failing.as_ref().map_or(asked, |it| it.since);
        *failing = Some(OngoingFailure { since, asked, reason });
    }

    pub(crate) fn of(&self, who: impl FnOnce() -> String) -> Option<Unanswering> {
        let OngoingFailure { since, asked, reason } = self.0.lock().clone()?;
        Some(Unanswering { who: who(), since: since.elapsed(), asked: asked.elapsed(), reason })
    }
}
