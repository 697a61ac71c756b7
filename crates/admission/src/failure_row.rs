//! What is remembered of a webhook or policy whose answers are wrong: the row of them that goes on, and that there were some lately.

use corten_meta::Time;
use corten_webhook::Outcomes;

/// What one of them last did, time after time.
pub(crate) trait Failure: Clone {
    /// It answered, and denied what it was asked about.
    fn is_denial(&self) -> bool;
    /// Is it to be told? Not every denial is.
    fn is_told(&self) -> bool;
    fn since(&self) -> Time;
    /// As it is told where some were answered between those that failed. What does not go on has no row.
    fn now_and_then(self, failed_of: (u32, u32), since: Time, goes_on: bool) -> Self;
}

pub(crate) struct FailureRow<F> {
    outcomes: Outcomes,
    /// What goes on.
    row: Option<F>,
    /// The last failure, denials aside.
    failed: Option<F>,
}

impl<F> Default for FailureRow<F> {
    fn default() -> Self {
        Self { outcomes: Outcomes::default(), row: None, failed: None }
    }
}

impl<F: Failure> FailureRow<F> {
    pub(crate) fn goes_on(&self) -> Option<&F> {
        self.row.as_ref()
    }

    pub(crate) fn note(&mut self, failure: F, now: Time) {
        if failure.is_denial() {
            self.outcomes.answered();
        } else {
            self.outcomes.failed(now);
            self.failed = Some(failure.clone());
        }
        self.row = Some(failure);
    }

    /// It answered as it should. True where nothing of before is worth remembering.
    pub(crate) fn worked(&mut self, now: Time) -> bool {
        self.outcomes.answered();
        self.row = None;
        self.outcomes.is_past(now)
    }

    pub(crate) fn told(&self, now: Time) -> Option<F> {
        let row = self.row.as_ref().filter(|it| it.is_told());
        if row.is_some_and(Failure::is_denial) {
            return row.cloned();
        }
        let Some(failed_of) = self.outcomes.now_and_then(now) else { return row.cloned() };
        let failed = row.or(self.failed.as_ref())?.clone();
        let since = self.outcomes.since().unwrap_or_else(|| failed.since());
        Some(failed.now_and_then(failed_of, since, row.is_some()))
    }
}
