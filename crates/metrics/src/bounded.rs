//! Labels that people choose: only so many of them are counted.

use std::collections::HashSet;

use corten_meta::{stable_hash, stable_hash_from};
use parking_lot::Mutex;

/// The labels that are counted by name. Where there are as many as there may be, new ones are counted no more, so that a
/// configuration whose names change again and again takes no more memory.
pub struct BoundedLabels {
    max: usize,
    /// Their hashes: requests ask, and copy nothing for it. Two that share one are counted where only one should be.
    known: Mutex<HashSet<u64>>,
}

impl BoundedLabels {
    pub fn new(max: usize) -> Self {
        Self { max, known: Mutex::default() }
    }

    /// May these be counted?
    pub fn admits(&self, labels: &[&str]) -> bool {
        // A zero byte between them, so that no two rows of labels read the same.
        let hash = labels
            .iter()
            .fold(stable_hash(&[]), |hash, it| stable_hash_from(stable_hash_from(hash, it.as_bytes()), &[0]));
        let mut known = self.known.lock();
        known.contains(&hash) || (known.len() < self.max && known.insert(hash))
    }
}
