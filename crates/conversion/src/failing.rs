//! Which conversion webhooks fail, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::Time;
use corten_reconcile::{Actor, Decision, Wait};
use corten_webhook::excerpt;
use parking_lot::Mutex;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Of the first failure in an unbroken row.
    pub since: Time,
    /// Of the newest one.
    pub message: String,
}

impl Failing {
    /// What the definition's journal says of it.
    pub fn decision(&self) -> Decision {
        let mut wait = Wait::new("ConversionWebhookFailing", self.message.clone(), Actor::External);
        wait.since = Some(self.since);
        Decision { by: "conversion".into(), waits: vec![wait], ..Decision::default() }
    }
}

/// By definition.
#[derive(Default)]
pub(crate) struct FailingWebhooks(Mutex<BTreeMap<String, Failing>>);

impl FailingWebhooks {
    pub(crate) fn of(&self, definition: &str) -> Option<Failing> {
        self.0.lock().get(definition).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(String, Failing)> {
        self.0.lock().iter().map(|(name, it)| (name.clone(), it.clone())).collect()
    }

    pub(crate) fn failed(&self, definition: &str, message: &str, now: Time) {
        let message = excerpt(message).into_owned();
        let mut failing = self.0.lock();
        match failing.get_mut(definition) {
            Some(known) => known.message = message,
            None => {
                tracing::warn!(definition, message, "a conversion webhook fails");
                failing.insert(definition.to_owned(), Failing { since: now, message });
            }
        }
    }

    pub(crate) fn answered(&self, definition: &str) {
        self.0.lock().remove(definition);
    }
}
