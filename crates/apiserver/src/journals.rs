//! What the loops say of themselves: why objects wait, and how busy each loop is.

use corten_meta::{Key, Resource};
use corten_metrics::loops::{LoopCounts, LoopQueue};
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

    /// What the loops count of what they do, for `/metrics`.
    fn counted(&self) -> Vec<LoopCounts> {
        Vec::new()
    }

    /// How busy each loop is, for `/metrics`.
    fn queues(&self) -> Vec<LoopQueue> {
        Vec::new()
    }
}
