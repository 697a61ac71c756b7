//! Which conversion webhooks fail, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Wait};
use corten_webhook::{Outcomes, excerpt};
use parking_lot::Mutex;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionFailure {
    /// Of the first failure in an unbroken row.
    pub since: Time,
    /// Of the newest one.
    pub message: String,
}

impl ConversionFailure {
    /// What the definition's journal says of it.
    pub fn decision(&self) -> Decision {
        let mut wait = Wait::new("ConversionWebhookFailing", self.message.clone(), Actor::External);
        wait.since = Some(self.since);
        Decision { by: "conversion".into(), waits: vec![wait], ..Decision::default() }
    }
}

/// By definition.
#[derive(Default)]
pub(crate) struct FailingWebhooks(Mutex<Failures>);

#[derive(Default)]
struct Failures {
    failing: BTreeMap<String, FailureRecord>,
    /// How often a definition was forgotten.
    n_forgotten: u64,
}

struct FailureRecord {
    outcomes: Outcomes,
    /// The newest question failed.
    goes_on: bool,
    failed: ConversionFailure,
}

impl FailureRecord {
    fn told(&self, now: Time) -> Option<ConversionFailure> {
        let Some((failed, of)) = self.outcomes.now_and_then(now) else {
            return self.goes_on.then(|| self.failed.clone());
        };
        let message = format!("{failed} of the last {of} times, {}", self.failed.message);
        Some(ConversionFailure { since: self.outcomes.since().unwrap_or(self.failed.since), message })
    }
}

/// When a question began: one that was under way while its definition went or changed says nothing of what is there now.
#[derive(Clone, Copy)]
pub(crate) struct CallStart(u64);

impl FailingWebhooks {
    pub(crate) fn of(&self, definition: &str, now: Time) -> Option<ConversionFailure> {
        self.0.lock().failing.get(definition)?.told(now)
    }

    pub(crate) fn all(&self, now: Time) -> Vec<(String, ConversionFailure)> {
        self.0.lock().failing.iter().filter_map(|(name, it)| Some((name.clone(), it.told(now)?))).collect()
    }

    pub(crate) fn begin(&self) -> CallStart {
        CallStart(self.0.lock().n_forgotten)
    }

    pub(crate) fn failed(&self, begun: CallStart, definition: &str, message: &str, now: Time) {
        let message = excerpt(message).into_owned();
        let mut known = self.0.lock();
        if known.n_forgotten != begun.0 {
            return;
        }
        let before = known.failing.remove(definition);
        if before.is_none() {
            tracing::warn!(definition, message, "a conversion webhook fails");
        }
        let since = before.as_ref().filter(|it| it.goes_on).map_or(now, |it| it.failed.since);
        let mut outcomes = before.map(|it| it.outcomes).unwrap_or_default();
        outcomes.failed(now);
        let record = FailureRecord { outcomes, goes_on: true, failed: ConversionFailure { since, message } };
        known.failing.insert(definition.to_owned(), record);
    }

    pub(crate) fn answered(&self, definition: &str, now: Time) {
        let mut known = self.0.lock();
        let Some(record) = known.failing.get_mut(definition) else { return };
        record.outcomes.answered();
        record.goes_on = false;
        if record.outcomes.is_past(now) {
            known.failing.remove(definition);
        }
    }

    pub(crate) fn forget(&self, definition: &str) {
        let mut known = self.0.lock();
        known.failing.remove(definition);
        known.n_forgotten += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_ends_after_its_definition_leaves_nothing_behind() {
        let (failing, now) = (FailingWebhooks::default(), Time::from_unix_seconds(0));
        let begun = failing.begin();
        failing.failed(begun, "a", "no", now);
        assert_eq!(failing.all(now).len(), 1);
        failing.forget("a");
        failing.failed(begun, "a", "no", now);
        assert_eq!(failing.all(now), []);
        failing.failed(failing.begin(), "a", "no", now);
        assert_eq!(failing.all(now).len(), 1);
        failing.answered("a", now);
        assert_eq!(failing.all(now), [], "it is mended");
        failing.failed(failing.begin(), "a", "no", now);
        failing.answered("a", now);
        let said = failing.of("a", now).map(|it| it.message);
        assert_eq!(said.as_deref(), Some("2 of the last 4 times, no"), "it fails now and then");
    }
}
