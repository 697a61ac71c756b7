//! What the loops say of themselves: why objects wait, and how busy each loop is.

use corten_meta::{Key, Resource};
use corten_reconcile::Decision;

/// What the loops last decided about an object: answers `corten.dev/v1` Journals.
pub trait JournalSource: Send + Sync {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision>;

    /// The objects of which a loop says that they wait, in order: those whose decisions are `wanted`. It is asked in haste,
    /// while no loop can note anything.
    fn waiting(&self, _wanted: &dyn Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        Vec::new()
    }

    /// The controllers of such objects that were told not to run, by upstream's names.
    fn off(&self, _resource: &Resource) -> Vec<String> {
        Vec::new()
    }

    /// How busy each loop is, for `/metrics`.
    fn queues(&self) -> Vec<LoopQueue> {
        Vec::new()
    }
}

/// The queue of one loop, in numbers.
#[derive(Clone, Debug)]
pub struct LoopQueue {
    /// The loop's name.
    pub name: String,
    pub depth: u64,
    pub adds: u64,
    pub retries: u64,
    /// How long it has thought about what it thinks about longest, and about all it has not come to a plan for.
    pub longest: std::time::Duration,
    pub unfinished: std::time::Duration,
}
