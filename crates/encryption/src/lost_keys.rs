//! Values that are stored under keys that the configuration in use does not have: they are in memory, and nobody can read them
//! after the next start.
//!
//! Only what values begin with is looked at: nothing is decrypted, and no plugin is asked.

use std::collections::BTreeMap;

use bytes::Bytes;
use corten_store::{Range, Revision};

use crate::{lost_key::LostKey, shared::Shared, transformers::maker};

const PAGE: usize = 500;
/// No more than so many values are looked at.
const PAGES_MAX: usize = 400;

/// `None` where the store does not answer: then nothing is known.
pub(crate) async fn look(shared: &Shared) -> Option<Vec<LostKey>> {
    let mut lost: BTreeMap<(String, String), BTreeMap<Bytes, Revision>> = BTreeMap::new();
    let mut range = Range::prefix("/");
    for _ in 0..PAGES_MAX {
        let page = shared.inner.range(range.clone(), None, PAGE).await.ok()?;
        for entry in &page.entries {
            let Some(maker) = maker(&entry.value) else { continue };
            let Some(resource) = shared.resource(&entry.key) else { continue };
            if !shared.encryption.has_key_of(&resource, &entry.value) {
                let values = lost.entry((resource.to_string(), maker)).or_default();
                // A copy: what the page was read into is not to be kept for it.
                values.insert(Bytes::copy_from_slice(&entry.key), entry.mod_revision);
            }
        }
        match page.entries.last() {
            Some(last) if page.more => range.start = [&last.key[..], b"\0"].concat().into(),
            _ => break,
        }
    }
    Some(lost.into_iter().map(|((resource, key), values)| LostKey { resource, key, values }).collect())
}
