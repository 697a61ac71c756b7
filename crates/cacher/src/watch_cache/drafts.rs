//! The DOMs that the newest writes were made of. What changes an object right after another has written it, as the scheduler does
//! with a new Pod, need not read it out of its bytes again.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

use corten_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;

/// What is kept was made of so much JSON: a DOM takes about eight times that.
const BYTES_MAX: usize = 1 << 20;
const WRITES_MAX: usize = 2048;

#[derive(Default)]
pub(super) struct Drafts {
    newest: Mutex<Newest>,
    hasher: RandomState,
}

#[derive(Default)]
struct Newest {
    /// By the hash of the key in the store: of two keys with one hash the later one's is kept.
    drafts: HashMap<u64, Draft>,
    /// The oldest first; an object that was written again is in it for each time.
    writes: VecDeque<(u64, Revision)>,
    bytes: usize,
}

struct Draft {
    /// In the store.
    key: String,
    revision: Revision,
    bytes: usize,
    object: Arc<Value>,
}

impl Drafts {
    /// Keeps what [`super::Stored::draft`] would make of the object that was stored under `prefix` and `key`.
    pub(super) fn keep(&self, prefix: &str, key: &str, revision: Revision, bytes: usize, object: Value) {
        // One that is large would take the place of many.
        if bytes > BYTES_MAX / 64 {
            return;
        }
        let draft = Draft { key: [prefix, key].concat(), revision, bytes, object: Arc::new(object) };
        let hash = self.hash(prefix, key);
        let mut newest = self.newest.lock();
        // Nobody asks for the state before.
        let before = newest.put(hash, draft);
        let oldest = newest.take_what_is_too_much();
        drop(newest);
        // To free them takes a while.
        drop((before, oldest));
    }

    pub(super) fn get(&self, prefix: &str, key: &str, revision: Revision) -> Option<Arc<Value>> {
        let newest = self.newest.lock();
        let found = newest.drafts.get(&self.hash(prefix, key)).filter(|it| it.revision == revision)?;
        Some(found.object.clone()).filter(|_| found.key.strip_prefix(prefix) == Some(key))
    }

    /// Drops what was written up to `revision`.
    pub(super) fn forget(&self, revision: Revision) {
        let mut newest = self.newest.lock();
        newest.writes.retain(|it| it.1 > revision);
        newest.drafts.retain(|_, it| it.revision > revision);
        newest.bytes = newest.drafts.values().map(|it| it.bytes).sum();
    }

    fn hash(&self, prefix: &str, key: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(prefix.as_bytes());
        hasher.write(key.as_bytes());
        hasher.finish()
    }
}

impl Newest {
    fn put(&mut self, hash: u64, draft: Draft) -> Option<Draft> {
        self.bytes += draft.bytes;
        self.writes.push_back((hash, draft.revision));
        let before = self.drafts.insert(hash, draft);
        self.bytes -= before.as_ref().map_or(0, |it| it.bytes);
        before
    }

    fn take_what_is_too_much(&mut self) -> Vec<Draft> {
        let mut taken = Vec::new();
        while self.bytes > BYTES_MAX || self.writes.len() > WRITES_MAX {
            let Some((hash, revision)) = self.writes.pop_front() else { break };
            if self.drafts.get(&hash).is_some_and(|it| it.revision == revision) {
                let draft = self.drafts.remove(&hash);
                self.bytes -= draft.as_ref().map_or(0, |it| it.bytes);
                taken.extend(draft);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_kept(drafts: &Drafts, key: &str, revision: Revision) -> bool {
        drafts.get("/pods/", key, revision).is_some()
    }

    #[test]
    fn the_newest_are_kept_each_at_its_revision() {
        let drafts = Drafts::default();
        for revision in 1..=100 {
            drafts.keep("/pods/", &revision.to_string(), revision, 10, json!(revision));
        }
        drafts.keep("/pods/", "99", 101, 10, json!("changed"));
        let get = |key, revision| drafts.get("/pods/", key, revision).map(|it| (*it).clone());
        assert_eq!(get("99", 101), Some(json!("changed")));
        assert_eq!((get("99", 99), get("100", 99), get("101", 101)), (None, None, None));
        assert_eq!((get("100", 100), get("1", 1)), (Some(json!(100)), Some(json!(1))));
        drafts.forget(100);
        assert_eq!((get("100", 100), get("99", 101)), (None, Some(json!("changed"))));
        assert_eq!(drafts.newest.lock().bytes, 10);
    }

    #[test]
    fn they_are_bounded_by_the_bytes_they_were_made_of() {
        let drafts = Drafts::default();
        let bytes = BYTES_MAX / 64;
        for revision in 1..=200 {
            drafts.keep("/pods/", &revision.to_string(), revision, bytes, json!(revision));
        }
        assert!(!is_kept(&drafts, "136", 136) && is_kept(&drafts, "137", 137) && is_kept(&drafts, "200", 200));
        drafts.keep("/pods/", "large", 201, bytes + 1, json!("large"));
        assert!(!is_kept(&drafts, "large", 201) && is_kept(&drafts, "137", 137));
    }

    #[test]
    fn an_object_that_is_written_again_and_again_takes_no_more() {
        let drafts = Drafts::default();
        for revision in 1..=WRITES_MAX as Revision * 3 {
            drafts.keep("/pods/", "busy", revision, 1 << 10, json!(revision));
            assert!(is_kept(&drafts, "busy", revision), "{revision}");
        }
        let newest = drafts.newest.lock();
        assert_eq!((newest.drafts.len(), newest.bytes), (1, 1 << 10));
        assert_eq!(newest.writes.len(), WRITES_MAX);
    }
}
