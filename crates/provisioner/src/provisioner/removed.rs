//! What was removed, and may still be told of as it was before: nothing is removed twice.

use std::collections::BTreeMap;

/// The UIDs of objects whose volume or snapshot is removed, by name, until the objects are gone.
#[derive(Debug, Default)]
pub(super) struct Removed(BTreeMap<String, String>);

impl Removed {
    pub(super) fn note(&mut self, name: String, uid: &str) {
        self.0.insert(name, uid.to_owned());
    }

    /// Another object may have its name by now.
    pub(super) fn is_known(&self, name: &str, uid: &str) -> bool {
        self.0.get(name).is_some_and(|it| it == uid)
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}
