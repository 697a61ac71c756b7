//! The DOMs that the newest writes were made of. What changes an object right after another has written it, as the scheduler does
//! with a new Pod, need not read it out of its bytes again.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use corten_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;

/// So many are kept, each of no more than this much JSON: a DOM takes about eight times that.
const DRAFTS_MAX: usize = 64;
const BYTES_MAX: usize = 8 << 10;

#[derive(Default)]
pub(super) struct Drafts {
    drafts: Mutex<VecDeque<Draft>>,
    hasher: RandomState,
}

struct Draft {
    /// Of `key`: the keys themselves lie far apart in memory, and a write looks at all of them.
    hash: u64,
    /// In the store.
    key: String,
    revision: Revision,
    object: Arc<Value>,
}

impl Drafts {
    /// Keeps what [`super::Stored::draft`] would make of the object that was stored under `key`.
    pub(super) fn keep(&self, key: String, revision: Revision, bytes: usize, object: Value) {
        if bytes > BYTES_MAX {
            return;
        }
        let object = Arc::new(object);
        let hash = self.hasher.hash_one(&*key);
        let mut drafts = self.drafts.lock();
        // Nobody asks for the state before.
        let is_outdated = |it: &Draft| it.hash == hash && it.key == key;
        let outdated = drafts.iter().position(is_outdated).and_then(|at| drafts.remove(at));
        let oldest = if drafts.len() >= DRAFTS_MAX { drafts.pop_front() } else { None };
        drafts.push_back(Draft { hash, key, revision, object });
        drop(drafts);
        // To free them takes a while.
        drop((outdated, oldest));
    }

    pub(super) fn get(&self, prefix: &str, key: &str, revision: Revision) -> Option<Arc<Value>> {
        let is_it = |it: &&Draft| it.revision == revision && it.key.strip_prefix(prefix) == Some(key);
        self.drafts.lock().iter().rev().find(is_it).map(|it| it.object.clone())
    }

    /// Drops what was written up to `revision`.
    pub(super) fn forget(&self, revision: Revision) {
        self.drafts.lock().retain(|it| it.revision > revision);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_are_kept_each_at_its_revision() {
        let drafts = Drafts::default();
        for revision in 1..=100 {
            drafts.keep(format!("/pods/{revision}"), revision, 10, json!(revision));
        }
        drafts.keep("/pods/99".into(), 101, 10, json!("changed"));
        drafts.keep("/pods/large".into(), 102, BYTES_MAX + 1, json!("large"));
        let get = |key, revision| drafts.get("/pods/", key, revision).map(|it| (*it).clone());
        assert_eq!(get("99", 101), Some(json!("changed")));
        assert_eq!((get("99", 99), get("100", 99), get("1", 1), get("large", 102)), (None, None, None, None));
        assert_eq!(get("100", 100), Some(json!(100)));
        assert_eq!(drafts.drafts.lock().len(), DRAFTS_MAX);
        drafts.forget(100);
        assert_eq!((get("100", 100), get("99", 101)), (None, Some(json!("changed"))));
    }
}
