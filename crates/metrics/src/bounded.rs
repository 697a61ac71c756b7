//! Labels that people choose: only so many of them are counted, and those of what is gone no longer.

use std::collections::{BTreeSet, HashMap};

use corten_meta::{Resource, stable_hash, stable_hash_from};
use parking_lot::Mutex;
use prometheus::core::{MetricVec, MetricVecBuilder};

/// The labels that are counted by name. Where there are as many as there may be, new ones are counted no more until some of the old
/// ones are forgotten, so that a configuration whose names change again and again takes no more memory.
pub struct BoundedLabels {
    max: usize,
    /// Their hashes, with the first label, whose owner may go. Requests ask, and copy nothing for it. Two that share a hash are counted
    /// where only one should be.
    known: Mutex<HashMap<u64, Box<str>>>,
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
        if known.contains_key(&hash) {
            return true;
        }
        let is_room = known.len() < self.max;
        if is_room {
            known.insert(hash, labels.first().copied().unwrap_or_default().into());
        }
        is_room
    }

    /// What has this first label is gone: its place is others'.
    pub fn forget(&self, first: &str) {
        self.known.lock().retain(|_, it| **it != *first);
    }

    /// Makes room where more than half is taken, by what has a first label that nobody has now; names those. Who goes and comes back
    /// while there is room is counted on.
    pub fn make_room(&self, is_current: impl Fn(&str) -> bool) -> BTreeSet<Box<str>> {
        let mut known = self.known.lock();
        if known.len() * 2 <= self.max {
            return BTreeSet::new();
        }
        let gone: BTreeSet<Box<str>> = known.values().filter(|it| !is_current(it)).cloned().collect();
        known.retain(|_, it| !gone.contains(it));
        gone
    }
}

/// Takes out of a metric all that has this value of a label.
pub fn forget_labelled<B: MetricVecBuilder>(metric: &MetricVec<B>, label: &str, value: &str) {
    forget_row(metric, &[(label, value)]);
}

/// Takes out of a metric all that is of this resource.
pub(crate) fn forget_resource<B: MetricVecBuilder>(metric: &MetricVec<B>, resource: &Resource) {
    let Resource { group, version, plural, .. } = resource;
    forget_row(metric, &[("group", &**group), ("version", &**version), ("resource", &**plural)]);
}

pub(crate) fn forget_row<B: MetricVecBuilder>(metric: &MetricVec<B>, wanted: &[(&str, &str)]) {
    for family in prometheus::core::Collector::collect(metric) {
        for counted in family.get_metric() {
            let labels: HashMap<&str, &str> = counted.get_label().iter().map(|it| (it.name(), it.value())).collect();
            if wanted.iter().all(|(label, value)| labels.get(label) == Some(value)) {
                // Somebody else may have taken it out.
                let _ = metric.remove(&labels);
            }
        }
    }
}
