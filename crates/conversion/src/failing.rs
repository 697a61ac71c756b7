//! Which conversion webhooks fail, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Wait};
use corten_webhook::excerpt;
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
    failing: BTreeMap<String, ConversionFailure>,
    /// How often a definition was forgotten.
    n_forgotten: u64,
}

/// When a question began: one that was under way while its definition went or changed says nothing of what is there now.
#[derive(Clone, Copy)]
pub(crate) struct CallStart(u64);

impl FailingWebhooks {
    pub(crate) fn of(&self, definition: &str) -> Option<ConversionFailure> {
        self.0.lock().failing.get(definition).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(String, ConversionFailure)> {
        self.0.lock().failing.iter().map(|(name, it)| (name.clone(), it.clone())).collect()
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
        match known.failing.get_mut(definition) {
            Some(known) => known.message = message,
            None => {
                tracing::warn!(definition, message, "a conversion webhook fails");
                known.failing.insert(definition.to_owned(), ConversionFailure { since: now, message });
            }
        }
    }

    pub(crate) fn answered(&self, definition: &str) {
        self.0.lock().failing.remove(definition);
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
        assert_eq!(failing.all().len(), 1);
        failing.forget("a");
        failing.failed(begun, "a", "no", now);
        assert_eq!(failing.all(), []);
        failing.failed(failing.begin(), "a", "no", now);
        assert_eq!(failing.all().len(), 1);
    }
}
