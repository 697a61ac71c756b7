//! Custom resources in other versions than they are stored in, where their definition names a webhook that converts them.
//!
//! Whoever shows an object has it converted first; all that comes after sees an object that is in the version it wants. An object
//! that is stored is converted once for each version, however many ask, and kept beside what is stored as long as there is room.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod ask;
mod cache;
mod failing;
mod known_definition;
mod measures;
mod memo;
mod refused_definitions;
mod restored;
pub mod review;
mod snapshot;
mod stored;

use std::sync::Arc;

use corten_meta::Time;
use corten_metrics::Registry;
use corten_webhook::Clients;
use parking_lot::Mutex;

pub use failing::ConversionFailure;
pub use known_definition::{KnownDefinition, Served};
pub use memo::{Memo, ROUNDS_MAX};
pub use refused_definitions::RefusedDefinitions;
pub use snapshot::SnapshotQuery;

use cache::ConversionCache;
use failing::FailingWebhooks;
use measures::Measures;

/// Clones are the same.
#[derive(Clone)]
pub struct Conversion(Arc<Inner>);

struct Inner {
    clients: Arc<Clients>,
    uids: Arc<dyn Fn() -> String + Send + Sync>,
    clock: Arc<dyn Fn() -> Time + Send + Sync>,
    measures: Measures,
    failing: FailingWebhooks,
    kept: ConversionCache,
    /// Of one list. Who wants more asks for pages.
    list_bytes_max: usize,
    /// Held while it is looked who converts what, so that no two begin with the same object.
    claims: Mutex<()>,
}

impl Conversion {
    /// `uids` name the questions that webhooks are asked. What is counted is registered. A list that is converted has at most
    /// `list_bytes_max`.
    pub fn new(
        clients: Arc<Clients>,
        uids: Arc<dyn Fn() -> String + Send + Sync>,
        clock: Arc<dyn Fn() -> Time + Send + Sync>,
        registry: &Registry,
        list_bytes_max: usize,
    ) -> Self {
        Self(Arc::new(Inner {
            clients,
            uids,
            clock,
            measures: Measures::new(registry),
            failing: FailingWebhooks::default(),
            kept: ConversionCache::default(),
            list_bytes_max,
            claims: Mutex::default(),
        }))
    }

    /// What the webhook of a definition has failed with since it last answered.
    pub fn failing(&self, definition: &str) -> Option<ConversionFailure> {
        self.0.failing.of(definition, (self.0.clock)())
    }

    /// All that fail, by their definitions.
    pub fn all_failing(&self) -> Vec<(String, ConversionFailure)> {
        self.0.failing.all((self.0.clock)())
    }

    /// A definition names another webhook: what its last one did is nobody's concern.
    pub fn forget(&self, definition: &str) {
        self.0.failing.forget(definition);
    }

    /// A definition has gone, and nothing more is counted of it.
    pub fn gone(&self, definition: &str) {
        self.forget(definition);
        self.0.measures.forget(definition);
    }
}
