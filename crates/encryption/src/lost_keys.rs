//! Values that are stored under keys that the configuration in use does not have: they are in memory, and nobody can read them
//! after the next start.
//!
//! Only what values begin with is looked at: nothing is decrypted, and no plugin is asked.

use std::collections::BTreeMap;

use corten_store::Range;

use crate::{shared::Shared, transformers::maker};

const PAGE: usize = 500;
/// No more than so many values are looked at.
const PAGES_MAX: usize = 400;

/// A key that values of a resource carry and their providers do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostKey {
    /// `secrets`, or `things.example.org`.
    pub(crate) resource: String,
    /// `key "two" of aesgcm`.
    pub(crate) key: String,
    pub(crate) n: usize,
}

impl LostKey {
    pub(crate) fn line(&self) -> String {
        let Self { resource, key, n } = self;
        format!(
            "{n} of {resource} are stored under {key}, which the encryption configuration does not have any more: they cannot be read after the next start. Put it back, write them anew (kubectl get {resource} -A -o json | kubectl replace -f -), then take it away"
        )
    }
}

/// `None` where the store does not answer: then nothing is known.
pub(crate) async fn look(shared: &Shared) -> Option<Vec<LostKey>> {
    let mut lost: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut range = Range::prefix("/");
    for _ in 0..PAGES_MAX {
        let page = shared.inner.range(range.clone(), None, PAGE).await.ok()?;
        for entry in &page.entries {
            let Some(maker) = maker(&entry.value) else { continue };
            let Some(resource) = shared.resource(&entry.key) else { continue };
            if !shared.encryption.has_key_of(&resource, &entry.value) {
                *lost.entry((resource.to_string(), maker)).or_default() += 1;
            }
        }
        match page.entries.last() {
            Some(last) if page.more => range.start = [&last.key[..], b"\0"].concat().into(),
            _ => break,
        }
    }
    Some(lost.into_iter().map(|((resource, key), n)| LostKey { resource, key, n }).collect())
}
