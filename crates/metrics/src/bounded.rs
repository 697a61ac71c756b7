//! Labels that people choose: only so many of them are counted.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// The labels that are counted by name. Where there are as many as there may be, new ones are counted no more, so that a
/// configuration whose names change again and again takes no more memory.
pub struct BoundedLabels {
    max: usize,
    known: Mutex<BTreeSet<Vec<String>>>,
}

impl BoundedLabels {
    pub fn new(max: usize) -> Self {
        Self { max, known: Mutex::default() }
    }

    /// May these be counted?
    pub fn admits(&self, labels: &[&str]) -> bool {
        let mut known = self.known.lock();
        let labels: Vec<String> = labels.iter().copied().map(str::to_owned).collect();
        known.contains(&labels) || (known.len() < self.max && known.insert(labels))
    }
}
