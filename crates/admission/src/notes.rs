//! What plugins want to be said beside the answer: warnings to the author, annotations of the audit record.

use std::collections::BTreeMap;

use corten_cacher::warnings::Warnings;
use parking_lot::Mutex;

/// Plugins only read the request, so that these are behind a lock.
#[derive(Default)]
pub struct Notes(Mutex<Noted>);

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
        self.0.lock().warnings.add(message.into());
    }

    /// For the audit record.
    pub fn annotate(&self, key: &str, value: impl Into<String>) {
        self.0.lock().annotations.insert(key.to_owned(), value.into());
    }

    /// For an audit record of level `Request` or more (`AddAnnotationWithLevel`).
    pub fn annotate_object(&self, key: &str, value: impl Into<String>) {
        self.0.lock().annotations_of_objects.insert(key.to_owned(), value.into());
    }

    /// All that was noted; from then on nothing is.
    pub fn take(&mut self) -> Noted {
        std::mem::take(self.0.get_mut())
    }
}
