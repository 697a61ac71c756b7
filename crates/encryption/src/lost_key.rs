//! A key that is gone from the configuration, and not from the store.

use std::collections::BTreeMap;

use bytes::Bytes;
use corten_store::Revision;

/// A key that values of a resource carry and their providers do not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LostKey {
    /// `secrets`, or `things.example.org`.
    pub(crate) resource: String,
    /// `key "two" of aesgcm`.
    pub(crate) key: String,
    /// Where they are stored, and as what revision they were found.
    pub(crate) values: BTreeMap<Bytes, Revision>,
}

impl LostKey {
    pub(crate) fn line(&self) -> String {
        let Self { resource, key, values } = self;
        let n = values.len();
        format!(
            "{n} of {resource} are stored under {key}, which the encryption configuration does not have any more: they cannot be read after the next start. Put it back, write them anew (kubectl get {resource} -A -o json | kubectl replace -f -), then take it away"
        )
    }

    /// The same of the one value that is stored there, which is called `what`; none where it was written anew since it was found.
    pub(crate) fn line_of(&self, what: &str, stored_at: &[u8], revision: Revision) -> Option<String> {
        self.values.get(stored_at).filter(|it| **it == revision)?;
        let key = &self.key;
        Some(format!(
            "{what} is stored under {key}, which the encryption configuration does not have any more: it cannot be read after the next start. Put that key back, write it anew, then take the key away"
        ))
    }
}
