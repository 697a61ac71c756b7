//! What plugins want to be said beside the answer: warnings to the author, annotations of the audit record.

use std::{collections::BTreeMap, time::Duration};

use corten_cacher::warnings::Warnings;
use parking_lot::Mutex;

/// Plugins only read the request, so that these are behind a lock.
#[derive(Default)]
pub struct Notes {
    noted: Mutex<Noted>,
    webhooks: Mutex<WebhookTime>,
}

/// How long others were waited for.
#[derive(Default)]
struct WebhookTime {
    mutating: Duration,
    validating: Duration,
}

#[derive(Default)]
pub struct Noted {
    pub warnings: Warnings,
    pub annotations: BTreeMap<String, String>,
    /// What shows parts of objects: for records that show what was asked for.
    pub annotations_of_objects: BTreeMap<String, String>,
}

impl Notes {
    /// A write that is tried again says it once.
    pub fn warn(&self, message: impl Into<String>) {
        self.noted.lock().warnings.add(message.into());
    }

    /// For the audit record.
    pub fn annotate(&self, key: &str, value: impl Into<String>) {
        self.noted.lock().annotations.insert(key.to_owned(), value.into());
    }

    /// For an audit record of level `Request` or more (`AddAnnotationWithLevel`).
    pub fn annotate_object(&self, key: &str, value: impl Into<String>) {
        self.noted.lock().annotations_of_objects.insert(key.to_owned(), value.into());
    }

    /// Mutating webhooks are asked one after another, so that their times add up.
    pub(crate) fn mutating_webhook_took(&self, time: Duration) {
        self.webhooks.lock().mutating += time;
    }

    /// Validating webhooks are asked at once: the slowest counts (`newMaxLatencyTracker`).
    pub(crate) fn validating_webhook_took(&self, time: Duration) {
        let mut webhooks = self.webhooks.lock();
        webhooks.validating = webhooks.validating.max(time);
    }

    /// How long the request has waited for webhooks.
    pub fn webhook_time(&self) -> Duration {
        let webhooks = self.webhooks.lock();
        webhooks.mutating + webhooks.validating
    }

    /// All that was noted; from then on nothing is.
    pub fn take(&mut self) -> Noted {
        std::mem::take(self.noted.get_mut())
    }
}
